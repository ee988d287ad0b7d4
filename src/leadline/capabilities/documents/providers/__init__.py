"""Readers, one file a kind of document."""
