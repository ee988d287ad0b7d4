"""How near the estimate of tokens is to the tokenisers of several makers."""
