"""Replay: a run once more from its own log, its own answers and its own sources."""
