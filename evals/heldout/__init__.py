"""Folders and questions that are scored alone: rules are not made by looking at them."""
