"""Shortest paths that look only where something is near: the same distances, sooner.

A batch of 64 neighbouring sources reaches the horizon within a part of a large map, and
after two sweeps little changes.  Per row of the grid the interval of columns is kept that
the last sweep and this one have changed in any lane.  A cell of which no neighbour has
changed since it was relaxed last, two sweeps ago, cannot change, so it is left out.  (A
pass back along a row never needs more than what its first pass changed: a cell that got
its distance from its neighbour gives that neighbour none.)  Every relaxation that would
change something is done, in the order of :mod:`~whereish.solvers.geodesic.sweeps`, so
distances and the number of sweeps are the same.

How long this takes depends on the sources, so it is for building, never for sampling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES, relax

__all__ = ["BORDER", "near_distances", "nothing_reached", "padded_cell"]

BORDER = 3
"""Cells of padding on every side: the reach of the widest stencil."""

Words = NDArray[np.uint16]


@kernel
def padded_cell(cell: int, cols: int) -> int:
    """The index of a cell in the grid with its border."""
    return (cell // cols + BORDER) * (cols + 2 * BORDER) + cell % cols + BORDER


@kernel
def nothing_reached(rows: int, cols: int, horizon: int) -> tuple[Words, IntArray]:
    """Distances and intervals before the first batch."""
    D = np.full(((rows + 2 * BORDER) * (cols + 2 * BORDER), LANES), horizon, np.uint16)
    reach = np.empty((rows, 2), np.int64)
    reach[:, 0], reach[:, 1] = cols, -1
    return D, reach


@kernel
def _row(
    D: Any, edges: Any, offsets: Any, cols: int, old: Any, new: Any, i: int, beside: int, down: bool
) -> bool:
    """Relax row `i` from the rows up to `beside`, then back along itself; whether it changed.

    `old` and `new` are intervals of columns per row that the last sweep and this one changed.
    """
    first, last = cols, -1
    for r in range(min(i, beside), max(i, beside) + 1):
        first = min(first, old[r, 0], new[r, 0])
        last = max(last, old[r, 1], new[r, 1])
    if last < 0:
        return False
    base, count = (i + BORDER) * (cols + 2 * BORDER) + BORDER, len(offsets)
    back, on = edges[0], edges[1]
    low, high = new[i, 0], new[i, 1]
    first, last = max(first - BORDER, 0), min(last + BORDER, cols - 1)
    if down:
        j = first
        while j <= last:
            if relax(D, base + j, back, (base + j) * count, offsets, -1, count):
                low, high = min(low, j), max(high, j)
                last = max(last, min(j + BORDER, cols - 1))
            j += 1
        j = high - 1
        while j >= max(low - 1, 0):
            if relax(D, base + j, on, (base + j) * count, offsets, 1, 1):
                low = min(low, j)
            j -= 1
    else:
        j = last
        while j >= first:
            if relax(D, base + j, on, (base + j) * count, offsets, 1, count):
                low, high = min(low, j), max(high, j)
                first = min(first, max(j - BORDER, 0))
            j -= 1
        j = low + 1
        while j <= min(high + 1, cols - 1):
            if relax(D, base + j, back, (base + j) * count, offsets, -1, 1):
                high = max(high, j)
            j += 1
    new[i, 0], new[i, 1] = low, high
    return bool(high >= 0)


@kernel
def near_distances(
    D: Words,
    edges: Words,
    offsets: IntArray,
    rows: int,
    cols: int,
    order: IntArray,
    start: int,
    reach: IntArray,
    horizon: int,
) -> int:
    """Fill D from the next sources in `order`, one for each lane; the sweeps that it took.

    Parameters
    ----------
    reach : (rows, 2) the interval of columns that any lane of the batch before has reached, or
        (cols, -1); then that of this one.  D must be `horizon` elsewhere, and is.
    horizon : where distances saturate, at most LIMIT.
    """
    pitch = cols + 2 * BORDER
    for i in range(rows):
        base = (i + BORDER) * pitch + BORDER
        if reach[i, 1] >= 0:
            D[base + reach[i, 0] : base + reach[i, 1] + 1] = horizon
    reach[:, 0], reach[:, 1] = cols, -1
    for lane in range(min(LANES, len(order) - start)):
        cell = order[start + lane]
        D[padded_cell(cell, cols), lane] = 0
        i, j = cell // cols, cell % cols
        reach[i, 0], reach[i, 1] = min(reach[i, 0], j), max(reach[i, 1], j)
    old, new = np.empty_like(reach), reach.copy()  # the first sweep finds its sources new
    old[:, 0], old[:, 1] = cols, -1
    taken = 0
    while True:
        changed = False
        if taken % 2 == 0:
            for i in range(rows):
                changed |= _row(D, edges, offsets, cols, old, new, i, max(i - BORDER, 0), True)
        else:
            for i in range(rows - 1, -1, -1):
                until = min(i + BORDER, rows - 1)
                changed |= _row(D, edges, offsets, cols, old, new, i, until, False)
        taken += 1
        for i in range(rows):
            reach[i, 0], reach[i, 1] = min(reach[i, 0], new[i, 0]), max(reach[i, 1], new[i, 1])
        # The first sweep alone proves nothing: edges up the rows are not looked at yet.
        if taken > 1 and not changed:
            return taken
        old, new = new, old
        new[:, 0], new[:, 1] = cols, -1
