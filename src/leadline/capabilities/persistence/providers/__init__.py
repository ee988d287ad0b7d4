"""What keeps sessions and blobs: files."""
