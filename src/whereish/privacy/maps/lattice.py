"""Geodesic distances of a map on a lattice of any dimension, as a matrix.

Cells are nodes at their centres, and each is joined to all cells that touch it: steps s
in {-1, 0, 1}^n.  The map is the multilinear interpolant of its levels; along a step that
moves m coordinates the corner with k of them moved has weight t^k·(1 - t)^(m - k), whose
integral is 1/((m + 1)·C(m, k)), so that the price of an edge,

    |s| · sum over subsets A of the moving coordinates of eps(c + s_A) / ((m + 1)·C(m, |A|)),

is the line integral of eps exactly.

A path over such steps is no shorter than the geodesic, so that what is kept between two
cells is somewhat less than the geodesic promises.  By how much, at constant levels: a
displacement of m_i >= 0 cells of side a_i along axis i splits into steps over the sets
A_k of the k axes with the largest m.  With f(A) = (sum of a_i^2 over A)^(1/2) the path
is then linear in the displacement, with gradient (f(A_k) - f(A_{k-1}))/a_k along the
k-th of these axes, hence at most the gradient's length times the straight line.  (As f
is submodular, no other steps are shorter; as its increments per a_k^2 fall with k, the
gradient is itself such a displacement, and its length is reached.)
:func:`lattice_factor` is the largest of these lengths over all orders of the axes:
sqrt(sum_k (sqrt k - sqrt(k - 1))^2) on cubes, 1.0824 in two dimensions and 1.1281 in
three, and more on oblong cells, below the square root of the dimension.
"""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import checked_levels
from whereish.units import Length

__all__ = ["LARGEST_LATTICE", "lattice_distances", "lattice_factor"]

LARGEST_LATTICE = 4096
"""Cells of the largest lattice: its matrix takes 128 MB."""


Side: TypeAlias = float | Length | str
"""Metres, or a length with its unit."""


def lattice_distances(
    levels: ArrayLike, cell: Side | tuple[Side, ...], *, divide_stencil: bool = False
) -> FloatArray:
    """Least integrals of eps along paths over neighbouring cells, all pairs, in nats.

    Such paths are somewhat longer than geodesics: at constant levels at most 1.0824 times on
    squares, 1.1281 times on cubes, more on oblong cells (1.387 times on cells of 1 x 1 x 10).
    For maps in more than two dimensions (places with a height, say), as the `metric` of
    :func:`~whereish.mechanisms.channels.optimal.optimal_channel` and
    :func:`~whereish.mechanisms.channels.exponential.exponential_channel`.

    Parameters
    ----------
    levels
        eps per metre at the centres, one axis per dimension.
    cell
        Side of a cell, "500 m" or a number of metres; or a tuple with one for each axis.
    divide_stencil
        Divide the distances by that factor, computed for these cells, so that they are at most
        the geodesic ones (proven for constant levels).

    Raises
    ------
    InvalidInput
        If levels are not > 0 and finite, or sides do not fit the axes.

    Examples
    --------
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
    sides = _sides(cell, eps.ndim)
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
    distances = np.minimum(distances, distances.T)
    return distances / lattice_factor(sides, eps.shape) if divide_stencil else distances


def lattice_factor(sides: tuple[float, ...], shape: tuple[int, ...]) -> float:
    """The largest ratio of a path over steps to the straight line, at constant levels.

    Only axes with more than one cell count; the best order of them is found set by set.

    >>> round(lattice_factor((1.0, 1.0, 1.0), (5, 5, 5)), 4)
    1.1281
    """
    moving = [side for side, count in zip(sides, shape, strict=True) if count > 1]
    squared = {frozenset[int](): 0.0}  # of the gradient along the axes of a set
    for size in range(1, len(moving) + 1):
        for axes in map(frozenset, itertools.combinations(range(len(moving)), size)):
            length = math.hypot(*(moving[axis] for axis in axes))
            squared[axes] = max(
                squared[axes - {last}] + _increment(moving, axes, last, length) ** 2
                for last in axes
            )
    return math.sqrt(max(1.0, squared[frozenset(range(len(moving)))]))


def _increment(sides: list[float], axes: frozenset[int], last: int, length: float) -> float:
    """(f(A) - f(A without its last axis)) / a_last, without cancellation."""
    before = math.hypot(*(sides[axis] for axis in axes if axis != last))
    return sides[last] / (length + before)


def _sides(cell: Side | tuple[Side, ...], dimensions: int) -> tuple[float, ...]:
    """One side in metres for each axis."""
    given = cell if isinstance(cell, tuple) else (cell,) * dimensions
    sides = tuple(
        Length.positive(side, name="cell").m if isinstance(side, str | Length) else side
        for side in given
    )
    plain = all(
        np.asarray(side).ndim == 0 and np.asarray(side).dtype.kind in "iuf" for side in sides
    )
    if (
        not plain
        or len(sides) != dimensions
        or not all(math.isfinite(side) and side > 0 for side in sides)
    ):
        raise InvalidInput(
            f"cell must be a side in metres > 0, or a tuple with one for each of {dimensions} axes;"
            f" got {cell!r}"
        )
    return tuple(float(side) for side in sides)


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
