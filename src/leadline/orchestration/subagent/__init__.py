"""Delegation: child agents with their own log, restricted tools and a declared result."""
