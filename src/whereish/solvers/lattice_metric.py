"""Geodesic distances of a map on a lattice of any dimension, as a matrix.

Cells are nodes at their centres, and each is joined to all cells that touch it: steps s
in {-1, 0, 1}^n.  The map is the multilinear interpolant of its levels; along a step that
moves m coordinates the corner with k of them moved has weight t^k·(1 - t)^(m - k), whose
integral is 1/((m + 1)·C(m, k)), so that the price of an edge,

    |s| · sum over subsets A of the moving coordinates of eps(c + s_A) / ((m + 1)·C(m, |A|)),

is the line integral of eps exactly.  On cubes with constant levels a shortest path is at
most sqrt(sum_k (sqrt k - sqrt(k - 1))^2) times the straight line: 1.0824 in two
dimensions, 1.1281 in three.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.privacy.privacy_map import checked_levels
from whereish.space.points import FloatArray

__all__ = ["LARGEST_LATTICE", "lattice_distances"]

LARGEST_LATTICE = 4096
"""Cells of the largest lattice: its matrix takes 128 MB."""


def lattice_distances(levels: ArrayLike, cell: float | tuple[float, ...]) -> FloatArray:
    """Least integrals of eps along paths between all pairs of cells, in nats.

    For maps in more than two dimensions (places with a height, say), as the `metric` of
    :func:`~whereish.mechanisms.optimal.optimal_channel` and
    :func:`~whereish.mechanisms.exponential.exponential_channel`.

    Parameters
    ----------
    levels
        eps per metre at the centres, one axis per dimension.
    cell
        Side of a cell in metres, or one side for each axis.

    >>> lattice_distances([[[1.0, 1.0, 3.0]]], 1.0).tolist()
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    eps = checked_levels(levels)
    if eps.size > LARGEST_LATTICE:
        raise InvalidInput(
            f"a lattice must have at most {LARGEST_LATTICE} cells; got shape {eps.shape}:"
            " use larger cells"
        )
    sides = cell if isinstance(cell, tuple) else (cell,) * eps.ndim
    if len(sides) != eps.ndim or not all(math.isfinite(side) and side > 0 for side in sides):
        raise InvalidInput(
            f"cell must be a side in metres > 0, or one for each of {eps.ndim} axes; got {cell!r}"
        )
    cells = np.arange(eps.size).reshape(eps.shape)
    tails, heads, prices = [], [], []
    for step in itertools.product((-1, 0, 1), repeat=eps.ndim):
        if step <= (0,) * eps.ndim:
            continue  # the mirror image of a later step, or none
        tails.append(cells[_shifted(step, (0,) * eps.ndim)].ravel())
        heads.append(cells[_shifted(step, step)].ravel())
        prices.append(_edge_prices(eps, step, sides).ravel())
    graph = csr_matrix(
        (np.concatenate(prices), (np.concatenate(tails), np.concatenate(heads))),
        shape=(eps.size, eps.size),
    )
    distances = np.asarray(dijkstra(graph, directed=False))
    return np.minimum(distances, distances.T)


def _shifted(step: tuple[int, ...], by: tuple[int, ...]) -> tuple[slice, ...]:
    """The cells from which `step` stays on the lattice, moved `by` some of its coordinates."""
    return tuple(
        slice(max(0, -s) + b, (min(0, -s) + b) or None) for s, b in zip(step, by, strict=True)
    )


def _edge_prices(eps: FloatArray, step: tuple[int, ...], sides: tuple[float, ...]) -> FloatArray:
    moving = [axis for axis, s in enumerate(step) if s]
    count = len(moving)
    total = np.zeros(eps[_shifted(step, (0,) * eps.ndim)].shape)
    for size in range(count + 1):
        share = 1.0 / ((count + 1) * math.comb(count, size))
        for moved in itertools.combinations(moving, size):
            corner = tuple(s if axis in moved else 0 for axis, s in enumerate(step))
            total += share * eps[_shifted(step, corner)]
    length = math.hypot(*(s * side for s, side in zip(step, sides, strict=True)))
    return np.asarray(total * length)
