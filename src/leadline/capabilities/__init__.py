"""One folder a seam, all of one shape."""
