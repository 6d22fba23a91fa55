"""One report for one question: charged first, drawn once, in degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Closest, Mechanism, Remapped
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.publish.charging import charged_epsilon
from whereish.publish.ledger.ledger import Charge, Ledger
from whereish.randomness import Randomness
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.sphere import RADIUS_M, Sphere, true_metres
from whereish.units import Epsilon

__all__ = [
    "Asking",
    "check_place",
    "lattice_decimals",
    "mechanism_of",
    "reported_degrees",
    "require_within",
    "rounded_degrees",
    "rounding_m",
]

_PLANE_DECIMALS = 6


@dataclass(frozen=True)
class Asking:
    """Who asks with which mechanism, and where that is charged."""

    mechanism: Mechanism
    ledger: Ledger | None = None
    subject: str = "me"

    def report(
        self, place: tuple[float, float], rng: Randomness | None = None
    ) -> tuple[float, float]:
        """A fresh report in degrees; the ledger is charged before it is drawn.

        Raises
        ------
        BudgetExceeded
            If the subject has too little left; then nothing is drawn.
        """
        space = self.mechanism.space
        if not isinstance(space, Plane | Sphere):
            raise InvalidInput(
                f"a place in degrees needs a mechanism on the globe or a projected plane; this one"
                f" works in {space.description}"
            )
        secret = space.from_degrees([place[0]], [place[1]])
        check = getattr(self.mechanism, "check_secrets", None)
        if check is not None:
            check(secret)
        require_within(self.mechanism, secret)
        if self.ledger is not None:
            self.ledger.charge([Charge(self.subject, charged_epsilon(self.mechanism))])
        return reported_degrees(self.mechanism.report(secret, rng=rng))


def require_within(mechanism: Any, secrets: Points) -> None:
    """Refuse places outside a map or a box, for which no radius of reports is known.

    They would be reported from the closest place inside; the region is public.
    """
    inner = mechanism.mechanism if isinstance(mechanism, Remapped) else mechanism
    remap = mechanism.remap if isinstance(mechanism, Remapped) else None
    inside = True
    if isinstance(inner, EikonalMechanism):
        inside = bool(inner.map.raster.box.contains(secrets.coordinates).all())
    if isinstance(remap, Closest) and isinstance(remap.region, Box):
        on_globe = isinstance(secrets.space, Sphere)
        holds = remap.region.contains_degrees if on_globe else remap.region.contains
        inside = inside and bool(holds(secrets.coordinates).all())
    if not inside:
        raise InvalidInput(
            "a place is outside the mechanism's region, where nothing is known of how far reports"
            " are from it: declare a larger region"
        )


def reported_degrees(reports: Points) -> tuple[float, float]:
    """The degrees of one report, on the lattice on which they are sent."""
    space = reports.space
    assert isinstance(space, Plane | Sphere)
    lon, lat = (float(axis[0]) for axis in space.to_degrees(reports))
    return lon, lat


def rounded_degrees(lon: float, lat: float, decimals: int) -> tuple[float, float, float]:
    """Degrees rounded to so many decimals, and how far that moves a place, in true metres."""
    there = round(lon, decimals), round(lat, decimals)
    if there == (lon, lat):
        return lon, lat, 0.0
    return *there, rounding_m(decimals)


def rounding_m(decimals: int) -> float:
    """How far rounding degrees to so many decimals moves a place, in true metres, at most."""
    half = math.radians(0.5 * 10.0**-decimals)
    return math.sqrt(2) * half * true_metres() * RADIUS_M


def lattice_decimals(mechanism: Any) -> int:
    """How many decimals of a degree a service is told: those of the reports' own lattice.

    A plane's lattice has none in degrees; a tenth of a metre is told of its reports.
    """
    inner = getattr(mechanism, "mechanism", mechanism)
    return inner.decimals if isinstance(inner, GlobeLaplace) else _PLANE_DECIMALS


def mechanism_of(mechanism: Any, epsilon: Epsilon | str | None) -> Mechanism:
    """The mechanism given, or Laplace noise on the globe of this epsilon."""
    if (mechanism is None) == (epsilon is None):
        raise InvalidInput("give either a mechanism or an epsilon, such as epsilon='ln(4)/200 m'")
    if mechanism is None:
        assert epsilon is not None
        return GlobeLaplace(epsilon)
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(
            f"mechanism must be a mechanism that reports places; got {type(mechanism).__name__}"
        )
    return mechanism


def check_place(place: tuple[float, float]) -> tuple[float, float]:
    """Longitude and latitude as plain numbers; the message quotes neither."""
    try:
        lon, lat = (float(value) for value in place)
    except (TypeError, ValueError):
        raise InvalidInput("a place must be two numbers: longitude and latitude") from None
    if not (math.isfinite(lon) and abs(lon) <= 360 and math.isfinite(lat) and abs(lat) <= 90):
        raise InvalidInput(
            "a place must be a longitude within 360 and a latitude within 90 degrees: are they"
            " swapped?"
        )
    return lon, lat
