"""Edges of the discrete geodesic metric: who is a neighbour, and at which price.

Cells are nodes at their centres; the map eps(u) is the bilinear interpolant of
its values at the centres.  A cell is joined to its 8, 16 or 32 neighbours of a
Farey stencil, and an edge costs the integral of eps along its straight segment.
Along such a segment the interpolant is piecewise quadratic with breaks at
multiples of 1/6, so Simpson's rule on twelve parts is exact.

With constant eps every lattice vector is a sum of two stencil vectors that are
neighbours in angle (their determinant is 1), hence

    d_eps <= d_graph <= d_eps / cos(gap/2),

gap the largest angle between neighbouring directions: 1.0275 for 16 and 1.0131
for 32 directions on square cells (:func:`stencil_factor`).
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["STENCILS", "edge_integrals", "edge_slices", "stencil_factor"]

_EIGHT = ((0, 1), (1, 0), (1, 1), (1, -1))
_SIXTEEN = (*_EIGHT, (1, 2), (2, 1), (1, -2), (2, -1))
_THIRTY_TWO = (*_SIXTEEN, (1, 3), (3, 1), (1, -3), (3, -1), (2, 3), (3, 2), (2, -3), (3, -2))

STENCILS: dict[int, tuple[tuple[int, int], ...]] = {8: _EIGHT, 16: _SIXTEEN, 32: _THIRTY_TWO}
"""Half of each stencil, as steps (rows, columns); the other half is its mirror image."""

_NODES = np.linspace(0.0, 1.0, 13)
_SIMPSON = np.array([1, 4, 2, 4, 2, 4, 2, 4, 2, 4, 2, 4, 1]) / 36.0


def edge_slices(
    shape: tuple[int, int], step: tuple[int, int]
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """The tails and heads of all edges of one `step` inside a grid of `shape`."""
    (rows, cols), (di, dj) = shape, step
    tail = (slice(0, max(0, rows - di)), slice(max(0, -dj), max(0, cols - max(0, dj))))
    head = (slice(di, max(di, rows)), slice(max(0, dj), max(0, cols + min(0, dj))))
    if rows - di <= 0 or cols - abs(dj) <= 0:
        nothing = (slice(0, 0), slice(0, 0))
        return nothing, nothing
    return tail, head


def edge_integrals(
    values: FloatArray, cell: tuple[float, float], *, neighbours: int = 16
) -> FloatArray:
    """Integral of the interpolated map along every edge.

    Parameters
    ----------
    values : (rows, cols) eps at the cell centres, per length; or (rows, cols, neighbours/2),
        one for each step of the half stencil.
    cell : height and width of a cell, in the same length.
    neighbours : 8, 16 or 32.

    Returns
    -------
    (rows, cols, neighbours/2): the price of the edge from a cell along each step of the
    half stencil, ``inf`` where the edge leaves the grid.
    """
    rows, cols = values.shape[:2]
    steps = STENCILS[neighbours]
    prices = np.full((rows, cols, len(steps)), np.inf)
    for k, (di, dj) in enumerate(steps):
        levels = values if values.ndim == 2 else values[..., k]
        tail, _ = edge_slices((rows, cols), (di, dj))
        if tail[0].stop == 0:
            continue
        top, left = tail[0].start, tail[1].start
        height, width = tail[0].stop - top, tail[1].stop - left
        total = np.zeros((height, width))
        for t, share in zip(_NODES, _SIMPSON, strict=True):
            i, j = math.floor(t * di + 1e-9), math.floor(t * dj + 1e-9)
            a, b = max(0.0, t * di - i), max(0.0, t * dj - j)
            for p, row_share in ((0, 1.0 - a), (1, a)):
                for q, col_share in ((0, 1.0 - b), (1, b)):
                    if row_share * col_share > 1e-9:
                        block = levels[
                            top + i + p : top + i + p + height, left + j + q : left + j + q + width
                        ]
                        total += (share * row_share * col_share) * block
        prices[*tail, k] = total * math.hypot(di * cell[0], dj * cell[1])
    return prices


def stencil_factor(
    neighbours: int, cell: tuple[float, float], shape: tuple[int, int] | None = None
) -> float:
    """The bound on d_graph / d_eps at constant eps: 1 / cos(half the widest angle).

    On a one-dimensional map (`shape` with a side of one) it is 1.
    """
    if shape is not None and 1 in shape:
        return 1.0
    angles = sorted(
        math.atan2(di * cell[0], dj * cell[1]) % math.pi for di, dj in STENCILS[neighbours]
    )
    gaps = [b - a for a, b in zip(angles, [*angles[1:], angles[0] + math.pi], strict=True)]
    return 1.0 / math.cos(max(gaps) / 2)
