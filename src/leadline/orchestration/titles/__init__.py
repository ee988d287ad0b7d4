"""Titles of sessions, asked of a model once."""
