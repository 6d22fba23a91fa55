"""Slopes of a spline law at 25 points of every square: no bound, but nearly the largest, and cheap.

A slope is continuous from square to square, so that the points between two are looked at once.

A search for a law needs to know where it is too steep and where there is room, many times; a proof
(:mod:`~whereish.solvers.splines.bound`) is made of what it finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.blocks import around, down_columns, largest
from whereish.solvers.splines.bound import CellLaws, mean_slopes
from whereish.solvers.splines.weights import spline_slopes, spline_weights

__all__ = ["PARTS", "point_grid", "sampled_slopes"]

PARTS = 4
"""Into so many parts points cut a square along each axis."""

_POINTS: FloatArray = np.linspace(-0.5, 0.5, PARTS + 1)


def sampled_slopes(laws: CellLaws, levels: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """(rows, cols, 5, 5) the largest |grad ln P| / eps over all reports at points of every square.

    Parameters are those of :func:`~whereish.solvers.splines.bound.largest_slopes`.
    """
    rows, cols = laws.log_sums.shape
    unit = max(cell)
    sides = cell[0] / unit, cell[1] / unit
    own = np.full((rows, cols, 2), PARTS)
    own[-1, :, 0] += 1
    own[:, -1, 1] += 1
    counts = own.reshape(-1, 2)
    means = mean_slopes(laws, sides, _POINTS, counts).astype(np.float32)
    weights, slopes = (f(_POINTS).astype(np.float32) for f in (spline_weights, spline_slopes))
    found = np.zeros(means.shape[:-1], np.float32)
    for A, _, _ in laws.blocks():
        _raise_squares(A, counts, (rows, cols), sides, weights, slopes, means, found)
    best = found.reshape(rows, cols, PARTS + 1, PARTS + 1)
    best[:-1, :, PARTS] = best[1:, :, 0]
    best[:, :-1, :, PARTS] = best[:, 1:, :, 0]
    t = _POINTS + 0.5
    ends = np.stack([1.0 - t, t])
    four = np.stack([[levels[a : a + rows, b : b + cols] for b in (0, 1)] for a in (0, 1)])
    eps = np.einsum("ax,by,abij->ijxy", ends, ends, four) * unit
    return np.asarray(np.sqrt(best) / eps)


def point_grid(values: FloatArray) -> FloatArray:
    """Values (rows, cols, 5, 5) at the points of squares, on one grid, the larger at each point."""
    rows, cols = values.shape[:2]
    out = np.zeros((PARTS * rows + 1, PARTS * cols + 1))
    for a in range(PARTS + 1):
        for b in range(PARTS + 1):
            here = out[a : a + PARTS * rows : PARTS, b : b + PARTS * cols : PARTS]
            np.maximum(here, values[:, :, a, b], out=here)
    return out


@kernel
def _raise_squares(
    A: Any, counts: Any, shape: Any, cell: Any, weights: Any, slopes: Any, means: Any, best: Any
) -> None:
    """Raise `best` to the largest |G - m|^2 over a block's reports at the points of each square."""
    ih, iw = np.float32(1.0 / cell[0]), np.float32(1.0 / cell[1])
    cells = np.empty(9, np.int64)
    a, d = np.empty((3, LANES), np.float32), np.empty((3, LANES), np.float32)
    top = np.empty(LANES, np.float32)
    for here in range(len(best)):
        around(here // shape[1], here % shape[1], shape, cells)
        for v in range(counts[here, 0]):
            down_columns(A, here, cells, (weights[v], slopes[v], ih), a, d)
            for h in range(counts[here, 1]):
                w0, w1, w2 = weights[h, 0], weights[h, 1], weights[h, 2]
                g0, g1, g2 = slopes[h, 0] * iw, slopes[h, 1] * iw, slopes[h, 2] * iw
                mx, my = means[here, v, h, 0], means[here, v, h, 1]
                for k in range(LANES):
                    gx = g0 * a[0, k] + g1 * a[1, k] + g2 * a[2, k] - mx
                    gy = w0 * d[0, k] + w1 * d[1, k] + w2 * d[2, k] - my
                    top[k] = gx * gx + gy * gy
                best[here, v, h] = max(best[here, v, h], np.float32(largest(top)))
