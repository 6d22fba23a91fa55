"""Which closed form belongs to a projection step of PROJ.

A step with a parameter that is not known here gets none.  Whatever is recognised is
compared with PROJ's own results before it is believed (:mod:`whereish.space.projection.stretch`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Protocol

import numpy as np

from whereish.arrays import FloatArray
from whereish.space.projection.conformal import Conformal, krueger
from whereish.space.projection.ellipsoid import SIZE_KEYS, Ellipsoid
from whereish.space.projection.interval import Interval
from whereish.space.projection.operation import Step
from whereish.space.projection.other_families import (
    AzimuthalEqualArea,
    AzimuthalEquidistant,
    ParallelEqualArea,
    PlateCarree,
)

__all__ = ["Family", "families_of"]

_COMMON = SIZE_KEYS | {"proj", "lon_0", "x_0", "y_0", "pm", "axis", "no_defs", "type", "units"}
_HALF_PI = math.pi / 2
# Constants of Krovak's projection as PROJ has them: the cone's axis and pseudo standard parallel.
_KROVAK_AXIS = _HALF_PI - 1.04216856380474
_KROVAK_PARALLEL = 1.37008346281555


class Family(Protocol):
    """A projection with formulas for its largest and its smallest stretching."""

    @property
    def meridian(self) -> float:
        """The central meridian in radians east of Greenwich."""

    @property
    def reach(self) -> float:
        """How far from the central meridian the formula holds, in radians."""

    @property
    def ellipsoid(self) -> Ellipsoid:
        """What is projected."""

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound of the stretching on each cell, and the stretching in its middle.

        Longitudes are from the central meridian; all in radians.
        """

    def least(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """A lower bound of what any direction is stretched by, and the least in the middle.

        It means something only where the bound above is finite.
        """


def families_of(step: Step) -> list[Family]:
    """The formulas that may be meant by a step, none if it is not one that is known.

    More than one where versions of PROJ differ.
    """
    known = _KNOWN.get(step.get("proj", ""))
    if known is None:
        return []
    build, own = known
    ellipsoid = Ellipsoid.of(step)
    if ellipsoid is None or not set(step) <= _COMMON | own or step.get("units", "m") != "m":
        return []
    try:
        said = _Parameters(step)
        return build(ellipsoid, said.meridian, said)
    except (KeyError, ValueError, ZeroDivisionError):
        return []


class _Parameters:
    """Numbers of a step; angles are in radians."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def angle(self, key: str, default: float | None = None) -> float:
        if key not in self.step and default is not None:
            return default
        return math.radians(float(self.step[key]))

    def has(self, key: str) -> bool:
        return key in self.step

    @property
    def meridian(self) -> float:
        return self.angle("lon_0", 0.0) + self.greenwich

    @property
    def greenwich(self) -> float:
        from pyproj import get_prime_meridians_map  # degrees, minutes and seconds by name

        name = self.step.get("pm", "0")
        return math.radians(_sexagesimal(get_prime_meridians_map().get(name, name)))

    @property
    def scale(self) -> float:
        return float(self.step.get("k_0", self.step.get("k", "1")))


def _sexagesimal(text: str) -> float:
    """Degrees from decimal degrees, or degrees, minutes and seconds with a letter E or W."""
    sign = -1.0 if text.endswith(("W", "S")) else 1.0
    words = re.split("[d'\"]", text.rstrip("EWNS"))
    numbers = [float(word) for word in words if word]
    return sign * sum(value / 60.0**i for i, value in enumerate(numbers))


def _at(function: Callable[[FloatArray], FloatArray], lat: float) -> float:
    return float(function(np.array(lat)))


def _mercator(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    k = _at(e.parallel, said.angle("lat_ts")) if said.has("lat_ts") else said.scale
    return [Conformal(e, meridian, k)]


def _web_mercator(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    return [PlateCarree(e, meridian, 1.0, "web")]


def _conic(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    first = said.angle("lat_1")
    second = said.angle("lat_2", first)
    if abs(first - second) < 1e-10:
        cone = math.sin(first)
    else:
        fall = math.log(_at(e.parallel, first) / _at(e.parallel, second))
        cone = fall / (_at(e.isometric, second) - _at(e.isometric, first))
    k = said.scale * _at(e.parallel, first) * math.exp(cone * _at(e.isometric, first))
    return [Conformal(e, meridian, k, cone=cone)]


def _transverse(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    radius, alphas = krueger(e)
    series = alphas if e.e2 else ()
    k = said.scale * radius
    return [Conformal(e, meridian, k, (0.0, 1.0, 0.0), series=series, reach=_HALF_PI)]


def _utm(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    centre = math.radians(6 * int(said.step["zone"]) - 183)
    radius, alphas = krueger(e)
    return [Conformal(e, centre, 0.9996 * radius, (0.0, 1.0, 0.0), series=alphas, reach=_HALF_PI)]


def _stereographic(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    centre = said.angle("lat_0", 0.0)
    polar = abs(abs(centre) - _HALF_PI) < 1e-10
    k = said.scale
    if not polar:
        if said.has("lat_ts"):
            return []
        sphere = math.atan(math.sinh(_at(e.isometric, centre)))
        k *= 2 * _at(e.parallel, centre) / math.cos(sphere)
        return [
            Conformal(
                e, meridian, k, (math.cos(sphere), 0.0, math.sin(sphere)), 1.0, reach=math.inf
            )
        ]
    pole = (0.0, 0.0, math.copysign(1.0, centre))
    true = abs(said.angle("lat_ts", _HALF_PI))
    if abs(true - _HALF_PI) < 1e-10:
        x = math.sqrt(e.e2)
        k *= 2 / math.sqrt((1 + x) ** (1 + x) * (1 - x) ** (1 - x))
    else:
        k *= _at(e.parallel, true) * math.exp(_at(e.isometric, true))
    return [Conformal(e, meridian, k, pole, 1.0, reach=math.inf)]


def _gauss(e: Ellipsoid, lat: float) -> tuple[float, float, float, float]:
    """Gauss's sphere osculating at a latitude: C, c, chi_0 and its radius over a."""
    ratio = math.sqrt(1 + e.e2 * math.cos(lat) ** 4 / (1 - e.e2))
    chi = math.asin(math.sin(lat) / ratio)
    shift = math.atanh(math.sin(chi)) - ratio * _at(e.isometric, lat)
    return ratio, shift, chi, math.sqrt(1 - e.e2) / (1 - e.e2 * math.sin(lat) ** 2)


def _double_stereographic(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    ratio, shift, chi, radius = _gauss(e, said.angle("lat_0"))
    k, pole = 2 * said.scale * radius, (math.cos(chi), 0.0, math.sin(chi))
    return [Conformal(e, meridian, k, pole, 1.0, ratio, shift)]


def _swiss(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    ratio, shift, chi, radius = _gauss(e, said.angle("lat_0"))
    pole = (-math.sin(chi), 0.0, math.cos(chi))
    return [Conformal(e, meridian, said.scale * radius, pole, 0.0, ratio, shift)]


def _krovak(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    ratio, shift, _, radius = _gauss(e, said.angle("lat_0"))
    cone = math.sin(_KROVAK_PARALLEL)
    k = cone * said.scale * radius / math.tan(_KROVAK_PARALLEL)
    k *= math.exp(cone * math.atanh(cone))
    pole = (math.sin(_KROVAK_AXIS), 0.0, math.cos(_KROVAK_AXIS))
    return [Conformal(e, meridian, k, pole, cone, ratio, shift)]


def _oblique_mercator(e: Ellipsoid, _: float, said: _Parameters) -> list[Family]:
    """Hotine's projection (Snyder 1987, pages 71 to 75), given by a point and an azimuth."""
    centre = said.angle("lat_0")
    ratio, _, _, radius = _gauss(e, centre)
    d = ratio * math.sqrt(1 - e.e2) / _at(e.parallel, centre)
    d /= 1 - e.e2 * math.sin(centre) ** 2
    f = d + math.copysign(math.sqrt(max(d * d - 1, 0.0)), centre)
    shift = math.log(f) - ratio * _at(e.isometric, centre)
    gamma = math.asin(math.sin(said.angle("alpha")) / d)
    turn = math.asin((f - 1 / f) / 2 * math.tan(gamma)) / ratio
    meridian = said.angle("lonc") + said.greenwich - turn
    pole = (0.0, -math.cos(gamma), math.sin(gamma))
    reach = _HALF_PI / ratio
    return [Conformal(e, meridian, said.scale * radius, pole, 0.0, ratio, shift, reach=reach)]


def _albers(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    first = said.angle("lat_1")
    second = said.angle("lat_2", first)
    m, q = _at(e.parallel, first), _at(e.authalic, first)
    cone = math.sin(first)
    if abs(first - second) >= 1e-10:
        cone = (m**2 - _at(e.parallel, second) ** 2) / (_at(e.authalic, second) - q)
    return [ParallelEqualArea(e, meridian, m**2 + cone * q, cone)]


def _cylindrical_equal_area(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    k = _at(e.parallel, said.angle("lat_ts")) if said.has("lat_ts") else said.scale
    return [ParallelEqualArea(e, meridian, k**2, 0.0)]


def _plate_carree(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    true = said.angle("lat_ts", 0.0)
    return [
        PlateCarree(e, meridian, math.cos(true), "geodetic"),
        PlateCarree(e, meridian, _at(e.parallel, true), "true"),
    ]


def _azimuthal_equal_area(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    return [AzimuthalEqualArea(e, meridian, said.angle("lat_0", 0.0))]


def _azimuthal_equidistant(e: Ellipsoid, meridian: float, said: _Parameters) -> list[Family]:
    return [AzimuthalEquidistant(e, meridian, said.angle("lat_0", 0.0))]


_SCALES = frozenset({"k", "k_0"})
_KNOWN: dict[
    str, tuple[Callable[[Ellipsoid, float, _Parameters], list[Family]], frozenset[str]]
] = {
    "merc": (_mercator, _SCALES | {"lat_ts"}),
    "webmerc": (_web_mercator, frozenset({"lat_0"})),
    "lcc": (_conic, _SCALES | {"lat_0", "lat_1", "lat_2"}),
    "tmerc": (_transverse, _SCALES | {"lat_0"}),
    "utm": (_utm, frozenset({"zone", "south"})),
    "stere": (_stereographic, _SCALES | {"lat_0", "lat_ts"}),
    "sterea": (_double_stereographic, _SCALES | {"lat_0"}),
    "somerc": (_swiss, _SCALES | {"lat_0"}),
    "krovak": (_krovak, _SCALES | {"lat_0", "alpha"}),
    "omerc": (
        _oblique_mercator,
        _SCALES | {"lat_0", "lonc", "alpha", "gamma", "no_uoff", "no_off"},
    ),
    "aea": (_albers, frozenset({"lat_0", "lat_1", "lat_2"})),
    "cea": (_cylindrical_equal_area, _SCALES | {"lat_ts"}),
    "eqc": (_plate_carree, frozenset({"lat_0", "lat_ts"})),
    "laea": (_azimuthal_equal_area, frozenset({"lat_0"})),
    "aeqd": (_azimuthal_equidistant, frozenset({"lat_0"})),
}
