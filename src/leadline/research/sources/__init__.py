"""What documents say about themselves: their dates, and which is a newer version of which."""
