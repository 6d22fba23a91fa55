"""Stretching of projections that are not conformal: equal-area, equidistant, Web Mercator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whereish.space.ellipsoid import Ellipsoid
from whereish.space.interval import Interval
from whereish.space.points import FloatArray

__all__ = ["AzimuthalEqualArea", "AzimuthalEquidistant", "ParallelEqualArea", "PlateCarree"]


@dataclass(frozen=True, slots=True)
class ParallelEqualArea:
    """Albers (cone n) and the cylindrical equal-area projection (n = 0).

    Parallels are stretched by k = sqrt(c - n q) / m and meridians by 1/k.
    """

    ellipsoid: Ellipsoid
    meridian: float
    constant: float
    cone: float
    reach: float = math.pi

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and the value in its middle."""
        middle = (lat.lo + lat.hi) / 2
        k = self._k(Interval(middle, middle))
        over = self._k(lat)
        return (
            np.maximum(over.hi, over.inverse().hi),
            np.maximum(k.hi, k.inverse().hi),
        )

    def _k(self, lat: Interval) -> Interval:
        root = (self.constant - self.cone * lat.rising(self.ellipsoid.authalic)).sqrt()
        return root * _parallel(self.ellipsoid, lat).inverse()


@dataclass(frozen=True, slots=True)
class PlateCarree:
    """Cylinders with y a function of latitude: parallels by c/m, meridians by a given rule.

    `rule` is "geodetic" (y = a phi: a/M), "true" (y the meridian's length: 1) or "web" (Web
    Mercator, y = a psi of the sphere: a / (M cos phi)).  All rise with |phi|, but a/M falls:
    it is greatest at the latitude nearest the equator.
    """

    ellipsoid: Ellipsoid
    meridian: float
    constant: float
    rule: str
    reach: float = math.pi

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and the value in its middle."""
        middle = (lat.lo + lat.hi) / 2
        return self._value(lat.magnitude, lat.mignitude), self._value(middle, middle)

    def _value(self, farthest: FloatArray, nearest: FloatArray) -> FloatArray:
        across = self.constant / self.ellipsoid.parallel(farthest)
        if self.rule == "web":
            up = 1 / (self.ellipsoid.meridian(farthest) * np.cos(farthest))
        elif self.rule == "geodetic":
            up = 1 / self.ellipsoid.meridian(nearest)
        else:
            up = np.ones_like(farthest)
        return np.asarray(np.maximum(across, up))


@dataclass(frozen=True, slots=True)
class AzimuthalEqualArea:
    """Lambert's azimuthal equal-area projection about (0, phi_0).

    The ellipsoid goes to its authalic sphere (parallels by p, meridians by 1/p), that to the
    plane (its derivative is :meth:`_sphere`), and x by D, y by 1/D, so that the centre is true.
    """

    ellipsoid: Ellipsoid
    meridian: float
    centre: float
    reach: float = math.inf

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and the value in its middle."""
        middle_lon, middle_lat = (lon.lo + lon.hi) / 2, (lat.lo + lat.hi) / 2
        at = self._largest(Interval(middle_lon, middle_lon), Interval(middle_lat, middle_lat))
        return self._largest(lon, lat), at

    def _largest(self, lon: Interval, lat: Interval) -> FloatArray:
        pole = float(self.ellipsoid.authalic(np.array(math.pi / 2)))
        sine_0 = float(self.ellipsoid.authalic(np.array(self.centre))) / pole
        cosine_0 = math.sqrt(max(1 - sine_0**2, 0.0))
        radius = math.sqrt(pole / 2)
        d = 1.0
        if abs(self.centre) < math.pi / 2 - 1e-10:
            d = float(self.ellipsoid.parallel(np.array(self.centre))) / (radius * cosine_0)
        sine = lat.rising(self.ellipsoid.authalic) * (1 / pole)
        cosine = (1.0 - sine.square()).sqrt()
        p = radius * cosine * _parallel(self.ellipsoid, lat).inverse()
        (xe, xn), (ye, yn) = self._sphere(lon, sine, cosine, sine_0, cosine_0)
        q = p.inverse()
        a, b = d * (xe * p), d * (xn * q)
        c, e = (1 / d) * (ye * p), (1 / d) * (yn * q)
        # Singular values of [[a, b], [c, e]], as in stretch.stretch_at.
        with np.errstate(invalid="ignore"):
            one = np.hypot((a + e).magnitude, (b - c).magnitude)
            two = np.hypot((a - e).magnitude, (b + c).magnitude)
        return np.asarray((one + two) / 2)

    @staticmethod
    def _sphere(
        lon: Interval, sine: Interval, cosine: Interval, sine_0: float, cosine_0: float
    ) -> tuple[tuple[Interval, Interval], tuple[Interval, Interval]]:
        """Derivatives of k (cos b sin l, cos b0 sin b - sin b0 cos b cos l) east and north.

        k = sqrt(2 / (1 + g)) with g the cosine of the distance to the centre.
        """
        cos_l, sin_l = lon.cos(), lon.sin()
        g = sine_0 * sine + cosine_0 * (cosine * cos_l)
        inverse = (1.0 + g).inverse()
        k = (2.0 * inverse).sqrt()
        north = sine_0 * cosine - cosine_0 * (sine * cos_l)
        x, y = cosine * sin_l, cosine_0 * sine - sine_0 * (cosine * cos_l)
        shrink = 0.5 * inverse
        g_east = -cosine_0 * sin_l
        return (
            (
                k * (cos_l - shrink * (g_east * x)),
                k * (-(sine * sin_l) - shrink * (north * x)),
            ),
            (
                k * (sine_0 * sin_l - shrink * (g_east * y)),
                k * (cosine_0 * cosine + sine_0 * (sine * cos_l) - shrink * (north * y)),
            ),
        )


