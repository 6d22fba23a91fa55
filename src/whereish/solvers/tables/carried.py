"""A channel of landmarks carried to all cells of a map, and certified there.

A column of the channel is a function of landmarks whose logarithm keeps the map's metric d, and so
has extensions to all cells that keep it, too (McShane): between the largest,
min_x a(x) + d(u, x), and the smallest, max_x a(x) - d(u, x), a = -ln K(x, y).  Their middle is a
good guess of -ln P(y | u), but the sums of a cell are not 1, and dividing by them moves the edges.
So two steps take turns:

* every column is divided by the sums Z(u): rows are laws, columns keep a little less than d;
* every column is replaced by the middle of the largest function below it and the smallest above it
  that keep d (both are shortest paths in integers, as in
  :mod:`~whereish.solvers.geodesic.graph_metric`).

Slopes of ln Z fall by a tenth to a fifth with every turn.  As soon as they fit into what the
columns leave of the promise, the law is made of integers and certified by
:mod:`~whereish.solvers.tables.law`: privacy rests on that alone.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.certify import RESERVE, edges_between, worst_edge
from whereish.solvers.geodesic.graph_metric import HORIZON, GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.tables.columns import Columns, extended
from whereish.solvers.tables.error import table_means
from whereish.solvers.tables.landmarks import best_of_landmarks
from whereish.solvers.tables.law import (
    LARGEST_TABLE,
    ReportTable,
    TableLaw,
    table_factors,
    table_sums,
)

__all__ = ["free_cells", "horizon_of", "horizon_over", "law_of_landmarks", "metric_of_table"]

_TURNS = 120
_LEFT = 0.002  # of a price, that columns leave for the slopes of ln Z
_ROUNDED = 2  # quanta, likewise: what rounding moves an edge by, once as a middle and once divided


def metric_of_table(promised: FloatArray, horizon: float) -> GraphMetric:
    """What columns keep of promised prices: less the part that is left for the slopes of ln Z.

    `horizon` is in eighths of a nat.
    """
    metric = GraphMetric.from_prices(promised, horizon=horizon, keep=1.0 - RESERVE - _LEFT)
    weights = np.maximum(metric.weights, _ROUNDED) - np.uint16(_ROUNDED)
    edges = edges_between(metric, np.ones(metric.cells, np.bool_))
    return GraphMetric(np.where(edges, weights, np.uint16(LIMIT)), metric.quantum)


def horizon_of(metric: GraphMetric) -> float:
    """The horizon of a table's metric: a whole number of eighths, which no rounding moves."""
    return round(8 * metric.quantum * LIMIT) / 8


def horizon_over(span: float) -> float:
    """A horizon beyond the span of a map, in eighths of a nat."""
    return min(math.ceil(8.2 * span + 1.0) / 8, HORIZON)


def law_of_landmarks(
    promised: FloatArray, places: FloatArray, prior: FloatArray
) -> ReportTable | None:
    """The certified law of a map's landmarks on all of its cells.

    Parameters
    ----------
    promised : (rows, cols, half) edge prices, ``inf`` where there is no edge.
    places : (cells, 2) centres.
    prior : over the cells; it says what is best, and nothing about what is kept.

    None where the map is too wide for a table, or the turns did not end.
    """
    best = best_of_landmarks(GraphMetric.from_prices(promised), places, prior)
    if best is None or best.matrix.shape[1] * len(places) > LARGEST_TABLE:
        return None
    metric = metric_of_table(promised, horizon_over(best.span))
    table = extended(metric, best)
    for turn in range(1, _TURNS + 1):
        table = table.normalised().middle(metric)
        if _worst_change(metric, promised, table.sums) <= 1.0:
            law = _integer_law(metric, promised, table, turn, places, prior)
            if law.factor <= 1.0:
                return law
    return None


def _worst_change(metric: GraphMetric, promised: FloatArray, sums: FloatArray) -> float:
    """The largest share of an edge's promise that its weight and the slope of ln Z take."""
    logs, worst = np.log(sums).reshape(metric.shape), 0.0
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        if logs[tail].size:
            used = metric.weights[*tail, k] * metric.quantum + np.abs(logs[tail] - logs[head])
            worst = max(worst, float((used / promised[*tail, k]).max()))
    return worst


def _integer_law(
    metric: GraphMetric,
    promised: FloatArray,
    table: Columns,
    turn: int,
    places: FloatArray,
    prior: FloatArray,
) -> ReportTable:
    """The law in integers, with its exact factor, each report called by a cell near its mean."""
    weights = integer_weights(np.exp(table.log_weights), float(table.sums.max()))
    distances, weights = table.distances[weights > 0], weights[weights > 0]
    sums = table_sums(metric, distances, weights)
    law = TableLaw(metric, weights, sums, np.inf, (0, 0), turn, distances, promised)
    factor, worst = worst_edge(table_factors(law), metric)
    reported = free_cells(table_means(law, places, prior), places)
    return ReportTable(metric, weights, sums, factor, worst, turn, distances, promised, reported)


def free_cells(wanted: FloatArray, places: FloatArray) -> IntArray:
    """A cell for each wanted place, the nearest that is not taken."""
    out = np.empty(len(wanted), np.int64)
    free = np.ones(len(places), np.bool_)
    for number, place in enumerate(wanted):
        away = np.where(free, ((places - place) ** 2).sum(axis=1), np.inf)
        out[number] = away.argmin()
        free[out[number]] = False
    return out
