"""How much a datum operation stretches: from WGS84 to latitudes and longitudes elsewhere.

Places X of one ellipsoid go to A X + t in space (Helmert's similarity), and from there straight
down to another ellipsoid, whatever the height h.  Space is stretched by at most |A|, and
coming down by at most R / (R + h), R a radius of curvature.  PROJ's rotation is 1 + [theta] with
an antisymmetric [theta], whose norm is sqrt(1 + theta²), forwards and (transposed) backwards.
Its smallest singular value is 1.

The frames (east, north, up) of a place and of its image differ by a small angle alpha, so
a step east moves the image's latitude and height by at most tau = |A| (alpha + theta) of it,
and so on.  That encloses the image of a cell around the image of its middle.  Of a step's
length at least the cosine of tau is left after coming down.

PROJ takes heights for zero on the way back, and turns back by 1 - [theta], so that places
return with an error: theta² times the Earth's radius, and |h| alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray
from whereish.space.projection.ellipsoid import SIZE_KEYS, WGS84, Ellipsoid
from whereish.space.projection.interval import Interval
from whereish.space.projection.operation import Step, text_of, transformer_of

__all__ = ["Datum", "Image", "datum_of"]

_ROTATIONS = ("rx", "ry", "rz")
_SHIFTS = ("x", "y", "z")
_PIVOTS = ("px", "py", "pz")
# Rates act from an epoch, and PROJ takes the epoch itself for coordinates without a time.
_RATES = {"dx", "dy", "dz", "drx", "dry", "drz", "ds", "t_epoch"}
_HELMERT_KEYS = {"proj", "inv", "s", "convention", "exact", *_ROTATIONS, *_SHIFTS, *_RATES}
_LARGEST_ANGLE = 2e-3
_EARTH_M = 6.4e6


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Where cells go: enclosures in radians, and bounds of the stretching on the way."""

    lon: Interval
    lat: Interval
    stretch: FloatArray
    least: FloatArray


@dataclass(frozen=True, slots=True)
class Datum:
    """A chain of ellipsoids with at most one similarity between them.

    `first` is the ellipsoid on which WGS84's degrees are read, `last` the one on which those
    of the image are; `text` is the pipeline between them, in degrees, "" for none.
    """

    first: Ellipsoid
    last: Ellipsoid
    text: str = ""
    norm: float = 1.0
    least: float = 1.0
    angle: float = 0.0
    moved_m: float = 0.0

    def image(self, lon: FloatArray, lat: FloatArray, east: FloatArray, north: FloatArray) -> Image:
        """The image of cells with these middles and half sides, in degrees."""
        middle_lon, middle_lat = np.radians(lon), np.radians(lat)
        east, north = np.radians(east), np.radians(north)
        across, up = Interval.around(middle_lon, east), Interval.around(middle_lat, north)
        stretch, least = WGS84.stretch_to(self.first, up)
        if not self.text:
            return Image(across, up, stretch, least)
        x, y, height = transformer_of(self.text).transform(lon, lat, np.zeros_like(lon))
        middle_lon, middle_lat = np.radians(x), np.radians(y)
        if not self.norm > 1.0 and not self.moved_m > 0.0 and self.first == self.last:
            tilt = np.zeros_like(lon)  # a change of the prime meridian only
        else:
            tilt = self.norm * (self._alpha(lat, north) + self.angle)
        cosine = np.cos(np.minimum(np.abs(np.radians(lat)) + north, 1.56))
        rise = tilt * _EARTH_M * (east + north)
        low, high = height - rise, height + rise
        small, large = self.last.b**2 / self.last.a, self.last.a**2 / self.last.b
        stretch = stretch * self.norm / (1 + low / np.where(low < 0, small, large))
        least = least * self.least * np.cos(tilt) / (1 + high / np.where(high < 0, large, small))
        bad = (tilt > _LARGEST_ANGLE) | ~np.isfinite(x) | ~np.isfinite(y) | (np.abs(low) > 1e4)
        return Image(
            Interval.around(middle_lon, 1.05 * east + 2 * tilt / cosine * north),
            Interval.around(middle_lat, 1.05 * north + 2 * tilt * east),
            np.where(bad, np.inf, stretch),
            np.where(bad, 0.0, least),
        )

    def return_m(self, lat: float) -> float:
        """How far from a place PROJ may return from its image, at most, up to a latitude."""
        if not self.text:
            return 0.0
        alpha = float(self._alpha(np.array([lat]), np.zeros(1))[0])
        height = self.moved_m + abs(self.first.a - self.last.a) + abs(self.first.b - self.last.b)
        return 1.1 * (self.angle**2 * _EARTH_M + height * (alpha + self.angle))

    def is_small(self, lat: float) -> bool:
        """Whether frames turn so little, up to a latitude in degrees, that the bounds hold."""
        if not self.text:
            return True
        alpha = self._alpha(np.array([lat]), np.zeros(1))[0]
        return bool(self.norm * (alpha + self.angle) <= _LARGEST_ANGLE)

    def _alpha(self, lat: FloatArray, north: FloatArray) -> FloatArray:
        """By how much the frame turns: about the axis d / (R cos phi), and by shape."""
        cosine = np.cos(np.minimum(np.abs(np.radians(lat)) + north, 1.56))
        shape = abs(self.first.flattening - self.last.flattening)
        return np.asarray(2 * (self.moved_m / (6.3e6 * cosine) + shape))


