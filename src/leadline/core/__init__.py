"""What an agent is, and the seams it needs."""
