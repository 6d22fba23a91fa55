"""Ellipsoids of revolution: ds² = M² dφ² + (N cos φ)² dλ² in geodetic latitude φ, longitude λ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whereish.arrays import FloatArray
from whereish.space.sphere import WGS84_A, WGS84_E2

if TYPE_CHECKING:
    from whereish.space.projection.interval import Interval
    from whereish.space.projection.operation import Step

__all__ = ["SIZE_KEYS", "WGS84", "Ellipsoid"]

SIZE_KEYS = frozenset({"ellps", "a", "b", "rf", "f", "R"})
"""Parameters of a step that say which ellipsoid it uses."""


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """Semi-major axis `a` in metres and squared eccentricity `e2`."""

    a: float
    e2: float

    @classmethod
    def of(cls, step: Step) -> Ellipsoid | None:
        """The ellipsoid of a step of a pipeline; None where it is not said plainly."""
        from pyproj import get_ellps_map

        said: dict[str, float | str] = {k: v for k, v in step.items() if k in SIZE_KEYS}
        if "ellps" in said:
            said = {**get_ellps_map().get(str(said.pop("ellps")), {}), **said}
            said.pop("description", None)
        numbers = {key: float(value) for key, value in said.items()}
        if set(numbers) == {"R"}:
            return cls(numbers["R"], 0.0)
        a, shape = numbers.pop("a", math.nan), numbers
        if math.isnan(a) or len(shape) > 1:
            return None
        if not shape:
            return cls(a, 0.0)
        ((key, value),) = shape.items()
        flattening = {"b": 1 - value / a, "rf": 1 / value, "f": value}[key]
        return cls(a, flattening * (2 - flattening))

    @property
    def b(self) -> float:
        """Semi-minor axis in metres."""
        return self.a * math.sqrt(1 - self.e2)

    @property
    def flattening(self) -> float:
        """(a - b) / a."""
        return 1 - self.b / self.a

    def parallel(self, lat: FloatArray) -> FloatArray:
        """Radius N cos φ of the parallel, in units of `a`."""
        return np.asarray(np.cos(lat) / np.sqrt(1 - self.e2 * np.sin(lat) ** 2))

    def meridian(self, lat: FloatArray) -> FloatArray:
        """Radius of curvature M of the meridian, in units of `a`."""
        return np.asarray((1 - self.e2) / (1 - self.e2 * np.sin(lat) ** 2) ** 1.5)

    def isometric(self, lat: FloatArray) -> FloatArray:
        """Isometric latitude psi, in which the ellipsoid is conformal to a plane: dψ = M dφ / r."""
        e = math.sqrt(self.e2)
        s = np.sin(lat)
        return np.asarray(np.arcsinh(np.tan(lat)) - e * np.arctanh(e * s))

    def authalic(self, lat: FloatArray) -> FloatArray:
        """The q of equal-area projections: dq = 2 M r dφ / a²."""
        s = np.sin(lat)
        if self.e2 == 0:
            return np.asarray(2 * s)
        e = math.sqrt(self.e2)
        return np.asarray((1 - self.e2) * (s / (1 - self.e2 * s * s) + np.arctanh(e * s) / e))

    def stretch_to(self, other: Ellipsoid, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest stretch when places keep latitude and longitude on another one.

        M'/M and N'/N are monotone in sin² φ, so the ends of the latitudes decide.
        """
        if self == other:
            return np.ones_like(lat.lo), np.ones_like(lat.lo)
        ratios = [
            radius(end)
            for end in (lat.mignitude, lat.magnitude)
            for radius in (
                lambda x: other.meridian(x) / self.meridian(x),
                lambda x: np.sqrt((1 - self.e2 * np.sin(x) ** 2) / (1 - other.e2 * np.sin(x) ** 2)),
            )
        ]
        size = other.a / self.a
        return np.max(ratios, axis=0) * size, np.min(ratios, axis=0) * size


WGS84 = Ellipsoid(WGS84_A, WGS84_E2)
