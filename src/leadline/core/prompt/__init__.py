"""The system prompt as ordered, byte-stable sections."""
