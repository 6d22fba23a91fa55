"""The sphere: longitude and latitude in degrees, anywhere on Earth.

Why this sphere.  WGS84 measures ds² = M² dφ² + N² cos²φ dλ², where the radii of
curvature satisfy M >= b²/a and N >= a > b²/a everywhere.  With R = b²/a and the
geodetic latitude read as the spherical one, R² (dφ² + cos²φ dλ²) <= ds², so

    great-circle distance on this sphere <= WGS84 geodesic distance

for all pairs of places.  What is private for the first is private for the
second, at the price of at most 1% more noise.  The other way round, true distances
are at most :func:`true_metres` times those of the sphere, which radii are given with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.box import Box
from whereish.space.points import Points, stacked_degrees

__all__ = [
    "DISTANCE_ERROR",
    "FARTHEST_M",
    "RADIUS_M",
    "Sphere",
    "great_circle_m",
    "true_metres",
    "unit_vectors",
    "within_180",
]

WGS84_A, WGS84_B = 6378137.0, 6356752.314245179
WGS84_E2 = 1 - (WGS84_B / WGS84_A) ** 2
RADIUS_M = math.nextafter(WGS84_B**2 / WGS84_A, 0.0)
"""Radius b²/a of the sphere below WGS84, rounded down: 6,335,439 m."""


FARTHEST_M = 20_003_931.459
"""Half a meridian of WGS84, rounded up: no two places are farther apart."""

DISTANCE_ERROR = 2.0**-46
"""Bound on the relative error of :func:`great_circle_m`."""


@dataclass(frozen=True, slots=True)
class Sphere:
    """Longitude, latitude in degrees; distances of the sphere of radius b²/a.

    >>> import whereish as wh
    >>> sphere = wh.Sphere()
    >>> sphere.from_degrees([2.35], [48.85])
    Points(1 in the globe (longitude, latitude in degrees))
    """

    dimension: ClassVar[int] = 2
    """Longitude first, then latitude."""
    description: ClassVar[str] = "the globe (longitude, latitude in degrees)"
    """The space in a few words."""

    def check(self, coordinates: FloatArray) -> None:
        """Latitudes within 90 degrees, longitudes within 360."""
        beyond = int((np.abs(coordinates[:, 1]) > 90).sum())
        if beyond:
            raise InvalidInput(
                f"latitude must be within -90..90 degrees; {beyond} of {len(coordinates)} points"
                " are beyond: are latitude and longitude swapped?"
            )
        beyond = int((np.abs(coordinates[:, 0]) > 360).sum())
        if beyond:
            raise InvalidInput(
                f"longitude must be within -360..360 degrees; {beyond} of {len(coordinates)}"
                " points are beyond: are these degrees?"
            )

    def from_degrees(self, lon: ArrayLike, lat: ArrayLike) -> Points:
        """Points at these longitudes and latitudes."""
        return Points(stacked_degrees(lon, lat), self)

    def to_degrees(self, points: Points) -> tuple[FloatArray, FloatArray]:
        """Longitudes and latitudes of points."""
        return points.coordinates[:, 0], points.coordinates[:, 1]

    def to_json(self) -> dict[str, Any]:
        """A plain description: there is only one sphere."""
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sphere:
        """The sphere that :meth:`to_json` described."""
        return cls()

    @staticmethod
    def clamp(coordinates: FloatArray, box: Box) -> FloatArray:
        """The closest point of a longitude-latitude box, by great-circle distance.

        The box may reach beyond 180 degrees (x from 170 to 190) to cross the
        antimeridian.  Outside its meridians the closest point lies on one of the
        two.  On the great circle of a meridian Δλ away the foot of the place is at the
        angle atan2(sin φ, cos φ cos Δλ), which may be beyond the pole; distance grows
        with the angle from the foot, so the box's end that is closer by angle wins.
        """
        lon = box.x_low + np.mod(coordinates[:, 0] - box.x_low, 360.0)
        lat = coordinates[:, 1]
        best = np.column_stack([lon, np.clip(lat, box.y_low, box.y_high)])
        outside = lon > box.x_high
        if outside.any():
            phi = np.radians(lat[outside])
            nearest = np.full(len(phi), np.inf)
            for edge in (box.x_low, box.x_high):
                away = np.radians(lon[outside] - edge)
                foot = np.degrees(np.arctan2(np.sin(phi), np.cos(phi) * np.cos(away)))
                from_low, from_high = (
                    np.abs(np.mod(foot - end + 180.0, 360.0) - 180.0)
                    for end in (box.y_low, box.y_high)
                )
                end = np.where(from_low < from_high, box.y_low, box.y_high)
                within = (box.y_low <= foot) & (foot <= box.y_high)
                candidate = np.column_stack([np.full(len(phi), edge), np.where(within, foot, end)])
                distance = great_circle_m(candidate, coordinates[outside])
                closer = distance < nearest
                rows = np.flatnonzero(outside)[closer]
                best[rows] = candidate[closer]
                nearest = np.minimum(nearest, distance)
        best[:, 0] = np.mod(best[:, 0] + 180.0, 360.0) - 180.0
        return best


def true_metres(latitude: float = 90.0) -> float:
    """True metres for each metre of this sphere, at most, between the parallels ±`latitude`.

    Of the two radii of curvature N = a / sqrt(1 - e² sin² φ) is the larger one, and grows
    with |φ|: no path is longer on WGS84 than N / R times its length on the sphere.  At the
    pole, and so everywhere, that is (a/b)³ = 1.0101.
    """
    sine = math.sin(math.radians(min(abs(latitude), 90.0)))
    return WGS84_A / math.sqrt(1 - WGS84_E2 * sine * sine) / RADIUS_M


def unit_vectors(coordinates: FloatArray) -> FloatArray:
    """Points of the unit sphere in three dimensions, from degrees."""
    lon, lat = np.radians(coordinates[..., 0]), np.radians(coordinates[..., 1])
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def great_circle_m(x: FloatArray, y: FloatArray) -> FloatArray:
    """Great-circle distance in metres on the sphere of radius b²/a.

    Half the chord of the points is h = hypot(sin(Δφ/2), sqrt(cos φ cos φ') sin(Δλ/2)), and
    that of one and the other's antipode k = hypot(sin((φ+φ')/2), sqrt(cos φ cos φ')
    cos(Δλ/2)), with h² + k² = 1; the angle is 2 asin h up to a quarter turn, else pi - 2 asin k.

    The relative error is below :data:`DISTANCE_ERROR`, at poles, antipodes and the
    antimeridian and for close points too: differences of degrees are rounded once, cosines
    are sines of colatitudes, which are as good as exact near a pole, and nothing else
    cancels.  In units of 2^-53, with 16 for a library function: degrees to radians 3, each
    sine 19, the product under the root 39, its root times the other sine 41, hypot 57, the
    arcsine (condition at most 1.28) 89, and one rounding for each product: below 92 of 128.
    """
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    level = np.sqrt(_cosine(x[..., 1]) * _cosine(y[..., 1]))
    turn = np.abs(_longitude_difference(x[..., 0], y[..., 0]))
    near = np.hypot(_sine(x[..., 1] - y[..., 1]), level * _sine(turn))
    far = np.hypot(_sine(x[..., 1] + y[..., 1]), level * _sine(180.0 - turn))
    is_near = near < far
    angle = 2 * np.arcsin(np.minimum(np.where(is_near, near, far), 1.0))
    return np.asarray(RADIUS_M * np.where(is_near, angle, math.pi - angle))


def _sine(degrees: FloatArray) -> FloatArray:
    """The sine of half an angle in degrees."""
    return np.asarray(np.sin(np.radians(degrees) / 2))


def _cosine(latitude: FloatArray) -> FloatArray:
    """cos φ with a small relative error: the sine of the colatitude, exact near a pole."""
    return np.asarray(np.sin(np.radians(90.0 - np.abs(latitude))))


def _longitude_difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """a - b within half a turn, rounded once.

    a - b = sum + rest exactly (Knuth's two-sum); the whole turns to take off the sum are
    between half and twice it, so that taking them off is exact, too.
    """
    total = a - b
    part = total - a
    rest = (a - (total - part)) - (b + part)
    return np.asarray((total - 360.0 * np.rint(total / 360.0)) + rest)


def within_180(degrees: FloatArray, *, wrap: bool, how: str) -> FloatArray:
    """Degrees whose longitudes are within 180; others are refused, or wrapped on request.

    A longitude of 190 may be one counted from 0 to 360, or a mistake: only its owner knows.
    `how` says how to ask for the first.
    """
    beyond = np.abs(degrees[:, 0]) > 180.0
    if not beyond.any():
        return degrees
    if not wrap:
        raise InvalidInput(
            f"longitude must be within -180..180 degrees; {int(beyond.sum())} of {len(degrees)}"
            f" are beyond: if they are counted from 0 to 360, say {how}; else, are latitude and"
            " longitude swapped, or are these degrees at all?"
        )
    wrapped = degrees.copy()
    wrapped[beyond, 0] -= 360.0 * np.sign(wrapped[beyond, 0])
    return wrapped