def datum_of(steps: list[Step], projected: Ellipsoid) -> Datum | None:
    """The datum operation that these steps make, before a projection from `projected`.

    None where a step is not among those whose stretching is known (grids, for example).
    """
    # Without push and pop the height comes out as well.
    inner = [step for step in steps if set(step) != {"proj", "v_3"}]
    acting = [step for step in inner if step not in (_TO_RADIANS, {"proj": "noop"})]
    if not acting:
        return Datum(projected, projected)
    turns = [step for step in acting if step["proj"] == "longlat"]
    if not all(set(step) <= {"proj", "inv", "pm", "no_defs"} | SIZE_KEYS for step in turns):
        return None
    text = text_of([*inner, {"proj": "unitconvert", "xy_in": "rad", "xy_out": "deg"}])
    in_space = [step for step in acting if step["proj"] != "longlat"]
    if not in_space:
        return Datum(projected, projected, text)
    first, last = _cartesian(in_space[0], inverse=False), _cartesian(in_space[-1], inverse=True)
    found = [_similarity(step) for step in in_space[1:-1]]
    if first is None or last != projected or None in found:
        return None
    each = [one for one in found if one is not None]
    return Datum(
        first,
        projected,
        text,
        math.prod(one.norm for one in each),
        math.prod(one.least for one in each),
        sum(one.theta for one in each),
        sum(one.moved_m for one in each),
    )


def _cartesian(step: Step, *, inverse: bool) -> Ellipsoid | None:
    """The ellipsoid of a step between degrees and coordinates in space."""
    right = step["proj"] == "cart" and ("inv" in step) == inverse
    return Ellipsoid.of(step) if right and set(step) <= {"proj", "inv"} | SIZE_KEYS else None


_TO_RADIANS = {"proj": "unitconvert", "xy_in": "deg", "xy_out": "rad"}


class _Similarity(NamedTuple):
    """Both extreme stretches, rotation in radians, and the largest displacement in metres."""

    norm: float
    least: float
    theta: float
    moved_m: float


def _similarity(step: Step) -> _Similarity | None:
    """What a step in space does; None if it is not Helmert's similarity."""
    allowed = _HELMERT_KEYS | ({*_PIVOTS} if step["proj"] == "molobadekas" else set())
    if step["proj"] not in ("helmert", "molobadekas") or not set(step) <= allowed:
        return None

    def length(keys: tuple[str, ...]) -> float:
        return math.hypot(*(float(step.get(key, "0")) for key in keys))

    theta = math.radians(length(_ROTATIONS) / 3600)
    scale = 1 + float(step.get("s", "0")) * 1e-6
    if not 0.99 < scale < 1.01 or theta > _LARGEST_ANGLE:
        return None
    if "inv" in step:
        scale = 1 / scale
    away = abs(scale - 1) + scale * theta  # |A - 1|
    norm = scale * math.hypot(1.0, theta)
    moved = norm * length(_SHIFTS) + away * (_EARTH_M + length(_PIVOTS))
    return _Similarity(norm, scale, theta, moved)
