"""The model vocabulary and the adapter seam."""
