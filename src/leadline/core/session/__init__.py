"""The append-only session log and what is derived from it."""
