"""What may be said of a sentence without a language model, and why."""
