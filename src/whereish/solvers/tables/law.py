"""Laws that are tables: what every cell reports, one distance for every report.

    P(y | u) = k_y·t[D(u, y)] / Z(u)

with the integer weights k and table t of :mod:`~whereish.solvers.geodesic.masses`, and D(u, y) any
integers.  Their certificate takes the largest change over the reports themselves, with its sign,

    max_y |ln P(y | u) - ln P(y | u')| <= max(q·up - s, q·down + s) <= W(u, u'),

up = max_y D(u,y) - D(u',y), down = max_y D(u',y) - D(u,y), s = ln Z(u') - ln Z(u).  It asks
nothing of D: where D is a distance to a place or a set, up and down are at most the edge in use,
and this is never more than what :mod:`~whereish.solvers.eikonal.certify` certifies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.certify import EdgeLaw
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import SUM_LIMIT, check_sums, checked_weights, decay_table

__all__ = [
    "LARGEST_TABLE",
    "ReportTable",
    "TableLaw",
    "factors_of",
    "largest_changes",
    "table_factors",
    "table_sums",
]

LARGEST_TABLE = 2**25
"""Entries of the largest table of distances (cells times reports): 64 MB."""

_GUARD = 1e-12  # relative: rounding of the logarithms


@dataclass(frozen=True, eq=False)
class TableLaw(EdgeLaw):
    """Masses k_y·t[D(u, y)] of reports y.

    Attributes
    ----------
    distances : (reports, cells) the integers D.
    promised : edge prices that the law keeps.
    """

    distances: NDArray[np.uint16]
    promised: FloatArray

    def masses(self, cells: NDArray[np.intp] | slice) -> NDArray[np.uint64]:
        """(cells, answers) integer masses; each row sums to its entry of `sums`."""
        table = decay_table(self.metric.quantum)
        return np.asarray(self.weights * table[self.distances[:, cells].T])


@dataclass(frozen=True, eq=False)
class ReportTable(TableLaw):
    """A table of which each report is called by a cell.

    Attributes
    ----------
    reported : the cells, each once.
    """

    reported: IntArray


def table_factors(law: TableLaw) -> FloatArray:
    """The share of its promise that each edge uses, from the law's numbers alone."""
    changes, _ = largest_changes(law.metric, law.distances, law.weights, law.sums)
    return factors_of(changes, law.promised)


def factors_of(changes: FloatArray, promised: FloatArray) -> FloatArray:
    """Changes over what is promised, NaN where there is no edge."""
    with np.errstate(invalid="ignore"):
        return np.asarray(changes * (1.0 + _GUARD) / promised)


def largest_changes(
    metric: GraphMetric,
    distances: NDArray[np.uint16],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
) -> tuple[FloatArray, FloatArray]:
    """Per edge, bounds of |ln P(y | u) - ln P(y | u')| and of q·|D(u, y) - D(u', y)|, over all y.

    NaN where there is no edge.
    """
    D = distances[weights > 0].reshape(-1, *metric.shape)
    Z = sums.astype(np.int64).reshape(metric.shape)  # sums stay below 2^63
    out = np.full((*metric.shape, len(metric.steps)), np.nan)
    steps = out.copy()
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        if out[*tail, k].size == 0:
            continue
        up = np.full(out[*tail, k].shape, -LARGEST_TABLE, np.int32)
        down = up.copy()
        for layer in D:
            change = layer[tail].astype(np.int32) - layer[head]
            np.maximum(up, change, out=up)
            np.maximum(down, -change, out=down)
        # The difference of the integers is exact; log1p adds one rounding.
        slope = np.log1p((Z[head] - Z[tail]) / Z[tail])
        out[*tail, k] = np.maximum(metric.quantum * up - slope, metric.quantum * down + slope)
        steps[*tail, k] = metric.quantum * np.maximum(up, down)
    return out, steps


def table_sums(
    metric: GraphMetric, distances: NDArray[np.uint16], weights: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The exact sum of the masses of every cell; weights that could wrap it are refused."""
    checked_weights(weights, len(distances))
    table = decay_table(metric.quantum)
    total = np.zeros(distances.shape[1], np.uint64)
    for weight, layer in zip(weights, distances, strict=True):
        total = np.minimum(total + weight * table[layer], np.uint64(SUM_LIMIT))
    check_sums(total)
    return total
