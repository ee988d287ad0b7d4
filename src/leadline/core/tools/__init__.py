"""The tool registry and the guarded, ordered execution pipeline."""
