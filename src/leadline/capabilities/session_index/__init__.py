"""Lists of sessions and full-text search over them, from what their logs say."""
