"""What a model can do with a corpus: search it and read from it."""
