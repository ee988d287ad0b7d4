"""The plugin container: contexts, services, fibers, effects, signals."""
