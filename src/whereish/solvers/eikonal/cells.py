"""From a map to a certified law on its cells: the whole way, on plain arrays.

Secrets are cells, and all neighbouring cells keep the line integral of eps between
their centres.  (:mod:`~whereish.solvers.eikonal.bilinear.places` has the law for places between
them.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.eikonal.aims import Judgement, judgement
from whereish.solvers.eikonal.certify import CertifiedLaw, EdgeLaw, edge_factors, worst_edge
from whereish.solvers.eikonal.lowering import Progress, certified_at_once, certify
from whereish.solvers.eikonal.margin import frame_width, framed
from whereish.solvers.eikonal.squared_error import Judged, judged, judged_table, sampled_error
from whereish.solvers.eikonal.weights import closed_form_weights
from whereish.solvers.geodesic.coarse import coarse_sums
from whereish.solvers.geodesic.graph_metric import HORIZON, LARGEST_MAP, GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.geodesic.masses import decay_table, integer_weights
from whereish.solvers.tables.carried import law_of_landmarks
from whereish.solvers.tables.law import ReportTable
from whereish.threads import one_blas_thread

__all__ = [
    "LEAST_PRICE",
    "BuiltLaw",
    "Comparison",
    "Search",
    "check_resolution",
    "exponential_law",
    "framed_law",
    "inner_cells",
    "law_on_cells",
    "least_price",
    "prices_on_cells",
    "simple_errors",
]

RoundProgress = Progress


class Search(TypedDict, total=False):
    """How laws are searched for, whatever they are laws of: see :func:`law_on_cells`."""

    neighbours: int
    frame: int | None
    progress: RoundProgress | None


Prices = Callable[[FloatArray, tuple[float, float], int], FloatArray]
"""Edge prices of a framed map, from its levels, the sides of a cell and the neighbours."""

LEAST_PRICE = 24 * HORIZON / LIMIT
"""Least cell side x epsilon: 24 quanta, so that rounding an edge down costs at most 4%."""


Kind = Literal["eikonal", "exponential", "constant", "landmarks"]
"""The certified laws of a map."""

_CLEARLY = 0.95  # of the eikonal law's error, as it is estimated: so much another must be better


@dataclass(frozen=True)
class Comparison:
    """Mean squared errors of the certified laws of a map, over the same few hundred secrets.

    Attributes
    ----------
    chosen : the first unless the least of the three is clearly less, and once reports are moved to
        their posterior means, too; the law of landmarks where moved reports have less error by it.
    eikonal : of the law with solved weights and lowered prices.
    exponential : of the exponential mechanism at half the map.
    constant : of the law of the smallest level everywhere.
    landmarks : of the law of landmarks; None where none was tried.
    unsettled : on places, where the eikonal law was left before its slopes between cells were
        lowered: the error of its moved reports, as a multiple of that of the law of landmarks.
    """

    chosen: Kind
    eikonal: float
    exponential: float
    constant: float
    landmarks: float | None = None
    unsettled: float | None = None


@dataclass(frozen=True, eq=False)
class BuiltLaw:
    """A certified law, its map in use and its frame.

    Attributes
    ----------
    law : masses and certificate, on the framed grid.
    used : (rows, cols) the map in use, before any lowering of single edges.
    frame : cells added on every side.
    promised : edge prices that the law keeps, on the framed grid.
    gradient_factor : largest |grad ln P|/eps on continuous places; None on cells.
    comparison : with the simpler laws of the map; None where none was made.
    acceptance : least chance that a draw between cells is accepted; None for other laws.
    table : the law of landmarks, without a frame, where that is used instead of `law`.
    """

    law: CertifiedLaw
    used: FloatArray
    frame: int
    promised: FloatArray
    gradient_factor: float | None = None
    comparison: Comparison | None = None
    acceptance: float | None = None
    table: ReportTable | None = None

    @cached_property
    def secrets(self) -> IntArray:
        """Flat indices of the map's cells in the framed grid, in the map's order."""
        return inner_cells(self.used.shape, self.frame)

    @property
    def factor(self) -> float:
        """The certified factor: the gradient's on continuous places, else that of the edges."""
        return self.in_use.factor if self.gradient_factor is None else self.gradient_factor

    @property
    def in_use(self) -> EdgeLaw:
        """The law of reports: the table if there is one."""
        return self.law if self.table is None else self.table

    @property
    def metric_on_map(self) -> GraphMetric:
        """The edges in use among the map's cells, without those of the frame."""
        rows, cols = self.used.shape
        inner = slice(self.frame, self.frame + rows), slice(self.frame, self.frame + cols)
        metric = self.in_use.metric
        return GraphMetric(metric.weights[inner], metric.quantum)


def inner_cells(shape: tuple[int, ...], frame: int) -> IntArray:
    """Flat indices of the unframed cells in the framed grid."""
    rows, cols = shape
    i, j = np.divmod(np.arange(rows * cols), cols)
    return np.asarray((i + frame) * (cols + 2 * frame) + j + frame, np.int64)


