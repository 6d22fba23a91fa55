"""How numbers are found: optimisation and shortest paths on plain arrays."""
