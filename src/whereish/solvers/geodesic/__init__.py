"""Shortest paths on a grid, in integers."""
