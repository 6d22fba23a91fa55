"""The best channel of a few cells of a map, its landmarks.

Where a map is a few nats wide, the best channel for a prior has a few dozen reports, each of which
says a sector of the map rather than a place; no law of the form w(y)·e^{-d(u,y)}/Z(u) does.  Some
hundreds of cells tell what these sectors are.  Their programme is small: the landmarks with the
map's own metric between them, and everybody's loss counted at the nearest landmark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.solvers.geodesic.graph_metric import GraphMetric

__all__ = ["LandmarkChannel", "best_of_landmarks"]

_COUNT = 300
"""Landmarks, about; half as many leave one or two hundredths of the error to gain."""

_GAP = 0.02
"""To which the programme is solved; what carrying its channel to all cells loses is as much."""

_RARE = 1e-4  # of all reports: columns that are left out
_WIDEST = 20.0  # nats: a wider map is beyond the table's horizon, and has no use for sectors


@dataclass(frozen=True, eq=False)
class LandmarkChannel:
    """Probabilities of reports at landmarks.

    Attributes
    ----------
    cells : of the landmarks.
    matrix : (landmarks, reports) probabilities; rows sum to 1 but for reports that are rare.
    span : nats; no two cells of the map are farther from each other.
    """

    cells: IntArray
    matrix: FloatArray
    span: float


def best_of_landmarks(
    metric: GraphMetric, places: FloatArray, prior: FloatArray
) -> LandmarkChannel | None:
    """The channel of least squared error among landmarks, for a prior over all cells.

    `metric` is what may be used of the map; `places` are the cells' centres.  None where the map is
    more than 20 nats wide.
    """
    from whereish.solvers.optimal.solve import solve_optimal  # loads SciPy, which others do without

    cells = _spread(metric.shape, _COUNT)
    distances = metric.distances(cells) * metric.quantum
    span = float(distances.max() + distances.min(axis=0).max())
    if span > _WIDEST:
        return None
    nearest = distances.argmin(axis=0)
    mass, first, second = (
        np.array([np.bincount(nearest, prior * moment, len(cells)) for moment in moments])
        for moments in (np.ones((1, len(prior))), places.T, (places**2).sum(axis=1)[None])
    )
    told = places[cells]
    # sum over u nearest to x of prior_u |place_u - told_z|^2, one row for each z
    cost = second - 2.0 * told @ first + (told**2).sum(axis=1)[:, None] * mass
    between = distances[:, cells]
    found = solve_optimal(
        np.maximum(cost, 0.0), np.minimum(between, between.T), closed=True, gap=_GAP
    )
    share = mass[0] @ found.matrix
    return LandmarkChannel(cells, found.matrix[:, share > _RARE * share.sum()], span)


def _spread(shape: tuple[int, int], count: int) -> IntArray:
    """About `count` cells in rows and columns, as evenly as the shape allows."""
    rows = min(max(round(math.sqrt(count * shape[0] / shape[1])), 1), shape[0])
    columns = min(max(round(count / rows), 1), shape[1])
    i, j = (
        ((np.arange(k) + 0.5) * n / k).astype(np.int64)
        for k, n in zip((rows, columns), shape, strict=True)
    )
    return np.asarray((i[:, None] * shape[1] + j).ravel())
