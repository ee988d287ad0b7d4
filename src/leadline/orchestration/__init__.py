"""How agents start and join other agents."""
