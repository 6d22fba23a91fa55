"""Batched shortest paths on a grid: the compiled loops behind its metric.

(:mod:`~whereish.solvers.geodesic.graph_metric` has the metric.)

All arrays here are padded by a border of BORDER cells whose edges weigh LIMIT,
so that no loop asks where the grid ends.  ``edges[0, c, k]`` is the weight of the
edge from cell c back to ``c - offsets[k]``, ``edges[1, c, k]`` that of the edge on
to ``c + offsets[k]``; ``offsets[0]`` must be 1, the step along the row.

A batch is relaxed by Gauss-Seidel sweeps down and up the rows in turn, each row
followed by the opposite pass along itself.  After a sweep all edges in its own
direction are satisfied; when the next one changes nothing, so are the others, and
the distances are the exact shortest paths, in integers, whatever the order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES, LIMIT, accumulate, relax, weighed
from whereish.solvers.geodesic.masses import SUM_LIMIT
from whereish.solvers.geodesic.windows import BORDER, near_distances, nothing_reached, padded_cell

__all__ = [
    "BORDER",
    "batch_distances",
    "exact_sums",
    "kept_window",
    "padded_cell",
    "products",
    "settle",
    "spread_products",
    "spread_window",
    "window_sums",
]

_BLOCK = 256  # cells summed in single precision before the sum moves to double precision

_SUM_LIMIT = np.uint64(SUM_LIMIT)

Words = NDArray[np.uint16]


@kernel
def _down(D: Any, edges: Any, offsets: Any, rows: int, cols: int) -> bool:
    """Relax from the south-west, rows upwards in index; whether anything changed."""
    pitch, count = cols + 2 * BORDER, len(offsets)
    back, on, changed = edges[0], edges[1], False
    for i in range(rows):
        base = (i + BORDER) * pitch + BORDER
        for j in range(cols):
            changed |= relax(D, base + j, back, (base + j) * count, offsets, -1, count)
        for j in range(cols - 2, -1, -1):
            changed |= relax(D, base + j, on, (base + j) * count, offsets, 1, 1)
    return changed


@kernel
def _up(D: Any, edges: Any, offsets: Any, rows: int, cols: int) -> bool:
    """The mirror image of :func:`_down`."""
    pitch, count = cols + 2 * BORDER, len(offsets)
    back, on, changed = edges[0], edges[1], False
    for i in range(rows - 1, -1, -1):
        base = (i + BORDER) * pitch + BORDER
        for j in range(cols - 1, -1, -1):
            changed |= relax(D, base + j, on, (base + j) * count, offsets, 1, count)
        for j in range(1, cols):
            changed |= relax(D, base + j, back, (base + j) * count, offsets, -1, 1)
    return changed


@kernel
def settle(D: Words, edges: Words, offsets: IntArray, rows: int, cols: int, sweeps: int) -> int:
    """Relax `D`, zero at the sources of each lane (any number of them), in place.

    `sweeps` and the result are as in :func:`batch_distances`.
    """
    taken = 0
    while True:
        if taken % 2 == 0:
            changed = _down(D, edges, offsets, rows, cols)
        else:
            changed = _up(D, edges, offsets, rows, cols)
        taken += 1
        # The first sweep alone proves nothing: edges up the rows are not looked at yet.
        if taken == sweeps or (sweeps == 0 and taken > 1 and not changed):
            return taken


@kernel
def batch_distances(
    D: Words, edges: Words, offsets: IntArray, rows: int, cols: int, sources: IntArray, sweeps: int
) -> int:
    """Distances from `sources` (one per lane, padded cells, -1 for none) to all cells.

    With ``sweeps = 0`` it sweeps until nothing changes and returns how many that took;
    otherwise exactly that many, whatever the sources: the running time tells nothing.
    """
    D[:] = LIMIT
    for lane in range(len(sources)):
        if sources[lane] >= 0:
            D[sources[lane], lane] = 0
    return settle(D, edges, offsets, rows, cols, sweeps)


@kernel
def window_sums(
    D: Words,
    starts: IntArray,
    reach: IntArray,
    cols: int,
    values: NDArray[np.float32],
    rate: np.float32,
    horizon: int,
) -> FloatArray:
    """(sides, lanes): sums of 2^(-rate·D) times (cells, sides) values within a batch's reach.

    D of row i, column j stands at ``starts[i] + j``.  With a `horizon` below LIMIT the powers are
    lowered by their value there.
    """
    sides = values.shape[1]
    part, total = np.zeros((sides, LANES), np.float32), np.zeros((sides, LANES))
    seen, waiting = np.zeros(sides), 0
    for i in range(len(reach)):
        for j in range(reach[i, 0], reach[i, 1] + 1):
            accumulate(part, D, starts[i] + j, values, i * cols + j, rate)
            for r in range(sides):
                seen[r] += values[i * cols + j, r]
            waiting += 1
            if waiting == _BLOCK:
                total += part
                part[:] = 0.0
                waiting = 0
    total += part
    if horizon < LIMIT:
        total -= (seen * 2.0 ** (-rate * np.float32(horizon))).reshape(sides, 1)
    return total


@kernel
def products(
    edges: Words,
    offsets: IntArray,
    rows: int,
    cols: int,
    order: IntArray,
    values: NDArray[np.float32],
    rate: np.float32,
    core: int,
    horizon: int,
) -> tuple[FloatArray, int]:
    """E·V for E = 2^(-rate·max(D, core)), without ever storing D.

    `values` is (cells, sides) over the unpadded grid, `order` the unpadded sources in the
    order in which they share batches.  Cells that no source of a batch reaches are left out.
    With a `horizon` below LIMIT, E is lowered by its value there and 0 beyond it.
    Returns (cells, sides) and the most sweeps taken.
    """
    D, reach = nothing_reached(rows, cols, horizon)
    starts = (np.arange(rows) + BORDER) * (cols + 2 * BORDER) + BORDER
    out = np.zeros((rows * cols, values.shape[1]))
    most = 0
    for start in range(0, len(order), LANES):
        sweeps = near_distances(D, edges, offsets, rows, cols, order, start, reach, horizon)
        most = max(most, sweeps)
        if core > 0:
            np.maximum(D, np.uint16(core), D)
        total = window_sums(D, starts, reach, cols, values, rate, horizon)
        for lane in range(min(LANES, len(order) - start)):
            out[order[start + lane]] = total[:, lane]
    return out, most


@kernel
def spread_window(
    D: Words,
    starts: IntArray,
    reach: IntArray,
    cols: int,
    shares: NDArray[np.float32],
    rate: np.float32,
    horizon: int,
    out: FloatArray,
) -> None:
    """Add what the sources of a batch spread, `shares`·2^(-rate·D), to `out` at every cell.

    D, `starts` and `horizon` are as in :func:`window_sums`.
    """
    beyond = 0.0
    if horizon < LIMIT:
        beyond = shares.astype(np.float64).sum() * 2.0 ** (-rate * np.float32(horizon))
    for i in range(len(reach)):
        for j in range(reach[i, 0], reach[i, 1] + 1):
            out[i * cols + j] += weighed(D, starts[i] + j, shares, rate) - beyond


@kernel
def spread_products(
    edges: Words,
    offsets: IntArray,
    rows: int,
    cols: int,
    sources: IntArray,
    values: NDArray[np.float32],
    rate: np.float32,
    core: int,
    horizon: int,
) -> FloatArray:
    """E·v as in :func:`products`, searched from where v is not 0: E is symmetric.

    `values` is one for each of the `sources`, which are unpadded and share batches in their order.
    """
    D, reach = nothing_reached(rows, cols, horizon)
    starts = (np.arange(rows) + BORDER) * (cols + 2 * BORDER) + BORDER
    out, shares = np.zeros(rows * cols), np.zeros(LANES, np.float32)
    for start in range(0, len(sources), LANES):
        near_distances(D, edges, offsets, rows, cols, sources, start, reach, horizon)
        if core > 0:
            np.maximum(D, np.uint16(core), D)
        shares[:] = 0.0
        for lane in range(min(LANES, len(sources) - start)):
            shares[lane] = values[start + lane]
        spread_window(D, starts, reach, cols, shares, rate, horizon, out)
    return out


@kernel
def kept_window(D: Words, reach: IntArray, cols: int) -> tuple[Words, IntArray]:
    """The distances within `reach` without what is around them, and where their rows start."""
    pitch, count = cols + 2 * BORDER, 0
    starts = np.zeros(len(reach), np.int64)
    for i in range(len(reach)):
        starts[i] = count - reach[i, 0]
        count += max(reach[i, 1] + 1 - reach[i, 0], 0)
    out = np.empty((count, LANES), np.uint16)
    for i in range(len(reach)):
        first, end = reach[i, 0], max(reach[i, 1] + 1, reach[i, 0])
        base = (i + BORDER) * pitch + BORDER
        out[starts[i] + first : starts[i] + end] = D[base + first : base + end]
    return out, starts


@kernel
def exact_sums(
    edges: Words,
    offsets: IntArray,
    rows: int,
    cols: int,
    order: IntArray,
    weights: NDArray[np.uint64],
    decay: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], int]:
    """The integers sum_y weights[y]·decay[D(u, y)] for the cells u in `order`; most sweeps.

    Products must be below 2^63; a sum that reaches 2^63 stops there instead of wrapping.
    """
    pitch = cols + 2 * BORDER
    D, reach = nothing_reached(rows, cols, LIMIT)
    total = np.zeros(LANES, np.uint64)
    out = np.zeros(rows * cols, np.uint64)
    everywhere, farthest = weights.sum(), decay[LIMIT]
    most = 0
    for start in range(0, len(order), LANES):
        most = max(most, near_distances(D, edges, offsets, rows, cols, order, start, reach, LIMIT))
        total[:] = 0
        near = np.uint64(0)
        for i in range(rows):
            base = (i + BORDER) * pitch + BORDER
            for j in range(reach[i, 0], reach[i, 1] + 1):
                weight = weights[i * cols + j]
                near += weight
                if weight > 0:
                    for lane in range(LANES):
                        mass = weight * decay[D[base + j, lane]]
                        total[lane] = min(total[lane] + mass, _SUM_LIMIT)
        # Cells that no lane reaches are all at the horizon, where much may be left of a mass if the
        # quantum is small.
        beyond = everywhere - near
        far = beyond * farthest if beyond <= _SUM_LIMIT // farthest else _SUM_LIMIT
        for lane in range(min(LANES, len(order) - start)):
            out[order[start + lane]] = min(total[lane] + far, _SUM_LIMIT)
    return out, most
