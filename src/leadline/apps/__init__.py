"""Thin drivers of the same handles and log."""
