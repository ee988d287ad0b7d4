"""The deterministic checks, one file each."""
