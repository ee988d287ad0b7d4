"""Corpora of local files: walking, reading, splitting, indexing, searching."""
