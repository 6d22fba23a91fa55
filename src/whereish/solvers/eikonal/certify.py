"""The certificate of a law: what every edge between secrets keeps, in exact arithmetic.

Promised: an edge price W(u,u') for all neighbours u, u' among the secrets.  In use:
integer weights W' = q·D' with masses and sums as in
:mod:`~whereish.solvers.geodesic.masses`.  The edge (u, u') is kept for all reports at once when

    W'(u,u') + |ln Z(u) - ln Z(u')| <= W(u,u'),

and chaining edges covers all pairs.  An edge with W' <= W/2 always passes, since
|ln Z(u) - ln Z(u')| <= d'(u,u') <= W'.  (:mod:`~whereish.solvers.eikonal.lowering` finds
prices and weights that certify.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import decay_table

__all__ = [
    "CertifiedLaw",
    "EdgeLaw",
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
    aim : sums that the weights were solved for, while a law is searched for; None for 1.
    """

    products: int
    dropped: int
    sweeps: int
    core: int = 0
    aim: FloatArray | None = None

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


def metric_in_use(promised: FloatArray) -> GraphMetric:
    """The metric before any lowering: the promised prices less the reserve."""
    return GraphMetric.from_prices(promised, keep=1.0 - RESERVE)


def residual_allowed(promised: FloatArray) -> float:
    """Residual of E·w = 1 that the reserve on the cheapest edge can pay for."""
    return float(np.clip(RESERVE * promised.min() / 4, 2e-6, 1e-4))


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
