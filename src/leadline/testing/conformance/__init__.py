"""Checks that anyone can run over their own parts; a failed check raises AssertionError with what differs."""
