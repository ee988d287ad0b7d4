"""What a run knows: a fold of its events."""
