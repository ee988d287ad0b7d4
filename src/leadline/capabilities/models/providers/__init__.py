"""Model providers, each a door of its own."""
