"""The slope |grad ln P(y | x)| of a law that is rounded at random to four centres.

Between the centres of four neighbouring cells the law is interpolated bilinearly
(randomised rounding to a corner).  On an axis-parallel line through such a square
|grad P| is convex and P is affine and positive, so |grad P| / P is quasi-convex
there and its maximum over the square is at a corner.  At a corner c with axis
neighbours a and b it is

    sqrt((P_a/P_c - 1)^2 / width^2 + (P_b/P_c - 1)^2 / height^2),

which is evaluated for every report y, all four squares around every secret.  The
masses' table is flatter than e^{-q·i}, so P_a/P_c lies between r and r·e^{q·(D_c - D_a)}
with r = Z_c/Z_a, and |P_a/P_c - 1| is at most its value at one of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances, padded_cell

__all__ = ["largest_gradients"]


@kernel
def _corner_maxima(
    edges: Any,
    offsets: Any,
    rows: int,
    cols: int,
    down: bool,
    across: bool,
    order: Any,
    ratios: Any,
    growth: Any,
    middle: int,
    height: float,
    width: float,
    core: int,
) -> NDArray[np.float32]:
    """Squared maxima (rows, cols, 2, 2) over the reports in `order`.

    `ratios[c, k]` is Z_c/Z_a for the neighbour k (west, east, south, north), NaN where
    one of the two is no secret; `down` and `across`: whether secrets have neighbours along
    the columns and the rows at all.  `growth[middle + i]` = e^{q·i} for every change i of a
    distance between neighbours.  Distances below `core` count as `core`.
    """
    pitch = cols + 2 * BORDER
    D = np.empty(((rows + 2 * BORDER) * pitch, LANES), np.uint16)
    sources = np.empty(LANES, np.int64)
    out = np.zeros((rows, cols, 2, 2), np.float32)
    square = np.zeros((4, LANES), np.float32)
    top = np.zeros(LANES, np.float32)
    step = np.array([-1, 1, -pitch, pitch])
    scale = np.array([width, width, height, height])
    flat_to = np.int64(core)
    for start in range(0, len(order), LANES):
        for lane in range(LANES):
            # Short batches repeat their last report, which changes no maximum.
            cell = order[min(start + lane, len(order) - 1)]
            sources[lane] = padded_cell(cell, cols)
        batch_distances(D, edges, offsets, rows, cols, sources, 0)
        for i in range(rows):
            for j in range(cols):
                c = (i + BORDER) * pitch + j + BORDER
                for k in range(4):
                    r = np.float32(ratios[i * cols + j, k])
                    if np.isnan(r):
                        continue
                    other = c + step[k]
                    inverse = np.float32(1.0 / scale[k])
                    flat = abs(r - np.float32(1.0))
                    for lane in range(LANES):
                        nearer = max(np.int64(D[other, lane]), flat_to)
                        change = max(np.int64(D[c, lane]), flat_to) - nearer
                        slope = abs(growth[middle + change] * r - np.float32(1.0))
                        slope = max(slope, flat) * inverse
                        square[k, lane] = slope * slope
                for p in range(2):
                    if np.isnan(ratios[i * cols + j, p]) and across:
                        continue
                    for s in range(2):
                        if np.isnan(ratios[i * cols + j, 2 + s]) and down:
                            continue
                        for lane in range(LANES):
                            top[lane] = square[p, lane] + square[2 + s, lane]
                        best = top.max()
                        out[i, j, p, s] = max(out[i, j, p, s], best)
    return out


def largest_gradients(
    metric: GraphMetric,
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    cell: tuple[float, float],
    core: int = 0,
    frame: int = 0,
) -> FloatArray:
    """Largest |grad P|/P over all reports, at the corners of every square between four centres.

    Secrets are all cells but the outermost `frame` rows and columns.  For rows x cols of them
    returns (rows - 1, cols - 1, 2, 2): entry (i, j, up, right) for the square above and to
    the right of centre (i, j), at that corner of it; NaN where a corner is no secret.  A
    single row or column of secrets has intervals for squares, and all axes at least length 1.
    """
    rows, cols = metric.shape
    Z = sums.astype(np.float64).reshape(rows, cols)
    Z[Z == 0] = np.nan
    ratios = np.full((rows, cols, 4), np.nan)
    ratios[:, 1:, 0] = Z[:, 1:] / Z[:, :-1]
    ratios[:, :-1, 1] = Z[:, :-1] / Z[:, 1:]
    ratios[1:, :, 2] = Z[1:] / Z[:-1]
    ratios[:-1, :, 3] = Z[:-1] / Z[1:]
    steps = metric.steps
    # Neighbours differ by at most their edge, be it as long as the horizon.
    right = metric.weights[:, :-1, steps.index((0, 1))]
    up = metric.weights[:-1, :, steps.index((1, 0))]
    longest = max(int(right.max(initial=0)), int(up.max(initial=0)))
    inner = slice(frame, rows - frame), slice(frame, cols - frame)
    down, across = (count - 2 * frame > 1 for count in (rows, cols))
    growth = np.exp(metric.quantum * np.arange(-longest, longest + 1)).astype(np.float32)
    reports = metric.order[weights[metric.order] > 0]
    squared = _corner_maxima(
        metric.edges,
        metric.offsets,
        rows,
        cols,
        down,
        across,
        reports,
        ratios.reshape(-1, 4),
        growth,
        longest,
        *cell,
        core,
    )
    # Single precision: ten roundings, and the rounding of q·i inside the table.
    lost = 5e-7 * np.hypot(down / cell[0], across / cell[1])  # ratios near 1, less 1
    slopes = np.sqrt(squared.astype(np.float64)) * (1.0 + 4e-6) + lost
    slopes, Z = slopes[inner], Z[inner]
    rows, cols = Z.shape
    i1, j1 = int(down), int(across)
    out = np.full((rows - i1, cols - j1, 1 + i1, 1 + j1), np.nan)
    for north in range(1 + i1):
        for east in range(1 + j1):
            part = slice(north, rows - i1 + north), slice(east, cols - j1 + east)
            block = slopes[*part, 1 - east, 1 - north]
            out[:, :, north, east] = np.where(np.isfinite(Z[part]), block, np.nan)
    return out
