"""Columns smoothed where a map is smooth.

Between landmarks an extension has kinks: it keeps the edges of a graph, and is steeper than eps
from node to node between their directions.  A weighted mean of a function and its neighbours
(1, 2, 1 along each axis) keeps whatever slopes they keep, if these are the same all around; next to
a step between levels it would bring the slope of one side to the other.  So every node takes of
that as much as its edges on both sides are alike.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["smoothed"]

_ALIKE = 8
"""Power of the ratio of two edges: a tenth between them leaves less than half."""


def smoothed(columns: FloatArray, across: FloatArray, along: FloatArray) -> FloatArray:
    """Columns (reports, rows, cols), along each axis in turn.

    `across` (rows, cols - 1) and `along` (rows - 1, cols) are prices of edges between neighbours.
    """
    out = _along(columns, along)
    return np.swapaxes(_along(np.swapaxes(out, 1, 2), across.T), 1, 2)


def _along(columns: FloatArray, edges: FloatArray) -> FloatArray:
    """Along the first of both axes."""
    if len(edges) < 2:
        return columns
    ratio = np.minimum(edges[1:], edges[:-1]) / np.maximum(edges[1:], edges[:-1])
    beside = np.pad(ratio, [(0, 0), (1, 1)], mode="edge")
    alike = np.minimum(np.minimum(beside[:, :-2], beside[:, 2:]), ratio) ** _ALIKE
    out = columns.copy()
    for column in out:
        column[1:-1] += alike / 4 * (column[2:] - 2 * column[1:-1] + column[:-2])
    return out
