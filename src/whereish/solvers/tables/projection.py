"""Columns of a law brought below given slopes, point by point, with the least changes.

At a point of a square both parts of the gradient G_y = grad sum_c B_c a_y(c) are linear functions
of the nine logarithms around, so that the nearest logarithms (in the sum of squares) at which G - M
is in a disc are known in closed form, M the mean of all gradients there.  Sweeps over all points
project so in turn, for all columns at once.  Where columns are too steep in a few places beside
which there is room, some sweeps suffice; where whole ways from end to end are steep, sweeps carry
the excess about and do not end, and all of a column must be made flatter first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.blocks import around
from whereish.solvers.splines.points import PARTS
from whereish.solvers.splines.weights import spline_slopes, spline_weights

__all__ = ["levels_at_points", "project_slopes", "projections"]

_POINTS: FloatArray = np.linspace(-0.5, 0.5, PARTS + 1)


def levels_at_points(levels: FloatArray) -> FloatArray:
    """(rows, cols, 5, 5) bilinear levels at points, from those at the corners of squares."""
    t = _POINTS + 0.5
    ends = np.stack([1.0 - t, t])
    rows, cols = (count - 1 for count in levels.shape)
    four = np.stack([[levels[a : a + rows, b : b + cols] for b in (0, 1)] for a in (0, 1)])
    return np.asarray(np.einsum("ax,by,abij->ijxy", ends, ends, four))


def projections(cell: tuple[float, float]) -> NDArray[np.float32]:
    """(16, 25, 4, 9) parts of the gradient across and down, and the least changes that add 1 each.

    Per longer side of a cell, as functions of the nine nodes around a square; 25 points for each of
    16 kinds of squares, 4·(down) + (across): inside, first, last, and both in their row or column.
    """
    height, width = cell[0] / max(cell), cell[1] / max(cell)
    weights, slopes = spline_weights(_POINTS), spline_slopes(_POINTS)
    out = np.zeros((4, 4, PARTS + 1, PARTS + 1, 4, 9))
    for down in range(4):
        v, dv = _merged(weights, down), _merged(slopes, down) / height
        for across in range(4):
            h, dh = _merged(weights, across), _merged(slopes, across) / width
            for a in range(PARTS + 1):
                for b in range(PARTS + 1):
                    parts = np.stack([np.outer(v[a], dh[b]).ravel(), np.outer(dv[a], h[b]).ravel()])
                    changes = np.linalg.pinv(parts, rcond=1e-6).T
                    out[down, across, a, b] = np.concatenate([parts, changes])
    return out.reshape(16, -1, 4, 9).astype(np.float32)


def _merged(values: FloatArray, kind: int) -> FloatArray:
    """Weights of the three nodes along an axis; the outermost node stands for those beyond it."""
    out = values.copy()
    for beyond, bit in ((0, 1), (2, 2)):
        if kind & bit:
            out[:, 1] += out[:, beyond]
            out[:, beyond] = 0.0
    return out


@kernel
def project_slopes(
    A: NDArray[np.float32],
    shape: tuple[int, int],
    maps: NDArray[np.float32],
    means: NDArray[np.float32],
    limits: NDArray[np.float32],
    further: float,
    backwards: bool,
) -> int:
    """One sweep over the points of all squares; how many of them were too steep.

    `A` are (nodes, 64) logarithms, which are changed; `maps` those of :func:`projections`; `means`
    (nodes, 25, 2) M at points; `limits` (nodes, 25) the largest |G - M|, 0 where there is no place.
    What is above its limit is brought to a share `further` below it.
    """
    rows, cols = shape
    cells = np.empty(9, np.int64)
    gx, gy = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    one, nothing, share = np.float32(1.0), np.float32(0.0), np.float32(1.0 - further)
    steep = 0
    for index in range(rows * cols):
        here = rows * cols - 1 - index if backwards else index
        i, j = here // cols, here % cols
        around(i, j, shape, cells)
        kind = 4 * ((i == 0) + 2 * (i == rows - 1)) + (j == 0) + 2 * (j == cols - 1)
        for point in range(limits.shape[1]):
            limit = limits[here, point]
            if limit == nothing:
                continue
            square, parts = limit * limit, maps[kind, point]
            for k in range(LANES):
                gx[k] = -means[here, point, 0]
                gy[k] = -means[here, point, 1]
            for c in range(9):
                x, y = parts[0, c], parts[1, c]
                for k in range(LANES):
                    gx[k] += x * A[cells[c], k]
                    gy[k] += y * A[cells[c], k]
            largest = nothing
            for k in range(LANES):
                largest = max(largest, gx[k] * gx[k] + gy[k] * gy[k])
            if not largest > square:
                continue
            steep += 1
            for k in range(LANES):
                found = gx[k] * gx[k] + gy[k] * gy[k]
                less = limit * share / np.sqrt(found) - one if found > square else nothing
                gx[k] *= less
                gy[k] *= less
            for c in range(9):
                x, y = parts[2, c], parts[3, c]
                for k in range(LANES):
                    A[cells[c], k] += x * gx[k] + y * gy[k]
    return steep
