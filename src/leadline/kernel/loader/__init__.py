"""Composition as data: rows, layers, patches, reload."""
