"""The grid of every other cell, and the way back: where the law of a fine map starts.

A path along two equal edges of the fine grid is an edge of the coarse one. Its price is theirs,
averaged over the four fine cells of a coarse cell. A law on the coarse grid says of every edge
which share of its promise is left, and of every coarse cell its weight: a fine edge takes over
the share of the edge in its direction, a fine cell a quarter of the weight. That is a guess which
rounds of lowering (:mod:`whereish.solvers.eikonal.lowering`) start from, no more: whatever they
end with is certified on the fine grid itself.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS, edge_slices
from whereish.solvers.geodesic.graph_metric import GraphMetric

__all__ = [
    "coarse_cells",
    "coarse_levels",
    "coarse_prices",
    "coarse_sums",
    "fine_shares",
    "fine_weights",
]


def coarse_cells(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The coarse cells that hold a chosen one."""
    return np.isfinite(_mean_of_four(np.where(chosen, 1.0, np.inf)))


def coarse_levels(eps: FloatArray) -> FloatArray:
    """Means over the fine cells of each coarse cell."""
    return _mean_of_four(eps)


def coarse_sums(values: FloatArray, stride: int) -> FloatArray:
    """Sums over the fine cells of each cell that is `stride` of them wide and high."""
    rows, cols = (range(0, count, stride) for count in values.shape)
    return np.asarray(np.add.reduceat(np.add.reduceat(values, rows, axis=0), cols, axis=1))


def coarse_prices(prices: FloatArray) -> FloatArray:
    """Prices on every other cell; ``inf`` where an edge leaves the grid."""
    rows, cols, half = prices.shape
    parts = []
    for k, step in enumerate(STENCILS[2 * half]):
        tail, head = edge_slices((rows, cols), step)
        twice = np.full((rows, cols), np.inf)
        twice[tail] = prices[*tail, k] + prices[*head, k]
        parts.append(_mean_of_four(twice))
    return np.stack(parts, axis=-1)


def _mean_of_four(values: FloatArray) -> FloatArray:
    """Means of the finite values among those of each coarse cell, ``inf`` where there is none."""
    rows, cols = values.shape
    even = np.full((rows + rows % 2, cols + cols % 2), np.inf)
    even[:rows, :cols] = values
    four = np.stack([even[a::2, b::2] for a, b in product((0, 1), repeat=2)])
    known = np.isfinite(four)
    count = known.sum(axis=0)
    total = np.where(known, four, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def fine_shares(metric: GraphMetric, promised: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Price over promise on a coarse grid, for the edges of the fine one; 1 where unknown."""
    known = np.isfinite(promised)
    prices = metric.weights * metric.quantum
    return _spread(np.where(known, prices / np.where(known, promised, 1.0), 1.0), shape)


def fine_weights(weights: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """A quarter of coarse weights for each fine cell, in flat order."""
    rows, cols = (shape[0] + 1) // 2, (shape[1] + 1) // 2
    return _spread(weights.reshape(rows, cols) / 4.0, shape).ravel()


def _spread(values: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """The value of the coarse cell that each fine cell is part of."""
    return np.repeat(np.repeat(values, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]
