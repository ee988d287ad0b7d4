"""How things are kept: over any session store and any blob store."""
