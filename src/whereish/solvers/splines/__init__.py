"""Laws between the centres of cells: geometric means with spline weights, and their slopes."""