def check_resolution(eps: FloatArray, cell: tuple[float, float]) -> None:
    """Refuse cells so small that the quantum would eat their prices."""
    price = least_price(eps, cell)
    if price < LEAST_PRICE:
        raise InvalidInput(
            f"cell side x smallest epsilon must be at least {LEAST_PRICE:.3g}; got {price:.3g}:"
            " use larger cells"
        )


def least_price(levels: FloatArray, cell: tuple[float, float]) -> float:
    """The lowest level times the shortest side along which there are neighbours."""
    sides = [side for side, count in zip(cell, levels.shape, strict=True) if count > 1]
    return float(levels.min()) * min(sides, default=math.inf)


@one_blas_thread()
def law_on_cells(
    eps: FloatArray,
    cell: tuple[float, float],
    *,
    neighbours: int = 16,
    frame: int | None = None,
    prior: FloatArray | None = None,
    progress: RoundProgress | None = None,
) -> BuiltLaw:
    """A law that keeps the line integrals of `eps` between neighbouring centres.

    The one of the least squared error among three that are certified: solved weights with
    lowered prices (nearly always), the exponential mechanism at half the map, and the
    smallest level everywhere.  Where a prior is given and the map is narrow, the law of its
    landmarks (:mod:`~whereish.solvers.tables.carried`) if that is better.

    Parameters
    ----------
    eps : (rows, cols) levels at the centres.
    cell : height and width of a cell.
    frame : cells of frame; None takes as many as the border needs, or none where that is
        more than a quarter of the map's side or the framed grid would be too large, and none
        where the map must be lowered with a frame, too: then it only costs.
    prior : over the cells in their order, for the squared error; uniform for None.
    """
    check_resolution(eps, cell)
    built = _law_of_distances(eps, cell, neighbours, frame, prior, progress)
    return built if prior is None else _or_landmarks(built, cell, prior)


def _or_landmarks(built: BuiltLaw, cell: tuple[float, float], prior: FloatArray) -> BuiltLaw:
    """With the law of landmarks where that has less error once reports are moved."""
    if built.frame or built.comparison is None:
        return built
    places = _centres(built.used.shape, (cell[0] / cell[1], 1.0))  # free of units
    table = law_of_landmarks(built.promised, places, prior)
    if table is None:
        return built
    metres = places * cell[1]
    found = judged_table(table, metres, prior)
    comparison = replace(built.comparison, landmarks=found.drawn)
    if found.moved >= _judged(built, cell, prior).moved:
        return replace(built, comparison=comparison)
    return replace(built, comparison=replace(comparison, chosen="landmarks"), table=table)


def _law_of_distances(
    eps: FloatArray,
    cell: tuple[float, float],
    neighbours: int,
    frame: int | None,
    prior: FloatArray | None,
    progress: RoundProgress | None,
) -> BuiltLaw:
    """The best of the three laws w(y)·e^{-d(u,y)}/Z(u)."""
    own = framed_law(
        eps,
        cell,
        prices_on_cells,
        neighbours=neighbours,
        frame=frame,
        prior=prior,
        progress=progress,
    )
    solved, places = own.law.weights.astype(np.float64), _centres(own.law.metric.shape, cell)
    errors: dict[Kind, float] = {
        "eikonal": sampled_error(own.law.metric, solved, own.secrets, places, prior),
        **simple_errors(eps, cell, neighbours, own.frame, prior),
    }
    best = min(errors, key=lambda name: errors[name])
    if errors[best] > _CLEARLY * errors["eikonal"]:
        return replace(own, comparison=Comparison("eikonal", **errors))
    if best == "exponential":
        other = exponential_law(eps, cell, neighbours=neighbours)
    else:
        other = _constant_law(eps, cell, neighbours, own)
    # What looks better as drawn, or by weights in closed form, need not be.
    if _judged(other, cell, prior).error > _CLEARLY * _judged(own, cell, prior).error:
        return replace(own, comparison=Comparison("eikonal", **errors))
    return replace(other, comparison=Comparison(best, **errors))


def _judged(built: BuiltLaw, cell: tuple[float, float], prior: FloatArray | None) -> Judged:
    """The errors by which laws are compared."""
    places = _centres(built.law.metric.shape, cell)
    return judged(built.law, built.secrets, places, prior)


def simple_errors(
    eps: FloatArray,
    cell: tuple[float, float],
    neighbours: int,
    frame: int,
    prior: FloatArray | None,
) -> dict[Kind, float]:
    """Squared errors of the exponential law and the constant one, its weights in closed form."""
    level = framed(np.full_like(eps, eps.min()), cell, frame)
    lowest = GraphMetric.from_prices(prices_on_cells(level, cell, neighbours))
    flat = np.maximum(closed_form_weights(level, cell), 0.0)
    half = GraphMetric.from_prices(0.5 * prices_on_cells(eps, cell, neighbours))
    inner = inner_cells(eps.shape, frame)
    return {
        "exponential": sampled_error(
            half, (eps**2).ravel(), inner_cells(eps.shape, 0), _centres(eps.shape, cell), prior
        ),
        "constant": sampled_error(lowest, flat, inner, _centres(level.shape, cell), prior),
    }


