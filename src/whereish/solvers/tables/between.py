"""The law of landmarks on places: its table at the nodes, the geometric spline between them.

The table stands where the laws of distances do (:mod:`~whereish.solvers.splines.lattice`), and a
place between nodes has the normalised geometric mean of the nine rows around it.  What must hold is
|grad ln P(y | u)| <= eps(u) at every place u and for every report y.  Columns that keep a metric of
edges nearly do: where rows sum to 1 the slope of ln P is that of its column.  So the best channel
of the landmarks is carried to the nodes at about the prices from which the search for a law of
distances starts, and smoothed where the map is (:mod:`~whereish.solvers.tables.smoothing`).  Then
rounds follow: columns are projected to slopes of at most eps at points of all squares
(:mod:`~whereish.solvers.tables.projection`) and divided by the sums of rows.  While that does not
help, all columns are made a little flatter.  A proof (:mod:`~whereish.solvers.splines.bound`) says
by how much points fall short, and the last one certifies the table, as integers; privacy rests on
that alone.  If rounds do not end, columns only become flatter: slopes are at most twice those of
the columns, so that a small enough share of them passes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.cells import BuiltLaw, RoundProgress
from whereish.solvers.eikonal.certify import worst_edge
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.splines.points import all_points, sampled_means, sampled_slopes
from whereish.solvers.splines.slopes import leave_out_rim, slopes_between
from whereish.solvers.tables.blocks import laws_of_table
from whereish.solvers.tables.carried import free_cells, horizon_over
from whereish.solvers.tables.columns import extended
from whereish.solvers.tables.error import table_means
from whereish.solvers.tables.landmarks import LandmarkChannel, best_of_landmarks
from whereish.solvers.tables.law import LARGEST_TABLE, ReportTable, table_factors, table_sums
from whereish.solvers.tables.projection import levels_at_points, project_slopes, projections
from whereish.solvers.tables.smoothing import smoothed

__all__ = ["PROOF_BAR", "kept_metric", "landmarks_between"]

PROOF_BAR = 0.995
"""Of eps: slopes above that are bounded sharply in a proof."""

_PRICED = 1.005  # of the prices given, that columns keep before they are smoothed
_TURNS = 20  # of normalising and the middle
_ROUNDS = 30  # after which columns only become flatter
_SCALINGS = 100
_SWEEPS = 3  # of projections in a round
_FURTHER = 0.002  # below its limit, to which a slope is projected
_MISSING = 1e-3  # what points lack of the proven slopes, before these are known
_AIM = 1e-3  # below 1 less that: limits of projections
_SAFE = 3e-4  # more is taken to be missing where a proof has failed
_MOST_MISSING = 0.03
_STALLED = 0.7  # of the excess of the round before: what is left where projecting helps
_FLATTER = 0.02  # at most, in a round
_WHOLE = 5  # rounds, of which the first two look at all points,
_STEEP = 0.97  # and the others at those at which a slope was above that share of eps


def landmarks_between(
    first: BuiltLaw,
    eps: FloatArray,
    cell: tuple[float, float],
    prices: FloatArray,
    prior: FloatArray,
    progress: RoundProgress | None = None,
) -> BuiltLaw | None:
    """The certified law of a map's landmarks on its places.

    Parameters
    ----------
    first : a law of distances on the same nodes, without a frame, which the result carries.
    eps, cell : levels at the centres of cells, and the height and width of a cell.
    prices : of edges between nodes, at which laws of distances are searched for.
    prior : over the cells; it says what is best, and nothing about what is kept.

    None where the map is too wide for a table.
    """
    lattice = lattice_of(eps.shape, first.used.shape)
    share = lattice.shares(prior.reshape(eps.shape)).sum(axis=1)
    height, width = lattice.sides(cell, eps.shape)
    units = np.array([height / width, 1.0])  # free of them
    places = np.asarray(np.indices(first.used.shape).reshape(2, -1).T * units, np.float64)
    prices = _PRICED * prices
    best = best_of_landmarks(GraphMetric.from_prices(prices), places, share)
    if best is None or best.matrix.shape[1] * len(places) > LARGEST_TABLE:
        return None
    metric = GraphMetric.from_prices(prices, horizon=horizon_over(best.span))
    built = _Search(first, eps, cell, metric).settled(_carried(metric, prices, best), progress)
    return None if built is None else _called(built, places, share)


def _carried(metric: GraphMetric, prices: FloatArray, best: LandmarkChannel) -> FloatArray:
    """(reports, nodes) logarithms of the landmarks' channel at all nodes, smoothed."""
    columns = extended(metric, best)
    for _ in range(_TURNS):
        columns = columns.normalised().middle(metric)
    logs = columns.log_weights[:, None] - columns.quantum * columns.distances
    across = prices[:, :-1, metric.steps.index((0, 1))]
    along = prices[:-1, :, metric.steps.index((1, 0))]
    smooth = smoothed(logs.reshape(-1, *metric.shape), across, along)
    return _normalised(smooth.reshape(logs.shape))


def _normalised(logs: FloatArray) -> FloatArray:
    """Logarithms of probabilities: rows of the table sum to 1."""
    sums = np.zeros(logs.shape[1])
    for column in logs:
        sums += np.exp(column)
    return np.asarray(logs - np.log(sums))


