"""Where an index over sessions can be kept."""
