"""The agent handle: scope, inbox, status, cancel."""
