"""One file that holds a run and can be checked offline."""
