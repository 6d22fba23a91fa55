"""Columns of a table while a law is searched for, and the functions of a map that they are.

A column is weights_y·e^{-q·D(u, y)} with integers D(., y) that keep a metric of the map.  Two steps
take turns (:mod:`~whereish.solvers.tables.carried` says why): columns are divided by the sums of
the rows, and replaced by the middle of the functions that keep the metric below and above them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.tables.landmarks import LandmarkChannel

__all__ = ["Columns", "extended", "middle"]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns weights_y·e^{-quantum·distances(y, u)}."""

    distances: NDArray[np.uint16]
    log_weights: FloatArray
    quantum: float

    @property
    def sums(self) -> FloatArray:
        """Z(u)."""
        total = np.zeros(self.distances.shape[1])
        for layer, weight in zip(self.distances, self.log_weights, strict=True):
            total += np.exp(weight - self.quantum * layer)
        return total

    def normalised(self) -> Columns:
        """Divided by the sums, up to rounding; the nearest cell of every report is at 0."""
        moved = np.rint(np.log(self.sums) / self.quantum).astype(np.int32)
        wide = self.distances + moved
        least = wide.min(axis=1)
        distances = np.minimum(wide - least[:, None], LIMIT).astype(np.uint16)
        return Columns(distances, self.log_weights - self.quantum * least, self.quantum)

    def middle(self, metric: GraphMetric) -> Columns:
        """Every column between the functions that keep the metric."""
        distances = middle(metric, self.distances, LIMIT - self.distances)
        return Columns(distances, self.log_weights, self.quantum)


def middle(
    metric: GraphMetric, below: NDArray[np.uint16], above: NDArray[np.uint16]
) -> NDArray[np.uint16]:
    """Half way from the smallest above `LIMIT - above` to the largest below `below`.

    A half that is rounded down keeps the metric: equal edges move it by whole numbers.
    """
    largest = metric.lipschitz(below).astype(np.uint32)
    smallest = LIMIT - metric.lipschitz(above).astype(np.uint32)
    return ((largest + smallest) // 2).astype(np.uint16)


def extended(metric: GraphMetric, best: LandmarkChannel) -> Columns:
    """The middle of the largest and the smallest extension of each column of the landmarks."""
    with np.errstate(divide="ignore"):
        away = -np.log(best.matrix.T)
    least = away.min(axis=1)
    known = np.minimum(np.rint((away - least[:, None]) / metric.quantum), LIMIT).astype(np.uint16)
    below, above = (np.full((len(known), metric.cells), LIMIT, np.uint16) for _ in range(2))
    below[:, best.cells], above[:, best.cells] = known, LIMIT - known
    return Columns(middle(metric, below, above), -least, metric.quantum)
