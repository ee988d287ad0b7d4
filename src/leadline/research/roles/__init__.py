"""The roles of a run: what each is told, what each must return."""
