"""Sixty-four reports of a spline law side by side: sums, slopes, control points."""
