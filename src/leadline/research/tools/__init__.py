"""The tools that research gives to models."""
