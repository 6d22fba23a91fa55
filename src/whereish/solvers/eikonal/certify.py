"""Weights in use that certify the weights promised, lowered locally where they must be.

Promised: an edge price W(u,u') for all neighbours u, u' among the secrets.  In use:
integer weights W' = q·D' with masses and sums as in
:mod:`~whereish.solvers.geodesic.masses`.  The edge (u, u') is kept for all reports at once when

    W'(u,u') + |ln Z(u) - ln Z(u')| <= W(u,u'),

and chaining edges covers all pairs.  Where it fails, W' is lowered there, the
weights are solved again, and so on.  An edge with W' <= W/2 always passes, since
|ln Z(u) - ln Z(u')| <= d'(u,u') <= W'; lowering is monotone after a few rounds and
ends there, so a certified law always exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.preconditioner import approximate_inverse_factor
from whereish.solvers.eikonal.weights import closed_form_weights, nonnegative_weights
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import decay_table, integer_weights

__all__ = [
    "CertifiedLaw",
    "EdgeLaw",
    "certify",
    "edge_factors",
    "edges_between",
    "log_ratios",
    "mean_cell_ratios",
    "metric_in_use",
    "residual_allowed",
    "worst_edge",
]


RESERVE = 5e-4
"""Share of every edge kept for the residual of the solved weights."""

_GUARD = 1e-12  # relative: rounding of the logarithms in the certificate
_FREE_ROUNDS = 4  # rounds in which a lowered edge may rise again
_LAST_ROUNDS = 14  # from here on a failing edge goes to half its price at once
_ROUNDS = 60
_PUSH = 1.5  # times what a failing edge lacks, once lowering is monotone
_BUDGET = 30  # products per round: the certificate needs nonnegative weights, not the best
_ROUGH_BUDGET = 12  # while edges fail by much, but by less every round
_ROUGHEST = 10.0  # times the residual allowed, likewise
_AHEAD = 0.5  # of what a failing edge lacks, likewise: its neighbours are lowered, too
_MILD = 0.3  # excess of the first round above which a map is hard from the start
_STALLED = 1.0  # times the last round's excess: it must not grow


@dataclass(frozen=True, eq=False)
class EdgeLaw:
    """Integer masses that keep the promised edges, with the proof's numbers.

    Attributes
    ----------
    metric : the metric in use.
    weights : integer weights k per report.
    sums : exact sums of the masses per secret; 0 for cells that are no secrets.
    factor : largest (W' + |ln Z - ln Z'|) / W over the secrets' edges; at most 1.
    worst : the two cells of that edge.
    rounds : how often the weights were solved.
    """

    metric: GraphMetric
    weights: NDArray[np.uint64]
    sums: NDArray[np.uint64]
    factor: float
    worst: tuple[int, int]
    rounds: int


@dataclass(frozen=True, eq=False)
class CertifiedLaw(EdgeLaw):
    """Masses k_y·t[D'(u,y)] of cells y.

    Attributes
    ----------
    products : products with E over all rounds.
    dropped : cells without weight.
    sweeps : sweeps that settle every batch of sources.
    core : distance, in quanta, within which the masses are flat.
    """

    products: int
    dropped: int
    sweeps: int
    core: int = 0

    @property
    def table(self) -> NDArray[np.uint64]:
        """The masses' table t."""
        return decay_table(self.metric.quantum, self.core)


def log_ratios(
    sums: NDArray[np.uint64], shape: tuple[int, int], steps: tuple[tuple[int, int], ...]
) -> FloatArray:
    """|ln Z(u) - ln Z(u')| for every edge of the half stencil; NaN where an end has no sum.

    The difference of the integers is exact, so the result is as precise as log1p.
    """
    Z = sums.astype(np.int64).reshape(shape)  # sums stay below 2^63
    out = np.full((*shape, len(steps)), np.nan)
    for k, step in enumerate(steps):
        tail, head = edge_slices(shape, step)
        low, high = np.minimum(Z[tail], Z[head]), np.maximum(Z[tail], Z[head])
        known = low > 0
        excess = (high - low) / np.where(known, low, 1)
        out[*tail, k] = np.where(known, np.log1p(excess), np.nan)
    return out


def edge_factors(metric: GraphMetric, sums: NDArray[np.uint64], promised: FloatArray) -> FloatArray:
    """(W' + |ln Z - ln Z'|) / W per edge between secrets, NaN elsewhere."""
    used = metric.weights * metric.quantum
    ratios = log_ratios(sums, metric.shape, metric.steps)
    with np.errstate(invalid="ignore"):
        return np.asarray((used + ratios) * (1.0 + _GUARD) / promised)


def edges_between(metric: GraphMetric, secrets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which entries of `metric.weights` are edges of which both ends are secrets."""
    out = np.zeros(metric.weights.shape, np.bool_)
    inside = secrets.reshape(metric.shape)
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        out[*tail, k] = inside[tail] & inside[head]
    return out


def worst_edge(factors: FloatArray, metric: GraphMetric) -> tuple[float, tuple[int, int]]:
    """The largest factor and the two cells of its edge."""
    if np.isnan(factors).all():
        return 0.0, (0, 0)
    i, j, k = np.unravel_index(int(np.nanargmax(factors)), factors.shape)
    di, dj = metric.steps[k]
    cols = metric.shape[1]
    return float(factors[i, j, k]), (int(i * cols + j), int((i + di) * cols + j + dj))


def certify(
    eps: FloatArray,
    cell: tuple[float, float],
    promised: FloatArray,
    secrets: NDArray[np.bool_],
    *,
    progress: Callable[[int, float], None] | None = None,
) -> CertifiedLaw:
    """Find a law that keeps every promised edge between secrets.

    Parameters
    ----------
    eps : (rows, cols) the map with its frame; it only guides the solver.
    cell : height and width of a cell.
    promised : (rows, cols, half) edge prices, ``inf`` where there is no edge.
    secrets : (rows, cols) which cells can be secrets; edges elsewhere promise nothing.
    progress : called with each round and its factor.
    """
    factor = approximate_inverse_factor(eps, cell)
    metric = metric_in_use(promised)
    start = closed_form_weights(eps, cell)
    tolerance = residual_allowed(promised)
    table = decay_table(metric.quantum)
    flat = np.flatnonzero(secrets.ravel())
    products = 0
    use = promised * (1.0 - RESERVE)
    rough, budget, ahead = 1.0, _BUDGET, _AHEAD
    allowed = _MILD
    for number in range(1, _ROUNDS + 1):
        solved = nonnegative_weights(
            metric.product, factor, start, tolerance=rough * tolerance, budget=budget
        )
        products += solved.products
        weights = integer_weights(solved.values, solved.largest_sum)
        sums, sweeps = metric.exact_sums(weights, table, flat)
        factors = edge_factors(metric, sums, promised)
        worst, where = worst_edge(factors, metric)
        if progress is not None:
            progress(number, worst)
        if worst <= 1.0:
            dropped = int((weights == 0).sum())
            return CertifiedLaw(
                metric, weights, sums, worst, where, number, products, dropped, sweeps
            )
        # Weights need not be better than the edges that are lowered next, unless lowering
        # stalls: hard maps lose more by rough weights than these save.
        rough = float(np.clip((worst - 1.0) / (10 * RESERVE), 1.0, _ROUGHEST))
        if worst - 1.0 > allowed:
            allowed = 0.0
            rough, ahead = 1.0, 0.0
        else:
            allowed = _STALLED * (worst - 1.0)
        budget = _ROUGH_BUDGET if rough > 1.0 else _BUDGET
        ratios = log_ratios(sums, metric.shape, metric.steps)
        use = _lower(use, promised, ratios, number, ahead)
        metric = GraphMetric.from_prices(use)
        start = solved.values
    raise SolverError(
        f"lowering the privacy map did not settle in {_ROUNDS} rounds; is the map extreme?"
    )


def metric_in_use(promised: FloatArray) -> GraphMetric:
    """The metric before any lowering: the promised prices less the reserve."""
    return GraphMetric.from_prices(promised, keep=1.0 - RESERVE)


def residual_allowed(promised: FloatArray) -> float:
    """Residual of E·w = 1 that the reserve on the cheapest edge can pay for."""
    return float(np.clip(RESERVE * promised.min() / 4, 2e-6, 1e-4))


def _lower(
    use: FloatArray, promised: FloatArray, ratios: FloatArray, number: int, ahead: float
) -> FloatArray:
    """Edge prices for the next round: what the slope of ln Z leaves of the promise."""
    need = np.nan_to_num(ratios)
    margin = 1.02 if number <= _FREE_ROUNDS else 1.05
    with np.errstate(invalid="ignore"):
        left = promised * (1.0 - RESERVE) - margin * need
        # What an edge lacks grows while its neighbours are lowered, too.
        lacks = np.maximum(use + need - promised * (1.0 - RESERVE), 0.0)
        left = np.maximum(left - ahead * lacks, promised / 2)
        if number > _FREE_ROUNDS:
            left = np.minimum(left, np.maximum(use - _PUSH * lacks, promised / 2))
        if number >= _LAST_ROUNDS:
            left = np.where(use + need > promised, np.minimum(use, promised / 2), left)
    return np.where(np.isfinite(promised), left, np.inf)


def mean_cell_ratios(metric: GraphMetric, promised: FloatArray) -> FloatArray:
    """Mean of W'/W over the edges at each cell; 1 less reserve and rounding where not lowered."""
    total, count = np.zeros(metric.shape), np.zeros(metric.shape)
    used = metric.weights * metric.quantum
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        ratio = used[*tail, k] / promised[*tail, k]
        for end in (tail, head):
            total[end] += ratio
            count[end] += 1
    return np.asarray(total / np.maximum(count, 1) + (count == 0))
