"""Ask a location service what is near, without telling it where one is.

One question is one report: charged, drawn once, and asked around with a radius that is a function
of public parameters alone.  What is fetched is filtered here, by true distance.  Retries, pages,
caches and further sources use that same report; nothing is drawn again for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.lbs.areas import retrieval_radius
from whereish.lbs.asking import (
    Asking,
    check_place,
    lattice_decimals,
    mechanism_of,
    reported_degrees,
    rounded_degrees,
)
from whereish.lbs.pins import Pin
from whereish.lbs.sessions import session_radius
from whereish.lbs.sources.source import Source, within_sphere
from whereish.mechanisms.calibration import probability
from whereish.mechanisms.traces.predictive import TraceSession
from whereish.privacy.norms import Geodesic
from whereish.publish.ledger.ledger import Ledger
from whereish.randomness import Randomness
from whereish.results import JsonResult
from whereish.space.sphere import great_circle_m, true_metres
from whereish.units import Epsilon, Length, at_least_one

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Nearby", "Question", "nearby"]


@dataclass(frozen=True, eq=False)
class Nearby(JsonResult):
    """What is near, nearest first, and how it was found.

    Parameters
    ----------
    results
        A dict for each place: `lon`, `lat`, `distance_m` and what the source keeps.  Distances are
        true metres from the place itself, so results are as secret as it is; in the mode
        without filter they are from the report.
    report
        The longitude and latitude that the source was asked with.
    radius
        How far around the report it was asked.
    confidence
        The probability, at least, with which the area of interest lies in what was asked for.
    covered
        Whether it does this time; only whoever knows the place can tell.
    complete
        False where the source left out places that were asked for.
    fetched, bytes
        How many places came, and how many bytes over a network.
    """

    _NOT_TOLD = ("results", "covered")  # as secret as the place

    results: list[dict[str, Any]] = field(repr=False)
    report: tuple[float, float] = field(repr=False)
    radius: Length
    confidence: float
    covered: bool = field(repr=False)
    complete: bool
    fetched: int
    bytes: int

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        part = "" if self.complete else ", incomplete"
        return (
            f"Nearby({self.fetched} places fetched within {self.radius} of a report; the area of"
            f" interest is inside with probability at least {self.confidence:g}{part})"
        )

    @property
    def exact(self) -> bool:
        """Whether the results are those that asking around the place itself would give."""
        return self.covered and self.complete

    def to_arrow(self) -> pa.Table:
        """The results as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.results)


def nearby(
    place: tuple[float, float],
    radius: Length | str = "300 m",
    *,
    source: Source,
    mechanism: Any = None,
    epsilon: Epsilon | str | None = None,
    confidence: float = 0.95,
    k: int | None = None,
    per_km2: float | None = None,
    filtered: bool = True,
    session: TraceSession | None = None,
    time_s: float | None = None,
    pinned: Pin | None = None,
    ledger: Ledger | None = None,
    subject: str = "me",
    rng: Randomness | None = None,
) -> Nearby:
    """Everything within `radius` of a place, from a source that is told a report of it only.

    Parameters
    ----------
    place
        Longitude and latitude in degrees.
    radius
        The area of interest.
    source
        A :class:`~whereish.MemorySource`, a :class:`~whereish.PlaceStore` or a service.
    mechanism, epsilon
        What reports the place: any mechanism whose distances are known, or Laplace noise on the
        globe of this epsilon.
    confidence
        How probably the area of interest lies in the area that is asked for, at least.
    k, per_km2
        The k nearest instead: `radius` is then the one that holds k places with the confidence, if
        they lie at random with this public density.  `covered` says whether they are the k nearest.
    filtered
        False asks around the report as if it were the place, and gives what comes: less traffic,
        results for nearly here (the "mildly sensitive" use of Andrés et al. 2013).
    session, time_s
        A trace session of the predictive mechanism: it reuses a report while the person stays.  Its
        budget is charged when it starts, by its :meth:`worst_case`.  A radius is known of tested
        steps alone, so its manager tests at every step: ``FixedUtility(..., tests="every")``.
    pinned
        A pin of :class:`~whereish.PinnedPlaces`: its one report is used, and nothing is drawn or
        charged.
    ledger, subject
        Where each call is charged: n calls cost n epsilon.

    Raises
    ------
    InvalidInput
        If not exactly one of mechanism, epsilon, session and pinned is given.
    BudgetExceeded
        If the ledger has too little left; then nothing is drawn or asked.
    ServiceUnavailable
        If the source does not answer.  The report may have left: it stays charged.

    Examples
    --------
    >>> import pandas as pd
    >>> import whereish as wh
    >>> cafes = pd.DataFrame({"lon": [2.351, 2.45], "lat": [48.85, 48.9], "name": ["A", "B"]})
    >>> source = wh.MemorySource(cafes, keep=["name"])
    >>> found = wh.nearby((2.35, 48.85), "300 m", source=source, epsilon="ln(4)/10 m")
    >>> [(row["name"], round(row["distance_m"])) for row in found.results]
    [('A', 73)]
    """
    if not hasattr(source, "around"):
        raise InvalidInput(
            "source must be a source of places, such as wh.MemorySource(path); got"
            f" {type(source).__name__}"
        )
    here = check_place(place)
    given = [name for name, value in _named(mechanism, epsilon, session, pinned) if value]
    if len(given) != 1:
        raise InvalidInput(
            "give exactly one of mechanism, epsilon, session and pinned; got"
            f" {' and '.join(given) or 'none'}"
        )
    if ledger is not None and given[0] in ("session", "pinned"):
        raise InvalidInput(
            "a session and a pinned place are charged once, when they begin: leave the ledger out"
        )
    probability(confidence)
    interest = Length.positive(radius, name="radius")
    if k is not None:
        interest = radius_of_nearest(k, per_km2, confidence)
    stated = confidence
    if pinned is not None:
        lon, lat = pinned.lon, pinned.lat
        away, stated = pinned.radius(confidence)
        around = Length(interest.m + away.m)
    else:
        if session is not None:
            drawn = _from_session(session, here, time_s)
            noise: Any = session.mechanism.noise(Epsilon(1e-3))
            around = Length(interest.m + session_radius(session, confidence).m)
        else:
            noise = mechanism_of(mechanism, epsilon)
            around = _radius_of(noise, interest, confidence)
            drawn = Asking(noise, ledger, subject).report(here, rng)
        lon, lat, moved = rounded_degrees(*drawn, lattice_decimals(noise))
        around = Length(around.m + moved)
    if not filtered:
        around = interest
    return Question(here, (lon, lat), interest, around, stated, k, filtered).ask(source)


