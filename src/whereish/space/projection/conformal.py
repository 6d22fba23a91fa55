"""The scale of conformal projections, in one closed form.

They all have the same three parts.  The ellipsoid goes to a sphere by psi' = C psi + c,
lambda' = C lambda (psi the isometric latitude, chi' that of the sphere: sin chi' = tanh psi');
the sphere is turned, so that a place has the sine S of its latitude above another equator,
S = p_z sin chi' + cos chi' (p_x cos lambda' + p_y sin lambda'); and a cone of constant n is put
upon it (n = 0 Mercator, n = 1 stereographic).  All directions are stretched alike, by

    k = K C (cos chi' / m) G(S),    G(S) = exp(-n artanh S) / sqrt(1 - S²),

where m is the parallel's radius N cos phi / a.  Transverse Mercator adds the series of Krüger:
with w = xi' + i eta' on the sphere, z = w + sum alpha_j sin 2jw, which stretches by
|1 + sum 2j alpha_j cos 2jw|.

Over a cell, ln k differs from its value in the middle by at most the largest slopes times the
cell's sides (mean value theorem), which bounds k from above and below, with

    d ln k / d psi    = sin phi - C sin chi' + (S - n) / (1 - S²) dS/dpsi,
    d ln k / d lambda = (S - n) / (1 - S²) dS/dlambda.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.space.projection.ellipsoid import Ellipsoid
from whereish.space.projection.interval import Interval

__all__ = ["Conformal", "krueger"]


@dataclass(frozen=True, slots=True)
class Conformal:
    """K, C, c, the pole p, n and the alphas of the formula; `reach` bounds |lambda|."""

    ellipsoid: Ellipsoid
    meridian: float
    constant: float
    pole: tuple[float, float, float] = (0.0, 0.0, 1.0)
    cone: float = 0.0
    ratio: float = 1.0
    shift: float = 0.0
    series: tuple[float, ...] = ()
    reach: float = math.pi

    def bounds(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """An upper bound of k on each cell, and k in its middle."""
        return self._bounds(lon, lat, 1.0)

    def least(self, lon: Interval, lat: Interval) -> tuple[FloatArray, FloatArray]:
        """A lower bound of k on each cell, and k in its middle."""
        return self._bounds(lon, lat, -1.0)

    def _bounds(self, lon: Interval, lat: Interval, way: float) -> tuple[FloatArray, FloatArray]:
        """The bound above (`way` is 1) or below (-1)."""
        middle_lon, middle_lat = (lon.lo + lon.hi) / 2, (lat.lo + lat.hi) / 2
        middle = self.ellipsoid.isometric(middle_lat)
        psi = lat.rising(self.ellipsoid.isometric)
        up, across = self._slopes(lon, lat, psi)
        up = way * up
        change = np.maximum(up.hi * (psi.hi - middle), -up.lo * (middle - psi.lo))
        change = change + across.magnitude * (lon.hi - lon.lo) / 2
        value = self._value(middle_lon, middle_lat, middle)
        bound = value * np.exp(way * change)
        if self.series:
            size, drift = self._kruegers(lon, psi, middle_lon, middle)
            value, bound = value * size, bound * np.maximum(size + way * drift, 0.0)
        return bound, value

    def _value(self, lon: FloatArray, lat: FloatArray, psi: FloatArray) -> FloatArray:
        sphere = self.ratio * psi + self.shift
        x, y, z = self.pole
        if x == y == 0:
            # S = z sin chi': the cosines cancel.
            growth = np.exp(-self.cone * z * sphere)
        else:
            turned = self.ratio * lon
            cosine = 1 / np.cosh(sphere)
            s = z * np.tanh(sphere) + cosine * (x * np.cos(turned) + y * np.sin(turned))
            n = self.cone
            growth = cosine * (1 - s) ** ((n - 1) / 2) * (1 + s) ** (-(n + 1) / 2)
        return np.asarray(self.constant * self.ratio * growth / self.ellipsoid.parallel(lat))

    def _slopes(self, lon: Interval, lat: Interval, psi: Interval) -> tuple[Interval, Interval]:
        """Enclosures of both partial derivatives of ln k, without the series."""
        x, y, z = self.pole
        sine = lat.rising(np.sin)
        if x == y == 0:
            return sine - self.ratio * self.cone * z, 0.0 * lon
        high = (self.ratio * psi + self.shift).rising(np.tanh)
        wide = (1.0 - high.square()).sqrt()
        turned = self.ratio * lon
        cosine, sinus = turned.cos(), turned.sin()
        ahead = x * cosine + y * sinus
        s = z * high + wide * ahead
        if self.cone == 1.0:
            steep = -(1.0 + s).inverse()
        else:
            steep = (s - self.cone) * (1.0 - s.square()).inverse()
        up = sine - self.ratio * high + steep * (self.ratio * (wide * (z * wide - high * ahead)))
        return up, steep * (self.ratio * (wide * (y * cosine - x * sinus)))

    def _kruegers(
        self, lon: Interval, psi: Interval, middle_lon: FloatArray, middle: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """|1 + sum 2j alpha_j cos 2jw| in the middle, and how far it can move on the cell.

        On the sphere |dw| = cos chi |d(psi + i lambda)| / sqrt(1 - S²), S = cos chi sin lambda.
        """
        side = lon.rising(np.sin).magnitude
        wide = 1 / np.cosh(psi.mignitude)
        s = np.minimum(wide * side, 1.0)
        step = np.maximum(psi.hi - middle, middle - psi.lo) + (lon.hi - lon.lo) / 2
        moved = wide * step / np.sqrt(1 - s**2)
        eta = np.arctanh(s)
        w = np.arctan2(np.sinh(middle), np.cos(middle_lon)) + 1j * np.arctanh(
            np.sin(middle_lon) / np.cosh(middle)
        )
        inner = np.ones_like(w)
        drift = np.zeros_like(eta)
        for j, alpha in enumerate(self.series, start=1):
            inner = inner + 2 * j * alpha * np.cos(2 * j * w)
            drift = drift + 4 * j * j * abs(alpha) * np.cosh(2 * j * eta)
        return np.abs(inner), drift * moved


def krueger(ellipsoid: Ellipsoid) -> tuple[float, tuple[float, ...]]:
    """The rectifying radius over a, and alpha_1 to alpha_6 (Krüger 1912; Karney 2011)."""
    n = ellipsoid.flattening / (2 - ellipsoid.flattening)
    radius = (1 + n**2 / 4 + n**4 / 64 + n**6 / 256) / (1 + n)
    alphas = (
        n / 2
        - 2 * n**2 / 3
        + 5 * n**3 / 16
        + 41 * n**4 / 180
        - 127 * n**5 / 288
        + 7891 * n**6 / 37800,
        13 * n**2 / 48
        - 3 * n**3 / 5
        + 557 * n**4 / 1440
        + 281 * n**5 / 630
        - 1983433 * n**6 / 1935360,
        61 * n**3 / 240 - 103 * n**4 / 140 + 15061 * n**5 / 26880 + 167603 * n**6 / 181440,
        49561 * n**4 / 161280 - 179 * n**5 / 168 + 6601661 * n**6 / 7257600,
        34729 * n**5 / 80640 - 3418889 * n**6 / 1995840,
        212378941 * n**6 / 319334400,
    )
    return radius, alphas