def _constant_law(
    eps: FloatArray, cell: tuple[float, float], neighbours: int, own: BuiltLaw
) -> BuiltLaw:
    """The law of the smallest level everywhere, certified for the map itself."""
    level = np.full_like(eps, eps.min())
    built = framed_law(
        level, cell, prices_on_cells, neighbours=neighbours, frame=own.frame, progress=None
    )
    factors = edge_factors(built.law.metric, built.law.sums, own.promised)
    factor, worst = worst_edge(factors, built.law.metric)
    return replace(own, law=replace(built.law, factor=factor, worst=worst))


def _centres(shape: tuple[int, ...], cell: tuple[float, float]) -> FloatArray:
    """Centres of the cells in their order, up to a translation."""
    return np.asarray(np.indices(shape).reshape(2, -1).T * np.asarray(cell))


def prices_on_cells(levels: FloatArray, cell: tuple[float, float], neighbours: int) -> FloatArray:
    """The line integral of the map along every edge."""
    return edge_integrals(levels, cell, neighbours=neighbours)


def framed_law(
    levels: FloatArray,
    cell: tuple[float, float],
    prices: Prices,
    *,
    neighbours: int = 32,
    frame: int | None = None,
    progress: RoundProgress | None = None,
    prior: FloatArray | None = None,
    first: bool = False,
) -> BuiltLaw:
    """The law of a map with its frame (as in :func:`law_on_cells`), at the edge prices given.

    With many cells the `first` that certifies may be enough, for whoever only starts from it.
    """
    if frame is None:
        width = _default_frame(levels, cell)
        if width and not _surely_lowered(levels, cell):
            wide, promised, secrets = _framed_problem(levels, cell, prices, neighbours, width)
            law = certified_at_once(wide, cell, promised, secrets, progress=progress)
            if law is not None:
                return BuiltLaw(law, levels, width, promised)
        frame = 0
    wide, promised, secrets = _framed_problem(levels, cell, prices, neighbours, frame)

    def judge(law: CertifiedLaw, stride: int) -> Judgement:
        inner = np.flatnonzero(law.sums)
        places = stride * _centres(law.metric.shape, (cell[0] / cell[1], 1.0))  # free of units
        share = None
        if prior is not None:
            share = coarse_sums(_on_framed(prior, secrets), stride).ravel()[inner]
        return judgement(law, inner, places, share)

    law = certify(wide, cell, promised, secrets, judge=judge, progress=progress, first=first)
    return BuiltLaw(law, levels, frame, promised)


def _on_framed(values: FloatArray, secrets: NDArray[np.bool_]) -> FloatArray:
    """Values of the secrets in their order, on the framed grid; 0 in the frame."""
    out = np.zeros(secrets.shape)
    out[secrets] = values
    return out


def _default_frame(levels: FloatArray, cell: tuple[float, float]) -> int:
    """Cells of frame that the border needs; 0 if too many."""
    frame = frame_width(levels, cell)
    rows, cols = levels.shape
    # A map of few nats would drown in its frame, and most reports fall outside.
    too_wide = frame > min(rows, cols) // 4
    too_large = (rows + 2 * frame) * (cols + 2 * frame) > LARGEST_MAP
    return 0 if too_wide or too_large else frame


def _surely_lowered(levels: FloatArray, cell: tuple[float, float]) -> bool:
    """Whether more than a hundredth of the weights in closed form is negative.

    Dropping them moves Z by about as much, twenty times what the reserve pays for.
    """
    weights = closed_form_weights(levels, cell)
    return bool(-weights[weights < 0].sum() > 0.01 * weights[weights > 0].sum())


def _framed_problem(
    levels: FloatArray, cell: tuple[float, float], prices: Prices, neighbours: int, frame: int
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """The framed map, its edge prices, and which of its cells are secrets."""
    wide = framed(levels, cell, frame)
    secrets = np.zeros(wide.size, np.bool_)
    secrets[inner_cells(levels.shape, frame)] = True
    return wide, prices(wide, cell, neighbours), secrets.reshape(wide.shape)


def exponential_law(
    eps: FloatArray, cell: tuple[float, float], *, neighbours: int = 16
) -> BuiltLaw:
    """The exponential mechanism at half the map, normalised: private whatever its weights.

    P(y | u) = A·eps(y)^2·e^{-d(u,y)/2} / Z(u): an edge at half its price is always kept.
    The baseline (elastic metrics are built this way).
    """
    check_resolution(eps, cell)
    promised = edge_integrals(eps, cell, neighbours=neighbours)
    metric = GraphMetric.from_prices(promised, keep=0.5)
    base = (eps**2).ravel() / float((eps**2).max())
    weights = integer_weights(base, float(metric.product(base).max()))
    weights = np.maximum(weights, np.uint64(1))
    sums, sweeps = metric.exact_sums(weights, decay_table(metric.quantum))
    factor, worst = worst_edge(edge_factors(metric, sums, promised), metric)
    law = CertifiedLaw(metric, weights, sums, factor, worst, 1, 1, 0, sweeps)
    return BuiltLaw(law, eps, 0, promised)
