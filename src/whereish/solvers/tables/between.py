"""The law of landmarks on places: its table at the nodes, the geometric spline between them.

The table stands where the laws of distances do (:mod:`~whereish.solvers.splines.lattice`), and a
place between nodes has the normalised geometric mean of the nine rows around it.  What must hold is
|grad ln P(y | u)| <= eps(u) at every place u and for every report y.  Columns that keep a metric of
edges nearly do: where rows sum to 1 the slope of ln P is that of its column.  So the best channel
of the landmarks is carried to the nodes at the prices from which the search for a law of distances
starts, and rounds follow: slopes at points say which edges are too steep, their shares fall
(:mod:`~whereish.solvers.splines.shares`), and columns are divided by the sums of rows and brought
to the middle of what keeps the new edges, a few times.  A proof
(:mod:`~whereish.solvers.splines.bound`) says by how much points fall short, and the last one
certifies the table, as integers; privacy rests on that alone.  If rounds do not end, all edges fall
alike: slopes are at most twice the edges' prices per length, so that a small enough share passes.
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
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.splines.points import point_grid
from whereish.solvers.splines.shares import EdgeShares
from whereish.solvers.splines.slopes import PointSlopes, slopes_between
from whereish.solvers.tables.carried import free_cells, horizon_over
from whereish.solvers.tables.columns import Columns, extended
from whereish.solvers.tables.error import table_means
from whereish.solvers.tables.landmarks import best_of_landmarks
from whereish.solvers.tables.law import LARGEST_TABLE, ReportTable, table_factors, table_sums

__all__ = ["PROOF_BAR", "kept_metric", "landmarks_between"]

PROOF_BAR = 0.995
"""Of eps: slopes above that are bounded sharply in a proof."""

_TURNS = 40  # of normalising and the middle, before the first round
_AGAIN = 6  # likewise after every round
_ROUNDS = 40  # after which all edges fall alike
_SCALINGS = 60
_WHOLE = 5  # rounds from one look at all points to the next
_MISSING = 1e-3  # what points lack of the proven slopes, before these are known
_AIM = 1.5e-3  # below 1: what shares fall to
_SAFE = 5e-4  # more is taken to be missing where a proof has failed


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
    prices : of edges between nodes, from which shares fall.
    prior : over the cells; it says what is best, and nothing about what is kept.

    None where the map is too wide for a table.
    """
    lattice = lattice_of(eps.shape, first.used.shape)
    share = lattice.shares(prior.reshape(eps.shape)).sum(axis=1)
    height, width = lattice.sides(cell, eps.shape)
    places = np.indices(first.used.shape).reshape(2, -1).T * (height / width, 1.0)  # free of units
    best = best_of_landmarks(GraphMetric.from_prices(prices), places, share)
    if best is None or best.matrix.shape[1] * len(places) > LARGEST_TABLE:
        return None
    search = _Search(first, eps, cell, prices, horizon_over(best.span))
    built = search.settled(extended(search.metric, best), progress)
    return None if built is None else _called(built, places, share)


class _Search:
    """Rounds in which shares of edges fall until a table is certified."""

    def __init__(
        self,
        first: BuiltLaw,
        eps: FloatArray,
        cell: tuple[float, float],
        prices: FloatArray,
        horizon: float,
    ) -> None:
        self._first, self._map = first, (eps, cell)
        self._points = PointSlopes(first, eps, cell)
        self._whole = GraphMetric.from_prices(prices, horizon=horizon)
        self._shares = EdgeShares.whole(first.used.shape)
        self._missing = np.full(first.used.shape, _MISSING)
        self.metric = self._whole

    def settled(self, columns: Columns, progress: RoundProgress | None) -> BuiltLaw | None:
        """The certified law of columns, or of what is left of them."""
        columns = self._turned(columns, _TURNS)
        whole = True
        for number in range(_ROUNDS + _SCALINGS):
            built = self._law(columns, number)
            look = self._points.everywhere if whole else self._points.chosen
            slopes = look(built) + self._missing[:, :, None, None]
            worst, whole = float(slopes.max()), number % _WHOLE == 0
            if progress is not None:
                progress(number, worst)
            if worst <= 1.0 or number >= _ROUNDS:
                proven = slopes_between(built, *self._map, bar=PROOF_BAR)
                worst = float(proven.factors.max())
                if worst <= 1.0:
                    return replace(built, gradient_factor=worst, acceptance=proven.acceptance)
                self._learn(built, proven.factors)
                slopes, whole = self._points.everywhere(built) + self._missing[:, :, None, None], True
            left: EdgeShares | float = (1.0 - _AIM) / worst
            if number < _ROUNDS:
                left = EdgeShares.left_by(point_grid(slopes) / (1.0 - _AIM)).damped(0.0)
            self._shares = self._shares.times(left)
            edges = self._shares.of(self._whole.weights, 0, self._whole.neighbours)
            self.metric = GraphMetric(edges, self._whole.quantum)
            columns = self._turned(columns, _AGAIN)
        return None

    def _turned(self, columns: Columns, turns: int) -> Columns:
        for _ in range(turns):
            columns = columns.normalised().middle(self.metric)
        return columns

    def _learn(self, built: BuiltLaw, proven: FloatArray) -> None:
        """What points lack of slopes that were proven."""
        points = self._points.everywhere(built).max(axis=(2, 3))
        missing = np.where(proven > PROOF_BAR, proven - points, self._missing)
        self._missing = missing + _SAFE * (proven > 1.0)

    def _law(self, columns: Columns, rounds: int) -> BuiltLaw:
        """Columns as integers; reports have no names as yet."""
        counts = integer_weights(np.exp(columns.log_weights), float(columns.sums.max()))
        given = counts > 0
        distances, weights = columns.distances[given], counts[given]
        sums = table_sums(self.metric, distances, weights)
        promised, names = self._first.promised, np.arange(len(weights))
        table = ReportTable(
            self.metric, weights, sums, np.inf, (0, 0), rounds, distances, promised, names
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
