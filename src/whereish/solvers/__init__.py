"""HOW numbers are found: algorithms on plain arrays."""
