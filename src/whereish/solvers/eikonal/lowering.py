"""The largest map below the promised one that certifies, found by alternation.

A law is a pair of edge prices W' <= W and weights w >= 0; with Z = E'w it is certified
when W' + |ln Z(u) - ln Z(u')| <= W on every edge between secrets
(:mod:`~whereish.solvers.eikonal.certify`).  Each half of a round holds one of the two:

* **Weights, prices held**: the nonnegative weights of
  :mod:`~whereish.solvers.eikonal.weights`, which make ln Z as flat as they can.
* **Prices, weights held** (:func:`lowered_prices`): every edge falls to what the slope of
  ln Z leaves of it,

      W'_{k+1} = max(W'_k - t·max(W'_k + |ln Z_k(u) - ln Z_k(u')| - (1-r)·W, 0), (1-r)·W/2),

  r the reserve, t = 1 and a little more later, when the excess halves from step to step; then,
  too, most of a quantum below that, so that edges do not push each other over in turn.
  *This ends with a certificate.*  Prices never rise, and an edge that fails
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
rounds can only improve it; they end when one gains less than a hundredth.  That error is a
mean of two, of reports as they are drawn and moved to their posterior means: on maps of
few nats lowering less leaves fewer and farther reports, which moved tell more and as such less.
There further rounds aim at sums other than 1 (:mod:`~whereish.solvers.eikonal.aims`).

A map of many cells starts from the law of every other cell
(:mod:`~whereish.solvers.geodesic.coarse`).  Weights of small cells live on a part of them only,
which takes many exchanges to find from nothing, and few from about where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.aims import Judgement, finer_aim
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
from whereish.solvers.eikonal.preconditioner import approximate_inverse_factor
from whereish.solvers.eikonal.weights import (
    Inverse,
    closed_form_weights,
    nonnegative_weights,
)
from whereish.solvers.geodesic.coarse import (
    coarse_cells,
    coarse_levels,
    coarse_prices,
    fine_shares,
    fine_weights,
)
from whereish.solvers.geodesic.graph_metric import HORIZON, GraphMetric
from whereish.solvers.geodesic.masses import decay_table, integer_weights
from whereish.solvers.geodesic.near import NearProduct

__all__ = ["Judge", "Progress", "PromisedEdges", "certified_at_once", "certify", "lowered_prices"]

Progress = Callable[[int, float], None]
"""Told each round and its factor."""


class Judge(Protocol):
    """Says what laws are worth, and what the next weights should aim at."""

    def __call__(self, law: CertifiedLaw, stride: int) -> Judgement:
        """Of a law for every `stride`-th cell of every `stride`-th row."""


_MANY = 2**13  # cells of a map that starts from its coarse law
_FINE = 2.0  # nats from cell to cell, at most: twice as large cells would say little of a law
_BUDGET = 30  # products for weights at the promised prices: thrice what a smooth map takes
_ROUND_BUDGET = 12  # at lowered prices: conjugate gradients gain three digits with that
_ROUGH = 10.0  # times the residual allowed, likewise: it costs 10·RESERVE/2 of an edge at most
_GAIN = 0.01  # of the squared error: a round that gains less is the last
_ROUNDS = 12  # of weights; three to five are taken, eight where a map is few nats wide
_LOWERING = 14.0  # nats: what is beyond moves no slope by more than a fifth of the reserve
_LOWERING_FAR = 9.0  # nats, while an edge lacks more than a hundredth
_NO_LAW = 0.5  # of a sum, which is 1 or more for weights that were solved
_PLAIN_STEPS = 3  # of lowering, before an edge falls by more than it lacks
_LONGER_STEP = 1.6  # times what it lacks
_MARGIN = 0.7  # of a quantum: what the last edges move their neighbours by when they fall
_HELD = 0.25  # of the reserve, for single precision, before sums are taken in integers


@dataclass(frozen=True, eq=False)
class PromisedEdges:
    """What is promised, to whom, and what the solver knows about the map."""

    promised: FloatArray
    secrets: NDArray[np.bool_]
    inverse: Inverse

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

    @cached_property
    def least(self) -> FloatArray:
        """Half of the promise less the reserve: an edge at that price is always kept."""
        return self.promised * (0.5 * (1.0 - RESERVE))

    def room(self, slopes: FloatArray) -> FloatArray:
        """What the slopes leave of the promise, less the reserve; no less than half of that."""
        return np.asarray(np.maximum(2.0 * self.least - slopes, self.least))

    def room_at(self, weights: FloatArray, prices: FloatArray) -> FloatArray:
        """The room that the sums at these prices leave, from what is near."""
        metric = GraphMetric.from_prices(prices)
        sums = np.maximum(metric.product(weights, horizon=_LOWERING_FAR), _NO_LAW)
        return self.room(self.slopes(sums, metric.steps))

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
    edges = PromisedEdges(promised, secrets, partial(approximate_inverse_factor, eps, cell))
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
    judge: Judge,
    progress: Progress | None = None,
    stride: int = 1,
    first: bool = False,
) -> CertifiedLaw:
    """Find a law that keeps every promised edge between secrets.

    Parameters
    ----------
    eps : (rows, cols) the map with its frame; it only guides the solver.
    cell : height and width of a cell.
    promised : (rows, cols, half) edge prices, ``inf`` where there is no edge.
    secrets : (rows, cols) which cells can be secrets; edges elsewhere promise nothing.
    judge : what the laws of the rounds are compared by.
    progress : called with each round and its factor; that of the first may be above 1.
    stride : these are every so many-th cells of the map that is meant, for its `judge`.
    first : whether the first certified law on a map of many cells is enough.
    """
    edges = PromisedEdges(promised, secrets, partial(approximate_inverse_factor, eps, cell))
    here = partial(judge, stride=stride)
    if eps.size >= _MANY and float(eps.max()) * max(cell) <= _FINE:
        fewer, sides = coarse_cells(secrets), (2 * cell[0], 2 * cell[1])
        prices = coarse_prices(promised)
        law = certify(coarse_levels(eps), sides, prices, fewer, judge=judge, stride=2 * stride)
        if law.rounds > 1:
            shares = np.clip(fine_shares(law.metric, prices, eps.shape), 0.5, 1.0)
            usual = float(np.median(law.sums[fewer.ravel()])) / float(law.table[0])
            weights = fine_weights(law.weights / usual, eps.shape)  # most sums are about 1
            aim = None if law.aim is None else finer_aim(law.aim, eps.shape)
            start = _Start(weights, 2.0 * edges.least * shares, aim)
            return _alternated(edges, None, start, here, progress, first=first)
    law, weights = _first(edges, closed_form_weights(eps, cell))
    if progress is not None:
        progress(1, law.factor)
    if law.factor <= 1.0:
        return law
    prices = edges.room(edges.exact_slopes(law))
    law = lowered_prices(edges, weights, prices, 1, law.products)
    prices = edges.room(edges.exact_slopes(law))
    return _alternated(edges, law, _Start(weights, prices), here, progress)


def _first(edges: PromisedEdges, start: FloatArray) -> tuple[CertifiedLaw, FloatArray]:
    """Law and weights at the promised prices less the reserve, whether it certifies or not."""
    metric = metric_in_use(edges.promised)
    cheapest = float(edges.promised.min())

    def hopeless(excess: FloatArray, rough: float) -> bool:
        """Whether slopes of ln Z exceed what the residual explains, ten times over."""
        slopes = edges.slopes(np.maximum(1.0 + excess, 0.5), metric.steps)
        return edges.excess(metric, slopes) > 1.0 + 20.0 * rough / cheapest

    solved = nonnegative_weights(
        metric.product,
        NearProduct(metric),
        edges.inverse,
        start,
        tolerance=residual_allowed(edges.promised),
        budget=_BUDGET,
        hopeless=hopeless,
    )
    largest = float(solved.image.max())
    law = _integer_law(edges, metric, solved.values, largest, 1, solved.products)
    return law, solved.values


class _Start(NamedTuple):
    """Where rounds begin: weights to start from, prices, and the sums aimed at (None for 1)."""

    weights: FloatArray
    prices: FloatArray
    aim: FloatArray | None = None


def _alternated(
    edges: PromisedEdges,
    best: CertifiedLaw | None,
    start: _Start,
    judge: Callable[[CertifiedLaw], Judgement],
    progress: Progress | None,
    *,
    first: bool = False,
) -> CertifiedLaw:
    """The best certified law of a few rounds, which begin with weights for the prices of `start`.

    `best` is the law that is known already.  If the `first` one found is enough, that is it.
    """
    tolerance = _ROUGH * residual_allowed(edges.promised)
    weights, prices, aim = start
    least, products, next_aim = np.inf, 0, aim
    if best is not None:
        known = judge(best)
        least, next_aim, products = known.error, known.aim, best.products
    for number in range(2, _ROUNDS + 1):
        metric = GraphMetric.from_prices(prices)
        solved = nonnegative_weights(
            metric.product,
            NearProduct(metric),
            edges.inverse,
            weights,
            aim=aim,
            tolerance=tolerance,
            budget=_ROUND_BUDGET,
        )
        weights = solved.values
        prices = edges.room(edges.slopes(solved.image, metric.steps))
        if best is None and number == 2:  # a guess that needs no law yet
            prices = _roughly_lowered(edges, weights, prices)
            continue
        law = lowered_prices(edges, weights, prices, number, products + solved.products)
        products = law.products
        if progress is not None:
            progress(number, law.factor)
        if first:
            return replace(law, aim=aim)
        found = judge(law)
        gained = 1.0 - found.error / least if least > 0 else 0.0  # nothing is left to gain
        if best is None or found.error < least:
            best, least, next_aim = replace(law, aim=aim), found.error, found.aim
        if gained >= _GAIN:
            # Nowhere below the prices of the last law: slack is given back.
            prices, aim = edges.room(edges.exact_slopes(law)), aim if aim is None else found.aim
        elif aim is None and next_aim is not None:  # from the best with sums of 1
            prices, aim = edges.room(edges.exact_slopes(best)), next_aim
        else:
            break
    assert best is not None  # there was a round
    return replace(best, rounds=number, products=products)


def _roughly_lowered(edges: PromisedEdges, weights: FloatArray, prices: FloatArray) -> FloatArray:
    """Where a few steps of lowering lead, with slack given back; certified by nothing."""
    for _ in range(_PLAIN_STEPS):
        prices = np.minimum(prices, edges.room_at(weights, prices))
    return edges.room_at(weights, prices)


def lowered_prices(
    edges: PromisedEdges, weights: FloatArray, prices: FloatArray, number: int, products: int
) -> CertifiedLaw:
    """The law of the `weights` with `prices` lowered until it certifies.

    Slopes are taken in single precision until these certify, then in integers, which decide.
    `number` and `products` are counts so far, for the record.
    """
    excess, steps = np.inf, 0
    while True:
        metric = GraphMetric.from_prices(prices)
        horizon = _LOWERING if excess < 1.01 else _LOWERING_FAR
        sums, steps = metric.product(weights, horizon=horizon), steps + 1
        products += 1
        if sums.min() < _NO_LAW:  # weights that leave a cell alone: what is far counts
            sums, horizon = metric.product(weights), HORIZON
            products += 1
        slopes = edges.slopes(sums, metric.steps)
        room = edges.room(slopes)
        excess = edges.excess(metric, slopes)
        seems_kept = excess <= 1.0 - _HELD * RESERVE or bool((prices <= room).all())
        if seems_kept and horizon > _LOWERING_FAR:
            law = _integer_law(edges, metric, weights, float(sums.max()), number, products)
            if law.factor <= 1.0:
                return law
            room = edges.room(edges.exact_slopes(law))
        step = 1.0
        if steps >= _PLAIN_STEPS:
            step = _LONGER_STEP
        if steps > _PLAIN_STEPS:
            room -= _MARGIN * max(1.0, steps / 10) * metric.quantum
        missing = np.subtract(prices, room, out=np.zeros_like(prices), where=edges.between)
        prices = np.where(missing > 0, np.maximum(prices - step * missing, edges.least), prices)


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
