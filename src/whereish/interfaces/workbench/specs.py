"""Which mechanism a view asks for, and its reports on the map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.interfaces.workbench.bench import Bench, degrees_space
from whereish.interfaces.workbench.wire import Message
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.optimal_circular import OptimalCircular
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.norms import Geodesic
from whereish.space.plane import Plane
from whereish.units import Epsilon, Length

__all__ = ["Place", "Spec", "Spread", "built", "drawn", "spread"]


class Place(Message, frozen=True):
    """A place in degrees."""

    lon: float
    lat: float

    def checked(self) -> tuple[float, float]:
        """The place, if it is one."""
        if not (abs(self.lat) <= 90 and abs(self.lon) <= 180):  # NaN, too
            raise InvalidInput(
                "a place must have a longitude between -180 and 180 and a latitude between -90"
                " and 90 degrees"
            )
        return self.lon, self.lat


class Spec(Message, frozen=True):
    """What blurs: Laplace noise of `per_m`; the optimum of (distance_m, level); or a built one."""

    kind: Literal["laplace", "location", "built"]
    per_m: float = 0.0
    distance_m: float = 0.0
    level: float = 0.0
    id: str = ""


def built(spec: Spec, place: Place, bench: Bench) -> Any:
    """The mechanism; the same words give the same object."""
    place.checked()
    if spec.kind == "laplace":
        return _laplace(spec.per_m)
    if spec.kind == "location":
        return _location(spec.distance_m, spec.level, *_public_centre(place))
    mechanism = bench.take(spec.id).mechanism
    degrees_space(mechanism)
    return mechanism


@lru_cache(maxsize=64)
def _laplace(per_m: float) -> GlobeLaplace:
    return GlobeLaplace(Epsilon(per_m))


@lru_cache(maxsize=16)
def _location(distance_m: float, level: float, lon: float, lat: float) -> OptimalCircular:
    keeps = Distinguishability.location(Length(distance_m), level)
    return OptimalCircular(keeps, plane=Plane.around(lon, lat, "170 km"))


def _public_centre(place: Place) -> tuple[float, float]:
    """The centre of a public plane: of the whole degree around a place, and no closer to it."""
    lat = min(max(math.floor(place.lat) + 0.5, -85.0), 85.0)
    lon = (math.floor(place.lon) + 0.5 + 180.0) % 360.0 - 180.0
    if abs(place.lat) > 85:
        raise InvalidInput("this noise is on a plane, and none covers the poles: use Laplace noise")
    return lon, lat


def secrets_of(mechanism: Any, place: Place) -> FloatArray:
    """The secret in the mechanism's coordinates: for a channel its nearest site."""
    space = degrees_space(mechanism)
    try:
        secret = space.from_degrees([place.lon], [place.lat])
    except InvalidInput:
        raise InvalidInput(
            "the pin is outside the region of this mechanism: move it inside, or choose another"
            " mechanism"
        ) from None
    if isinstance(mechanism, Channel):
        secret = mechanism.nearest_sites(secret)
    return np.asarray(secret.coordinates)


def drawn(mechanism: Any, place: Place, count: int) -> FloatArray:
    """`count` independent reports in degrees, with secure noise."""
    secret = secrets_of(mechanism, place)
    reports = mechanism.report(np.repeat(secret, count, axis=0))
    return np.column_stack(reports.space.to_degrees(reports))


@dataclass(frozen=True)
class Spread:
    """How far reports are from the place, in true metres."""

    mean_m: float
    half_m: float
    most_m: float


def spread(mechanism: Any, place: Place) -> Spread:
    """Mean, median and 95th percentile of the distance of a report."""
    if not isinstance(mechanism, Channel | EikonalMechanism):
        at = (place.lon, place.lat)
        return Spread(
            mechanism.mean_error.m,
            mechanism.quantile(0.5, at=at).m,
            mechanism.quantile(0.95, at=at).m,
        )
    secret = secrets_of(mechanism, place)
    space = degrees_space(mechanism)
    if isinstance(mechanism, Channel):
        chances = mechanism.matrix[int(mechanism.secrets.nearest(secret)[0])]
        reports = mechanism.reports.points
        degrees = np.column_stack(space.to_degrees(reports))
    else:
        chances = mechanism.distribution(secret).ravel()
        degrees = cell_degrees(mechanism)
    away = np.asarray(Geodesic()(degrees, np.array([[place.lon, place.lat]])))
    order = np.argsort(away)
    sums = np.cumsum(chances[order])
    last = len(away) - 1
    half, most = (away[order][min(int(np.searchsorted(sums, q)), last)] for q in (0.5, 0.95))
    return Spread(float(chances @ away), float(half), float(most))


def cell_degrees(mechanism: EikonalMechanism) -> FloatArray:
    """The centres of the cells that a map may report, in degrees."""
    known = _CELLS.get(id(mechanism))
    if known is None or known[0] is not mechanism:
        from whereish.space.points import Points

        centres = Points(mechanism.reports.centres(), mechanism.map.plane)
        known = mechanism, np.column_stack(mechanism.map.plane.to_degrees(centres))
        _CELLS.clear()
        _CELLS[id(mechanism)] = known
    return known[1]


_CELLS: dict[int, tuple[EikonalMechanism, FloatArray]] = {}
