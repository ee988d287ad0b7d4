"""Runs: start one, follow it, cancel it, read its result."""
