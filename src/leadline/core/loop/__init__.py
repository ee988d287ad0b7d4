"""The turn and step algorithm: from queued input to an answer, one logged request after the other."""
