"""Weights of the eikonal law on cells, places and answers, and their certificates."""