def _radius_of(mechanism: Any, interest: Length, confidence: float) -> Length:
    """The retrieval radius; that of a map is a sum over all its cells, so it is kept."""
    try:
        return _kept_radius(mechanism, interest, confidence)
    except TypeError:  # a mechanism that cannot be a key
        return retrieval_radius(mechanism, interest, confidence)


_kept_radius = lru_cache(maxsize=16)(retrieval_radius)


def _from_session(
    session: TraceSession, place: tuple[float, float], time_s: float | None
) -> tuple[float, float]:
    secret = session.space.from_degrees([place[0]], [place[1]])
    return reported_degrees(session.report(secret, time_s))


def _named(*values: Any) -> list[tuple[str, bool]]:
    names = ("mechanism", "epsilon", "session", "pinned")
    return [(name, value is not None) for name, value in zip(names, values, strict=True)]


@dataclass(frozen=True)
class Question:
    """What is within `interest` of a place, asked for within `around` of a report of it.

    The report was drawn, and charged, before.
    """

    here: tuple[float, float] = field(repr=False)
    report: tuple[float, float]
    interest: Length
    around: Length
    confidence: float
    k: int | None = None
    filtered: bool = True

    def ask(self, source: Source) -> Nearby:
        """Ask around the report, filter by true distance, and put the nearest first."""
        found = source.around(*self.report, self.around.m)
        centre = self.here if self.filtered else self.report
        rows = _candidates(found.coordinates, centre, self.interest.m, self.k)
        distances = Geodesic()(found.coordinates[rows], np.array([centre])) if len(rows) else rows
        order = np.argsort(distances, kind="stable")
        rows, distances = rows[order], distances[order]
        left = self.around.m - float(Geodesic()(np.array(self.here), np.array(self.report)))
        if self.k is not None:
            rows = rows[: self.k]
            covered = len(rows) == self.k and bool(distances[self.k - 1] <= left)
        else:
            rows = rows[: int(np.searchsorted(distances, self.interest.m, side="right"))]
            covered = self.interest.m <= left
        pairs = zip(rows.tolist(), distances.tolist(), strict=False)
        return Nearby(
            [{**found.row(row), "distance_m": distance} for row, distance in pairs],
            self.report,
            self.around,
            self.confidence if self.filtered else 0.0,
            covered and self.filtered,
            found.complete,
            len(found),
            found.bytes,
        )


def _candidates(
    places: FloatArray, centre: tuple[float, float], radius_m: float, k: int | None
) -> IntArray:
    """Rows that may be within the radius, or among the k nearest: by the sphere below WGS84.

    True distances are at least those of the sphere, and at most (a/b)^3 times them.
    """
    if k is None:
        return np.flatnonzero(within_sphere(places, *centre, radius_m))
    on_sphere = great_circle_m(places, np.array(centre))
    if len(places) <= k:
        return np.arange(len(places))
    reach = np.partition(on_sphere, k - 1)[k - 1] * true_metres() * (1 + 1e-9)
    return np.flatnonzero(on_sphere <= reach)


def radius_of_nearest(k: int, per_km2: float | None, confidence: float) -> Length:
    """The radius that holds k places with this probability, at a density of `per_km2`.

    Places at random are a Poisson process: the area of the disk that reaches the k-th, times
    the density, has the law Gamma(k).
    """
    count = at_least_one(k, name="k", meaning="how many places are wanted")
    if per_km2 is None or not (np.isfinite(per_km2) and per_km2 > 0):
        raise InvalidInput("the k nearest need a public density of places: per_km2 > 0")
    from scipy.special import gammaincinv

    area = float(gammaincinv(float(count), probability(confidence))) / (per_km2 / 1e6)
    return Length(float(np.sqrt(area / np.pi)))
