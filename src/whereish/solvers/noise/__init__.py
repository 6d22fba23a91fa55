"""Noise densities of any shape: tables on a lattice of vectors, their privacy, their circles."""
