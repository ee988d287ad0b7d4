"""Deep research you can audit, on an agent harness where everything is a plugin."""

__version__ = "0.1.0"
