"""Methods: how a run goes from a question to a drafted report."""
