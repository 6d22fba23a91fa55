"""Answer a query with noise that keeps eps * metric on the data.

H o f keeps eps * d when H keeps (eps/Delta) |y - y'| and f is Delta-sensitive for d
(:mod:`whereish.queries.sensitivity`).  Queries on records are answered by the Truncated
Geometric on their universe of answers; the centroid of places by planar Laplace noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.records.geometric import NUMERICS, TruncatedGeometric
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric, Scaled, rounded_up
from whereish.privacy.tuples import DifferentPlaces, Records, TupleSum
from whereish.queries.centroid import LATTICE_M, Centroid, lattice_cells, size_of
from whereish.queries.record_query import RecordQuery
from whereish.queries.sensitivity import Sensitivity
from whereish.randomness import Randomness, secure
from whereish.results import JsonResult
from whereish.sampling.thresholds import level
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
from whereish.units import Epsilon, Length

__all__ = ["Answer", "answer"]

_THEOREM: Final = "Chatzikokolakis et al. 2013, section 4"


@dataclass(frozen=True, eq=False)
class Answer(JsonResult):
    """A noisy answer with what is known about it.

    Attributes
    ----------
    value
        The report: a number, or the two coordinates of a place.
    guarantee
        What is promised about the data.
    sensitivity
        How the query's answers move with the data.
    universally_optimal
        Whether no mechanism that keeps the guarantee gives any consumer more, whatever
        their prior and monotone gain, once they remap: so for uniformly sensitive queries
        under the Truncated Geometric.
    mechanism
        The noise on answers (for a centroid: on the sum of the places).
    reproducible
        Whether the noise came from a seed.
    """

    _NOT_TOLD = ("mechanism",)

    value: float | FloatArray
    guarantee: Guarantee
    sensitivity: Sensitivity = field(repr=False)
    universally_optimal: bool
    mechanism: TruncatedGeometric | PlanarLaplace = field(repr=False)
    reproducible: bool


def answer(
    query: RecordQuery | Centroid,
    data: ArrayLike | Points,
    metric: Metric,
    epsilon: float | Fraction | Epsilon | str,
    *,
    resolution: Length | str = "1 m",
    rng: Randomness | None = None,
) -> Answer:
    """Answer `query` about one database so that eps * metric is kept on databases.

    Parameters
    ----------
    query
        `Sum()`, `Count(...)`, `Average()`, `Percentile(p)`, `Minimum()`, `Median()`,
        `Maximum()` or `Centroid()`.
    data
        One tuple of values (None or NaN for null), or n places of a plane.
    metric
        For values one of the metrics of `Records(values, size)`; for places
        `TupleMax(Euclidean(), n)`, `TupleSum(Euclidean(), n)` or
        `TupleSum(DifferentPlaces(region), n)`.
    epsilon
        Nats per unit of the metric: a number; per length for distances of places.
    resolution
        For a centroid: step of the public lattice of reports.

    Raises
    ------
    InvalidInput
        If the data are not in the universe, or the query has no bound by this metric.

    Examples
    --------
    >>> import whereish as wh
    >>> ages = wh.Records(wh.Values(1, 100), 3)
    >>> result = wh.answer(wh.queries.Average(), [20, 30, 70], ages.hamming, 0.5)
    >>> result.guarantee.metric.description
    "0.5 * sum over 3 entries of [v != v']"
    >>> 0 <= result.value <= 100
    True
    """
    if isinstance(query, RecordQuery):
        return _on_records(query, data, metric, epsilon, secure(rng))
    if isinstance(query, Centroid):
        grid = Length.positive(resolution, name="resolution")
        return _on_places(query, data, metric, epsilon, grid, secure(rng))
    raise InvalidInput(f"a query must be one of whereish.queries; got {type(query).__name__}")


def _on_records(
    query: RecordQuery,
    data: ArrayLike | Points,
    metric: Metric,
    epsilon: float | Fraction | Epsilon | str,
    rng: Randomness,
) -> Answer:
    if isinstance(epsilon, Epsilon | str):
        raise InvalidInput(
            f"epsilon must be a bare number per unit of the metric on records; got {epsilon}"
        )
    records, exact = Records.of(metric), level(epsilon)
    index = records.indices(np.asarray(data))
    if index.ndim != 1:
        raise InvalidInput(f"data must be one database, a tuple of entries; got {index.ndim} axes")
    sensitivity = query.sensitivity(metric)
    mechanism = query.mechanism(metric, exact)
    noisy = mechanism.perturbed(query.on_indices(index, records)[None], rng)
    source = (
        f"Truncated Geometric on a {sensitivity.value}-sensitive query"
        f" ({sensitivity.reason}; {_THEOREM})"
    )
    return Answer(
        float(mechanism.values.at(noisy)[0]),
        Guarantee(rounded_up(exact) * metric, Basis.THEOREM, source, NUMERICS),
        sensitivity,
        sensitivity.uniform,
        mechanism,
        rng.reproducible,
    )


def _on_places(
    query: Centroid,
    data: ArrayLike | Points,
    metric: Metric,
    epsilon: float | Fraction | Epsilon | str,
    resolution: Length,
    rng: Randomness,
) -> Answer:
    space = data.space if isinstance(data, Points) else Plane.metres()
    if not isinstance(space, Plane):
        raise InvalidInput(f"a centroid is taken on a plane; got {space.description}")
    coordinates = checked_coordinates(data, space)
    counted = isinstance(metric, TupleSum) and isinstance(metric.base, DifferentPlaces)
    eps = _level_on_places(epsilon, counted=counted)
    if len(coordinates) != size_of(metric):
        raise InvalidInput(
            f"the metric is on tuples of {size_of(metric)} places; got {len(coordinates)}"
        )
    sensitivity = query.sensitivity(metric)
    mechanism = query.mechanism(metric, eps, plane=space, resolution=resolution)
    # Place by place, against public bounds; nothing may be refused that depends on the sum.
    space.check_region(coordinates)
    _check_declared(metric, coordinates)
    total = lattice_cells(coordinates, resolution).sum(axis=0) * LATTICE_M
    cells = mechanism.cells(total[None], rng=rng)
    kept = eps.per_m if space.scale == 1.0 else float(np.nextafter(eps.per_m / space.scale, 9e9))
    guarantee = Guarantee(
        kept * metric,
        Basis.THEOREM,
        f"planar Laplace on a {sensitivity.value}-sensitive centroid ({_THEOREM})",
        f"exact on places read to {LATTICE_M:.3g} m",
    ).on(space)
    value = np.asarray(cells[0] * resolution.m)
    return Answer(value, guarantee, sensitivity, False, mechanism, rng.reproducible)


def _level_on_places(epsilon: float | Fraction | Epsilon | str, *, counted: bool) -> Epsilon:
    if not counted:
        return Epsilon.of(epsilon)  # type: ignore[arg-type]  # a bare number is refused there
    if isinstance(epsilon, Epsilon | str):
        raise InvalidInput(f"epsilon must be a bare number per place that differs; got {epsilon}")
    return Epsilon.per_metre(float(level(epsilon)))


def _check_declared(metric: Metric, coordinates: FloatArray) -> None:
    base = metric.base if isinstance(metric, Scaled) else metric
    places = getattr(base, "base", None)
    if isinstance(places, DifferentPlaces):
        outside = int((~places.region.contains(coordinates)).sum())
        if outside:
            raise InvalidInput(
                f"places must lie in the declared region; {outside} of {len(coordinates)} do not:"
                " clamp them, never widen the region to the data"
            )
