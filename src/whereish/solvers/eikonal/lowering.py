"""The largest map below the promised one that certifies, found by alternation.

A law is a pair of edge prices W' <= W and weights w >= 0; with Z = E'w it is certified
when W' + |ln Z(u) - ln Z(u')| <= W on every edge between secrets
(:mod:`~whereish.solvers.eikonal.certify`).  Each half of a round holds one of the two:

* **Weights, prices held**: the nonnegative weights of
  :mod:`~whereish.solvers.eikonal.weights`, which make ln Z as flat as they can.
* **Prices, weights held** (:func:`lowered_prices`): every edge falls to what the slope of
  ln Z leaves of it,

      W'_{k+1} = max(min(W'_k, (1-r)·W - |ln Z_k(u) - ln Z_k(u')|), (1-r)·W/2),

  r the reserve.  *This ends with a certificate.*  Prices never rise, and an edge that fails
  falls by more than r·W.  An edge at (1-r)·W/2 or less never fails, since
  |ln Z(u) - ln Z(u')| <= d'(u,u') <= W'.  So each of the m edges falls at most 1/(2r) + 1
  times; in practice the excess halves with every product, and ten products do.

With weights held, lowering one edge moves ln Z at both its ends towards each other and
little else; solving for the weights after each step, as one would do first, makes other
cells lose their weight, new slopes, and rounds that swing.

The next round starts from (1-r)·W - |ln Z(u) - ln Z(u')|, Z that of the law just
certified, which is nowhere below its prices: whatever slack lowering left is given back,
and so is, once the weights are solved, what their flatter ln Z leaves.
Every round ends with a certified law, and the one of the least squared error is kept, so
rounds can only improve it; they end when one gains less than a hundredth.  That error is the
geometric mean of two, of reports as they are drawn and moved to their posterior means: on maps of
few nats lowering less leaves fewer and farther reports, which moved tell more and as such less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.certify import (
    RESERVE,
    CertifiedLaw,
    edge_factors,
    edges_between,
    log_ratios,
    metric_in_use,
    residual_allowed,
    worst_edge,
)
from whereish.solvers.eikonal.preconditioner import Factor, approximate_inverse_factor
from whereish.solvers.eikonal.weights import (
    closed_form_weights,
    nonnegative_weights,
)
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import decay_table, integer_weights

__all__ = ["Merit", "Progress", "PromisedEdges", "certified_at_once", "certify", "lowered_prices"]

Progress = Callable[[int, float], None]
"""Told each round and its factor."""

Merit = Callable[[CertifiedLaw], float]
"""The squared error that a law is good for, or an estimate; only comparisons matter."""

_BUDGET = 30  # products for weights at the promised prices: thrice what a smooth map takes
_ROUND_BUDGET = 12  # at lowered prices: conjugate gradients gain three digits with that
_ROUGH = 10.0  # times the residual allowed, likewise: it costs 10·RESERVE/2 of an edge at most
_GAIN = 0.01  # of the squared error: a round that gains less is the last
_ROUNDS = 12  # of weights; three to five are taken, eight where a map is few nats wide
_HELD = 0.25  # of the reserve, for single precision, before sums are taken in integers


@dataclass(frozen=True, eq=False)
class PromisedEdges:
    """What is promised, to whom, and what the solver knows about the map."""

    promised: FloatArray
    secrets: NDArray[np.bool_]
    factor: Factor

    @cached_property
    def flat(self) -> IntArray:
        return np.flatnonzero(self.secrets.ravel())

    @cached_property
    def between(self) -> NDArray[np.bool_]:
        """Edges that promise something: both of their ends are secrets."""
        return edges_between(metric_in_use(self.promised), self.secrets)

    def slopes(self, sums: FloatArray, steps: tuple[tuple[int, int], ...]) -> FloatArray:
        """|ln Z(u) - ln Z(u')| of every edge that promises something, 0 elsewhere."""
        rows, cols = self.secrets.shape
        logs = np.log(sums).reshape(rows, cols)
        out = np.zeros(self.promised.shape)
        for k, step in enumerate(steps):
            tail, head = edge_slices((rows, cols), step)
            out[*tail, k] = np.abs(logs[tail] - logs[head])
        return np.where(self.between, out, 0.0)

    def exact_slopes(self, law: CertifiedLaw) -> FloatArray:
        """The same from the exact sums of a law."""
        return np.nan_to_num(log_ratios(law.sums, law.metric.shape, law.metric.steps))

    def room(self, slopes: FloatArray) -> FloatArray:
        """What the slopes leave of the promise, less the reserve; no less than half of that."""
        kept = self.promised * (1.0 - RESERVE)
        return np.asarray(np.maximum(kept - slopes, kept / 2))

    def excess(self, metric: GraphMetric, slopes: FloatArray) -> float:
        """The largest share of an edge's promise that is used."""
        if not self.between.any():
            return 0.0
        used = metric.weights * metric.quantum + slopes
        return float((used[self.between] / self.promised[self.between]).max())


def certified_at_once(
    eps: FloatArray,
    cell: tuple[float, float],
    promised: FloatArray,
    secrets: NDArray[np.bool_],
    *,
    progress: Progress | None = None,
) -> CertifiedLaw | None:
    """The law at the promised prices less the reserve, if it certifies; parameters of `certify`."""
    edges = PromisedEdges(promised, secrets, approximate_inverse_factor(eps, cell))
    law, _ = _first(edges, closed_form_weights(eps, cell))
    if law.factor > 1.0:
        return None
    if progress is not None:
        progress(1, law.factor)
    return law


def certify(
    eps: FloatArray,
    cell: tuple[float, float],
    promised: FloatArray,
    secrets: NDArray[np.bool_],
    *,
    merit: Merit,
    progress: Progress | None = None,
) -> CertifiedLaw:
    """Find a law that keeps every promised edge between secrets.

    Parameters
    ----------
    eps : (rows, cols) the map with its frame; it only guides the solver.
    cell : height and width of a cell.
    promised : (rows, cols, half) edge prices, ``inf`` where there is no edge.
    secrets : (rows, cols) which cells can be secrets; edges elsewhere promise nothing.
    merit : what the laws of the rounds are compared by.
    progress : called with each round and its factor; that of the first may be above 1.
    """
    edges = PromisedEdges(promised, secrets, approximate_inverse_factor(eps, cell))
    law, weights = _first(edges, closed_form_weights(eps, cell))
    if progress is not None:
        progress(1, law.factor)
    if law.factor <= 1.0:
        return law
    return _alternated(edges, law, weights, merit, progress)


def _first(edges: PromisedEdges, start: FloatArray) -> tuple[CertifiedLaw, FloatArray]:
    """Law and weights at the promised prices less the reserve, whether it certifies or not."""
    metric = metric_in_use(edges.promised)
    cheapest = float(edges.promised.min())

    def hopeless(image: FloatArray, rough: float) -> bool:
        """Whether slopes of ln Z exceed what the residual explains, ten times over."""
        slopes = edges.slopes(np.maximum(image, 0.5), metric.steps)
        return edges.excess(metric, slopes) > 1.0 + 20.0 * rough / cheapest

    solved = nonnegative_weights(
        metric.product,
        edges.factor,
        start,
        tolerance=residual_allowed(edges.promised),
        budget=_BUDGET,
        hopeless=hopeless,
    )
    largest = float(solved.image.max())
    law = _integer_law(edges, metric, solved.values, largest, 1, solved.products)
    return law, solved.values


def _alternated(
    edges: PromisedEdges,
    first: CertifiedLaw,
    weights: FloatArray,
    merit: Merit,
    progress: Progress | None,
) -> CertifiedLaw:
    """The best certified law of a few rounds, from weights at the promised prices."""
    tolerance = _ROUGH * residual_allowed(edges.promised)
    prices = edges.room(edges.exact_slopes(first))
    best = law = lowered_prices(edges, weights, prices, 1, first.products)
    least = merit(best)
    for number in range(2, _ROUNDS + 1):
        # Nowhere below the prices of the last law: slack is given back.
        metric = GraphMetric.from_prices(edges.room(edges.exact_slopes(law)))
        solved = nonnegative_weights(
            metric.product,
            edges.factor,
            weights,
            tolerance=tolerance,
            budget=_ROUND_BUDGET,
        )
        weights, products = solved.values, law.products + solved.products
        prices = edges.room(edges.slopes(solved.image, metric.steps))
        law = lowered_prices(edges, weights, prices, number, products)
        if progress is not None:
            progress(number, law.factor)
        error = merit(law)
        gained = 1.0 - error / least
        if error < least:
            best, least = law, error
        if gained < _GAIN:
            break
    return replace(best, rounds=number, products=law.products)


def lowered_prices(
    edges: PromisedEdges, weights: FloatArray, prices: FloatArray, number: int, products: int
) -> CertifiedLaw:
    """The law of the `weights` with `prices` lowered until it certifies.

    Slopes are taken in single precision until these certify, then in integers, which decide.
    `number` and `products` are counts so far, for the record.
    """
    while True:
        metric = GraphMetric.from_prices(prices)
        sums = metric.product(weights)
        products += 1
        slopes = edges.slopes(sums, metric.steps)
        room = edges.room(slopes)
        if edges.excess(metric, slopes) <= 1.0 - _HELD * RESERVE or (prices <= room).all():
            law = _integer_law(edges, metric, weights, float(sums.max()), number, products)
            if law.factor <= 1.0:
                return law
            room = edges.room(edges.exact_slopes(law))
        prices = np.minimum(prices, room)


def _integer_law(
    edges: PromisedEdges,
    metric: GraphMetric,
    weights: FloatArray,
    largest_sum: float,
    number: int,
    products: int,
) -> CertifiedLaw:
    """The law in integers, with its exact factor."""
    counts = integer_weights(weights, largest_sum)
    sums, sweeps = metric.exact_sums(counts, decay_table(metric.quantum), edges.flat)
    factor, worst = worst_edge(edge_factors(metric, sums, edges.promised), metric)
    dropped = int((counts == 0).sum())
    return CertifiedLaw(metric, counts, sums, factor, worst, number, products, dropped, sweeps)