class _Search:
    """Rounds after which the slopes of a table are certified."""

    def __init__(
        self, first: BuiltLaw, eps: FloatArray, cell: tuple[float, float], metric: GraphMetric
    ) -> None:
        lattice = lattice_of(eps.shape, first.used.shape)
        self._first, self._map, self._metric = first, (eps, cell), metric
        self._levels, self._sides = lattice.square_levels(eps), lattice.sides(cell, eps.shape)
        self._inside = all_points(first.used.shape)
        if lattice.half_rim:
            leave_out_rim(self._inside)
        self._points = self._inside
        self._allowed = levels_at_points(self._levels) * max(self._sides)
        self._maps = projections(self._sides)
        self._missing = np.full(first.used.shape, _MISSING)

    def settled(self, logs: FloatArray, progress: RoundProgress | None) -> BuiltLaw | None:
        """The certified law of columns, or of what is left of them."""
        before = np.inf
        for number in range(_ROUNDS + _SCALINGS):
            built = self._law(logs, number)
            means, slopes = self._slopes(built, whole=number % _WHOLE < 2)
            worst = float((slopes + self._missing).max())
            if progress is not None:
                progress(number, worst)
            if number == 0 and worst < 1.0 - _AIM:  # steeper columns have less error
                logs = _normalised((1.0 - _AIM / 2) / worst * logs)
                continue
            if worst <= 1.0:
                proven = slopes_between(built, *self._map, bar=PROOF_BAR)
                if proven.factors.max() <= 1.0:
                    factor = float(proven.factors.max())
                    return replace(built, gradient_factor=factor, acceptance=proven.acceptance)
                self._learn(slopes, proven.factors)
                worst = float((slopes + self._missing).max())
            excess = worst - 1.0
            if number >= _ROUNDS or excess > _STALLED * before:
                logs = _normalised((1.0 - min(excess, _FLATTER)) * logs)
            before = excess
            if number < _ROUNDS:
                logs = _normalised(self._projected(logs, means))
        return None

    def _slopes(self, built: BuiltLaw, *, whole: bool) -> tuple[FloatArray, FloatArray]:
        """Means of gradients at points, and the largest slopes around every node.

        If not of the `whole`, at the points that were steep when all were looked at.
        """
        assert built.table is not None
        laws = laws_of_table(built.table)
        chosen = self._inside if whole else self._points
        means = sampled_means(laws, self._sides, chosen)
        slopes = sampled_slopes(laws, self._levels, self._sides, chosen, means)
        if whole:
            self._points = chosen & (slopes > _STEEP)
        return means, slopes.max(axis=(2, 3))

    def _learn(self, points: FloatArray, proven: FloatArray) -> None:
        """What points lack of slopes that were proven."""
        missing = np.where(proven > PROOF_BAR, proven - points, self._missing)
        self._missing = np.minimum(missing + _SAFE * (proven > 1.0), _MOST_MISSING)

    def _projected(self, logs: FloatArray, means: FloatArray) -> FloatArray:
        """Columns whose slopes at points are nearly at most eps."""
        share = 1.0 - _AIM - self._missing
        limits = np.where(self._points, self._allowed * share[:, :, None, None], 0.0)
        nodes, shape = logs.shape[1], self._metric.shape
        limits32 = limits.reshape(nodes, -1).astype(np.float32)
        means32 = means.reshape(nodes, -1, 2).astype(np.float32)
        out = np.empty_like(logs)
        for start in range(0, len(logs), LANES):
            part = logs[start : start + LANES]
            middles = (part.min(axis=1) + part.max(axis=1)) / 2
            A = np.zeros((nodes, LANES), np.float32)
            A[:, : len(part)] = (part - middles[:, None]).T
            for sweep in range(_SWEEPS):
                back = sweep % 2 == 1
                project_slopes(A, shape, self._maps, means32, limits32, _FURTHER, back)
            out[start : start + LANES] = A[:, : len(part)].T + middles[:, None]
        return out

    def _law(self, logs: FloatArray, rounds: int) -> BuiltLaw:
        """Columns as integers; reports have no names as yet."""
        least = -logs.max(axis=1)
        quanta = np.rint((-logs - least[:, None]) / self._metric.quantum)
        counts = integer_weights(np.exp(-least), 1.0)
        given = counts > 0
        distances, weights = np.minimum(quanta[given], LIMIT).astype(np.uint16), counts[given]
        sums = table_sums(self._metric, distances, weights)
        promised, names = self._first.promised, np.arange(len(weights))
        table = ReportTable(
            self._metric, weights, sums, np.inf, (0, 0), rounds, distances, promised, names
        )
        return replace(self._first, table=table)


def _called(built: BuiltLaw, places: FloatArray, prior: FloatArray) -> BuiltLaw:
    """With reports called by nodes near their means, and the edges that the table keeps."""
    table = built.table
    assert table is not None
    metric = kept_metric(table.distances, table.metric)
    table = replace(
        table, metric=metric, reported=free_cells(table_means(table, places, prior), places)
    )
    factor, worst = worst_edge(table_factors(table), metric)
    return replace(built, table=replace(table, factor=factor, worst=worst))


def kept_metric(distances: NDArray[np.uint16], like: GraphMetric) -> GraphMetric:
    """The smallest edges that all columns keep, in the form of another metric."""
    edges = np.full(like.weights.shape, LIMIT, np.uint16)
    grid = distances.reshape(-1, *like.shape)
    for k, step in enumerate(like.steps):
        tail, head = edge_slices(like.shape, step)
        most = np.zeros(edges[*tail, k].shape, np.int32)
        for layer in grid:
            np.maximum(most, np.abs(layer[tail].astype(np.int32) - layer[head]), out=most)
        edges[*tail, k] = most
    return GraphMetric(edges, like.quantum)
