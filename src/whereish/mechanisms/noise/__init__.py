"""Noise on continuous spaces, reported as cells of a public lattice."""
