"""The `adaptive` method: a plan, one to three units in parallel, one synthesis."""
