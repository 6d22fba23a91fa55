"""Masses of planar Laplace noise in cells, and posteriors over grids."""
