"""The first-order method for many places: its iterate, its sweeps, its groups of outputs."""
