"""Turns and steps: the driver that runs an agent."""
