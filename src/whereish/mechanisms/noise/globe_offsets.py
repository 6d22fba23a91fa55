"""From a place on the globe by an angle in a direction: how far east and north, in doubles.

Only offsets are computed, never coordinates: their errors are relative to the noise, not to
180 degrees, so that few cells are left to ball arithmetic on fine lattices, too.

In the frame at the secret (latitude φ, c = cos φ, s = sin φ) the report is
E = sin t · east, N = sin t · north, U = cos t.  Turned to the Earth's axis it lies
A = U c - N s along the secret's meridian, E across it and L = hypot(A, E) from the axis.
With w = L - A, computed without cancellation, the offsets are

    longitude  atan2(E, A),      latitude  atan2(N - w s, U + w c),

the second since (N, U) are the coordinates for L = A and w moves the point outwards.

Errors, in units u = 2^-53, with 16 u relative for a sine, cosine or arctangent: c and s 19, N
and E 18, U 16, so A within 40 u (c + |N|) =: dA; dw is dA through |∂w/∂A| = w/L, 18 u |E|
through |∂w/∂E| = |E|/L, and 8 u w; the latitude's sine and cosine then have 18 u |N| + dw + 20
u w and 17 u + dw + 20 u w times the offset's sine, and atan2 17 u.  The error of t and that of
the direction (2^-50 each way) move the report by at most `moved`. All of this is to first
order; where `moved` or dA exceeds L/16, the error is infinite, and 1.1 covers the rest.

:func:`finer_offsets` does the same in double-doubles, from all 64 bits of each word, for the
draws that this leaves open.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whereish.compiled import fma, kernel
from whereish.sampling.double_double import (
    DEGREE,
    PI,
    RADIAN,
    Double2,
    add,
    atan2,
    div,
    log,
    mul,
    neg,
    sincos,
    sqrt,
    two_product,
    unit,
)
from whereish.sampling.words import octant

__all__ = ["cell_at", "cosine_sine", "finer_offsets", "offsets"]

_U: Final = 2.0**-53

_SMALL: Final = 2.0**-6  # below, four terms of the arctangent's series are within 2^-60


@kernel
def cosine_sine(t: float) -> tuple[float, float]:
    """Cosine and sine of t >= 0, which is small as a rule."""
    return octant(t) if t <= 0.785 else (math.cos(t), math.sin(t))


@kernel
def _latitude(degrees: float) -> tuple[float, float]:
    """Cosine and sine of a latitude: near a pole from the colatitude, which is exact."""
    size = abs(degrees)
    if size <= 45.0:
        c, s = octant(size * (math.pi / 180))
    else:
        s, c = octant((90.0 - size) * (math.pi / 180))
    return c, math.copysign(s, degrees)


@kernel
def _angle(y: float, x: float) -> float:
    """atan2(y, x)."""
    if not abs(y) <= _SMALL * x:
        return math.atan2(y, x)
    z = y / x if x > 0 else 0.0
    q = z * z
    return fma(-z * q, fma(-q, fma(-q, fma(-q, 1 / 9, 1 / 7), 1 / 5), 1 / 3), z)


@kernel
def offsets(
    latitude: float, u: float, ahead: float, slip: float, north: float, east: float
) -> tuple[float, float, float, float]:
    """Offset of longitude in radians, its error; offset of latitude, its error.

    `latitude` in degrees; `u` and `ahead` are cos t and sin t, and `slip` bounds the error of t.
    """
    c, s = _latitude(latitude)
    n, e = ahead * north, ahead * east
    a = u * c - n * s
    level = math.sqrt(a * a + e * e)
    w = e * e / (level + a) if a > 0 else level - a
    to_east = _angle(e, a)
    to_north = _angle(n - w * s, u + w * c)
    moved = slip + 12 * _U * abs(ahead)
    wrong_a = 40 * _U * (c + abs(n))
    if not 16 * (moved + wrong_a) < level:
        return to_east, math.inf, to_north, math.inf
    per_level = 1 / level  # 1.1 covers its rounding
    wrong_w = (wrong_a * w + 18 * _U * e * e) * per_level + 8 * _U * w
    wrong_east = (moved + (18 * _U * abs(a * e) + abs(e) * wrong_a) * per_level) * per_level
    wrong_north = moved + 2 * wrong_w + 40 * _U * (abs(n) + w + abs(to_north))
    return (
        to_east,
        1.1 * wrong_east + 17 * _U * abs(to_east),
        to_north,
        1.1 * wrong_north,
    )


@kernel
def finer_offsets(
    words: NDArray[np.uint64], latitude: float, rate: float
) -> tuple[Double2, float, Double2, float]:
    """As :func:`offsets`, for the first three of `words` and the angle -ln(U V) / rate.

    The words' intervals move the report by at most `moved`: 2^-65 through the derivative of
    each logarithm, pi/4 2^-62 through the direction.  The arithmetic is within 2^-84 in all.
    """
    a, b = unit(words[0], 64), unit(words[1], 64)
    t = div(log(mul(a, b)), (-rate, 0.0))
    east, north = sincos(mul(unit(words[2], 61), (PI[0] / 4, PI[1] / 4)))
    if words[2] >> np.uint64(63):
        east, north = north, east
    if (words[2] >> np.uint64(62)) & np.uint64(1):
        east = neg(east)
    if (words[2] >> np.uint64(61)) & np.uint64(1):
        north = neg(north)
    s, c = sincos(mul((latitude, 0.0), DEGREE))
    ahead, u = sincos(t)
    n, e = mul(ahead, north), mul(ahead, east)
    along = add(mul(u, c), neg(mul(n, s)))
    across = mul(e, e)
    level = sqrt(add(mul(along, along), across))
    w = div(across, add(level, along)) if along[0] > 0 else add(level, neg(along))
    to_east = atan2(e, along)
    to_north = atan2(add(n, neg(mul(w, s))), add(u, mul(w, c)))
    known = a[0] >= 2.0**-40 and b[0] >= 2.0**-40
    moved = (2.0**-64 / a[0] + 2.0**-64 / b[0]) / rate + 2.0**-62 * abs(ahead[0]) + 2.0**-84
    if not (known and 16 * moved < level[0]):
        return to_east, math.inf, to_north, math.inf
    return to_east, 1.1 * moved / level[0] + 2.0**-88, to_north, 1.1 * moved + 2.0**-80


@kernel
def cell_at(
    degrees: float, offset: Double2, error: float, per_degree: float
) -> tuple[np.int64, float, float]:
    """Cell of degrees + offset (radians), the place in it from 0 to 1, and its error in cells.

    The offset is a double-double, since that of a fine lattice may be many cells.

    The whole and the broken part of degrees * per_degree are exact.
    """
    p, rest = two_product(degrees, per_degree)
    away, beyond = mul(offset, mul(RADIAN, (per_degree, 0.0)))
    whole, whole_away = np.floor(p), np.floor(away)
    at = (p - whole) + (rest + beyond) + (away - whole_away) + 0.5
    carried = np.floor(at)
    wrong = error * (1.01 * RADIAN[0] * per_degree) + 8 * _U
    return np.int64(whole) + np.int64(whole_away) + np.int64(carried), at - carried, wrong
