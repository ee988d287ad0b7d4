"""What enters a model's window, and what makes room in it."""