@dataclass(frozen=True, slots=True)
class AzimuthalEquidistant:
    """Geodesic polar coordinates about (0, phi_0): distances from the centre are true.

    Across, the plane has s where the ellipsoid has the reduced length m, m'' = -K m.  With
    K <= k² along the geodesic, m >= sin(k s) / k (Sturm), so nothing is stretched by more
    than k s / sin(k s).  The curvature K = (1 - e² sin² phi)² / b² falls with |phi|, and the
    least |phi| of a geodesic is at an end of it, or 0.
    """

    ellipsoid: Ellipsoid
    meridian: float
    centre: float
    reach: float = math.inf

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and one for its middle."""
        from pyproj import Geod

        middle_lon, middle_lat = (lon.lo + lon.hi) / 2, (lat.lo + lat.hi) / 2
        geod = Geod(a=self.ellipsoid.a, es=self.ellipsoid.e2)
        origin = np.zeros_like(middle_lon)
        s = geod.inv(
            origin, np.full_like(origin, self.centre), middle_lon, middle_lat, radians=True
        )[2]
        largest = self.ellipsoid.a / math.sqrt(1 - self.ellipsoid.e2)  # both M and N are below
        beyond = largest * np.hypot((lat.hi - lat.lo) / 2, (lon.hi - lon.lo) / 2)
        return self._across(s + beyond, lat), self._across(s, Interval(middle_lat, middle_lat))

    def _across(self, s: FloatArray, lat: Interval) -> FloatArray:
        sign = math.copysign(1.0, self.centre)
        lowest = np.minimum(sign * lat.lo, sign * lat.hi)
        least = np.clip(np.minimum(lowest, abs(self.centre)), 0.0, None)
        k = (1 - self.ellipsoid.e2 * np.sin(least) ** 2) / self.ellipsoid.b
        angle = np.asarray(k * s)
        with np.errstate(divide="ignore", invalid="ignore"):
            across = np.where(angle < 3.0, angle / np.sin(angle), np.inf)
        return np.asarray(np.where(angle < 1e-9, 1.0, across))


def _parallel(ellipsoid: Ellipsoid, lat: Interval) -> Interval:
    """m = N cos phi / a, which falls with |phi|."""
    return Interval(ellipsoid.parallel(lat.magnitude), ellipsoid.parallel(lat.mignitude))
