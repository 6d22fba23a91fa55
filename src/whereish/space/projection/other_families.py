"""Stretching of projections that are not conformal: equal-area, equidistant, Web Mercator."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.space.projection.ellipsoid import Ellipsoid
from whereish.space.projection.interval import Interval

__all__ = ["AzimuthalEqualArea", "AzimuthalEquidistant", "ParallelEqualArea", "PlateCarree"]


@dataclass(frozen=True, slots=True)
class _OfLatitude(ABC):
    """A family whose stretch depends on the latitude alone, in the same way north and south."""

    ellipsoid: Ellipsoid
    meridian: float
    constant: float

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and the value in its middle."""
        middle = (lat.lo + lat.hi) / 2
        return self._largest(lat), self._largest(Interval(middle, middle))

    def least(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """A lower bound on each cell, and the value in its middle."""
        middle = (lat.lo + lat.hi) / 2
        return self._smallest(lat), self._smallest(Interval(middle, middle))

    @abstractmethod
    def _largest(self, lat: Interval) -> FloatArray:
        """The largest stretch over an interval of latitudes."""

    @abstractmethod
    def _smallest(self, lat: Interval) -> FloatArray:
        """The smallest stretch over an interval of latitudes."""


@dataclass(frozen=True, slots=True)
class ParallelEqualArea(_OfLatitude):
    """Albers (cone n) and the cylindrical equal-area projection (n = 0).

    Parallels are stretched by k = sqrt(c - n q) / m and meridians by 1/k.
    """

    cone: float
    reach: float = math.pi

    def _largest(self, lat: Interval) -> FloatArray:
        root = (self.constant - self.cone * lat.rising(self.ellipsoid.authalic)).sqrt()
        k = root * _parallel(self.ellipsoid, lat).inverse()
        return np.maximum(k.hi, k.inverse().hi)

    def _smallest(self, lat: Interval) -> FloatArray:
        return np.asarray(1 / self._largest(lat))


@dataclass(frozen=True, slots=True)
class PlateCarree(_OfLatitude):
    """Cylinders with y a function of latitude: parallels by c/m, meridians by a given rule.

    `rule` is "geodetic" (y = a phi: a/M), "true" (y the meridian's length: 1) or "web" (Web
    Mercator, y = a psi of the sphere: a / (M cos phi)).  All rise with |phi|, but a/M falls:
    it is greatest at the latitude nearest the equator.
    """

    rule: str
    reach: float = math.pi

    def _largest(self, lat: Interval) -> FloatArray:
        return np.maximum(*self._factors(lat.magnitude, lat.mignitude))

    def _smallest(self, lat: Interval) -> FloatArray:
        return np.minimum(*self._factors(lat.mignitude, lat.magnitude))

    def _factors(self, rising: FloatArray, falling: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Across and up; factors that rise with |phi| at one latitude, the falling at another."""
        across = np.asarray(self.constant / self.ellipsoid.parallel(rising))
        if self.rule == "web":
            return across, 1 / (self.ellipsoid.meridian(rising) * np.cos(rising))
        if self.rule == "geodetic":
            return across, 1 / self.ellipsoid.meridian(falling)
        return across, np.ones_like(rising)


@dataclass(frozen=True, slots=True)
class _Azimuthal:
    """A projection about a place of the central meridian, whose latitude is `centre`."""

    ellipsoid: Ellipsoid
    meridian: float
    centre: float
    reach: float = math.inf


@dataclass(frozen=True, slots=True)
class AzimuthalEqualArea(_Azimuthal):
    """Lambert's azimuthal equal-area projection about (0, phi_0).

    Its derivative is E Q F.  F = diag(p, 1/p) takes the ellipsoid to its authalic sphere
    (latitudes beta); Q = U S V that to a plane, where S = diag(cos c/2, sec c/2) at distance c from
    the centre and U, V are rotations by the azimuths there; E = diag(D, 1/D) makes the centre
    true.  From the middle of a cell to another place of it the norm of E Q F changes as follows.

    - p by a factor r: F by diag(r, 1/r) from the right, the norm by at most max(r, 1/r).
    - S by a factor r: E U S V F by F^-1 V' diag V F from the right, which is within
      max(p², p^-2) (max(r, 1/r) - 1) of 1.
    - U turns by t: E U(t) = U(t) (U(-t) E U(t)), whose last factor differs from E by at most
      |D - 1/D| |sin t|; the norm so by that times |S| |F|.  Likewise V by |p - 1/p| |E| |S|.
    - About the centre azimuths turn fast, but Q = (U V) (V' S V), where U V turns by at most
      tan c/2 + tan beta times the way, and V' S V changes by (sec c/2 - cos c/2) |sin t|.

    All three factors keep areas, so the smallest stretch is 1 over the largest.
    """

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound on each cell, and the value in its middle."""
        lam, phi = (lon.lo + lon.hi) / 2, (lat.lo + lat.hi) / 2
        wide = (lon.hi - lon.lo) / 2
        beta, middle = lat.rising(self._beta), self._beta(phi)
        high = np.maximum(beta.hi - middle, middle - beta.lo)
        value, p, d = self._value(lam, phi)
        far, g, g_low, g_high = self._distances(lon, beta, lam, middle, wide, high)
        reshape, recentre = np.maximum(p, 1 / p), max(d, 1 / d)
        grown = np.sqrt(np.maximum((1 + g) / (1 + g_low), (1 + g_high) / (1 + g)))
        grown = 1 + reshape**2 * (grown - 1)
        grown = grown * np.exp(self._slope(lat, beta).magnitude * high)
        apart = np.maximum(np.arccos(np.clip(g, -1, 1)) - far, 1e-300)
        turn = np.minimum(far / np.sin(np.minimum(apart, np.pi / 2)), 1.0)
        spin = np.minimum(turn + far * np.tan(beta.magnitude), 1.0)
        secant, off_centre = np.sqrt(2 / (1 + g)), abs(d - 1 / d) * reshape
        outside = secant * (off_centre * turn + np.abs(p - 1 / p) * recentre * spin)
        slow = far * (np.tan(np.arccos(np.clip(g_low, -1, 1)) / 2) + np.tan(beta.magnitude))
        inside = secant * off_centre * slow + recentre * reshape * (secant - 1 / secant) * spin
        return (value + np.minimum(outside, inside)) * grown, value

    def least(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """A lower bound on each cell, and the value in its middle."""
        upper, value = self.bounds(lon, lat)
        return 1 / upper, 1 / value

    def _beta(self, lat: FloatArray) -> FloatArray:
        """Authalic latitude."""
        pole = float(self.ellipsoid.authalic(np.array(math.pi / 2)))
        return np.asarray(np.arcsin(np.clip(self.ellipsoid.authalic(lat) / pole, -1.0, 1.0)))

    def _distances(
        self,
        lon: Interval,
        beta: Interval,
        lam: FloatArray,
        middle: FloatArray,
        wide: FloatArray,
        high: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """How far cells reach on the sphere; cos c in their middles, and its least and largest."""
        sine_0, cosine_0 = math.sin(self._centre), math.cos(self._centre)
        sine, cosine = beta.rising(np.sin), beta.cos()
        cos_l, sin_l = lon.cos(), lon.sin()
        g = sine_0 * np.sin(middle) + cosine_0 * np.cos(middle) * np.cos(lam)
        north = (sine_0 * cosine - cosine_0 * (sine * cos_l)).magnitude
        east = (cosine_0 * (cosine * sin_l)).magnitude
        change = north * high + east * wide
        far = np.hypot(high, cosine.hi * wide)
        return far, g, np.maximum(g - change, -1.0), np.minimum(g + change, 1.0)

    @property
    def _centre(self) -> float:
        return float(self._beta(np.array(self.centre)))

    def _slope(self, lat: Interval, beta: Interval) -> Interval:
        """d ln p / d beta = -tan beta + sin phi (R/a)² cos beta / m², R the sphere's radius."""
        half = float(self.ellipsoid.authalic(np.array(math.pi / 2))) / 2
        m = _parallel(self.ellipsoid, lat).inverse()
        return half * (lat.rising(np.sin) * (beta.cos() * m.square())) - beta.rising(np.tan)

    def _value(self, lam: FloatArray, phi: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The norm of E Q F, p and D at places."""
        radius = math.sqrt(float(self.ellipsoid.authalic(np.array(math.pi / 2))) / 2)
        d = 1.0
        if abs(self.centre) < math.pi / 2 - 1e-10:
            d = float(self.ellipsoid.parallel(np.array(self.centre)))
            d /= radius * math.cos(self._centre)
        beta = self._beta(phi)
        p = radius * np.cos(beta) / self.ellipsoid.parallel(phi)
        (xe, xn), (ye, yn) = self._sphere(lam, beta)
        a, b, c, e = d * xe * p, d * xn / p, ye * p / d, yn / (p * d)
        # Singular values of [[a, b], [c, e]], as in stretch.stretch_at.
        value = (np.hypot(a + e, b - c) + np.hypot(a - e, b + c)) / 2
        return np.asarray(value), np.asarray(p), d

    def _sphere(
        self, lam: FloatArray, beta: FloatArray
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Derivatives of k (cos b sin l, cos b0 sin b - sin b0 cos b cos l) east and north.

        k = sqrt(2 / (1 + g)) with g the cosine of the distance to the centre.
        """
        sine_0, cosine_0 = math.sin(self._centre), math.cos(self._centre)
        sine, cosine, cos_l, sin_l = np.sin(beta), np.cos(beta), np.cos(lam), np.sin(lam)
        g = sine_0 * sine + cosine_0 * cosine * cos_l
        k, shrink = np.sqrt(2 / (1 + g)), 0.5 / (1 + g)
        north, east = sine_0 * cosine - cosine_0 * sine * cos_l, -cosine_0 * sin_l
        x, y = cosine * sin_l, cosine_0 * sine - sine_0 * cosine * cos_l
        return (
            (k * (cos_l - shrink * east * x), k * (-sine * sin_l - shrink * north * x)),
            (
                k * (sine_0 * sin_l - shrink * east * y),
                k * (cosine_0 * cosine + sine_0 * sine * cos_l - shrink * north * y),
            ),
        )


@dataclass(frozen=True, slots=True)
class AzimuthalEquidistant(_Azimuthal):
    """Geodesic polar coordinates about (0, phi_0): distances from the centre are true.

    Across, the plane has s where the ellipsoid has the reduced length m, m'' = -K m.  With
    K <= k² along the geodesic, m >= sin(k s) / k (Sturm), so nothing is stretched by more
    than k s / sin(k s).  The curvature K = (1 - e² sin² phi)² / b² falls with |phi|, and the
    least |phi| of a geodesic is at an end of it, or 0.  Since K > 0, m <= s: no direction is
    shortened.
    """

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

    def least(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """1, along the geodesics from the centre."""
        return np.ones_like(lon.lo), np.ones_like(lon.lo)

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
