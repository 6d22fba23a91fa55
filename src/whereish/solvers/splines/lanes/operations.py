"""Sums, slopes and maxima of 64 reports side by side, in single precision.

numba's automatic vectoriser takes four to eight times as long for them, so they are written as
vectors of LLVM's intermediate language (:mod:`whereish.solvers.splines.lanes.code`).

* :func:`around_node`: from distances, logarithms around a node less its own, and its masses;
* :func:`least`: the least of 64 distances;
* :func:`columns`: what F less its value at a cell is along the three columns around the cell, at a
  height that three weights stand for, and its slope down;
* :func:`add_at_point`: adds the masses e^F at a point, and masses times G_x, G_y, to three sums:
  the exponential's series to degree 6 at an argument of at most 1/4, squared again and again;
* :func:`steepest_at_point`: the largest |G - m|^2 at a point;
* :func:`total`: the sum of 64 numbers;
* :func:`side_by_side`: copies nine rows;
* :func:`largest`: the largest of 64 numbers >= 0;
* :func:`worst`: the largest |V|^2 / e^2 over nine control points.

Sums are in double precision from eight partial sums on.  The largest of numbers >= 0 is that of
their bits, by which what is not a number is larger than any: where there is one, the maximum is
infinite.
"""

from __future__ import annotations

from whereish.compiled import lazy_intrinsic

__all__ = [
    "add_at_point",
    "around_node",
    "columns",
    "largest",
    "least",
    "side_by_side",
    "steepest_at_point",
    "total",
    "worst",
]

_CODE = "whereish.solvers.splines.lanes.code"

around_node = lazy_intrinsic(_CODE, "around_node")
least = lazy_intrinsic(_CODE, "least")
columns = lazy_intrinsic(_CODE, "columns")
add_at_point = lazy_intrinsic(_CODE, "add_at_point")
steepest_at_point = lazy_intrinsic(_CODE, "steepest_at_point")
total = lazy_intrinsic(_CODE, "total")
side_by_side = lazy_intrinsic(_CODE, "side_by_side")
largest = lazy_intrinsic(_CODE, "largest")
worst = lazy_intrinsic(_CODE, "worst")
