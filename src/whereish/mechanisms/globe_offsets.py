"""From a place on the globe by an angle in a direction: how far east and north, in doubles.

Only offsets are computed, never coordinates: their errors are relative to the noise, not to
180 degrees, so that few cells are left to ball arithmetic on fine lattices, too.

In the frame at the secret (latitude φ, c = cos φ, s = sin φ) the report is
E = sin t · east, N = sin t · north, U = cos t.  Turned to the Earth's axis it lies
A = U c - N s along the secret's meridian, E across it and L = hypot(A, E) from the axis.
With w = L - A, computed without cancellation, the offsets are

    longitude  atan2(E, A),      latitude  atan2(N - w s, U + w c),

the second since (N, U) are the coordinates for L = A and w moves the point outwards.

Errors, in units u = 2^-53, with 16 u relative for a library function: c (by the colatitude)
and s 19, N and E 18, U 16, so A within 40 u (c + |N|) =: dA; dw is dA through |∂w/∂A| = w/L,
18 u |E| through |∂w/∂E| = |E|/L, and 8 u w; the latitude's sine and cosine then have
18 u |N| + dw + 20 u w and 17 u + dw + 20 u w times the offset's sine, and atan2 17 u.  The
error of t and that of the direction (2^-50 each way) move the report by at most `moved`.
All of this is to first order; where `moved` or dA exceeds L/16, the error is infinite, and
1.1 covers the rest.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from whereish.compiled import kernel

__all__ = ["cell_at", "offsets"]

_U: Final = 2.0**-53


@kernel
def offsets(
    latitude: float, t: float, slip: float, north: float, east: float
) -> tuple[float, float, float, float]:
    """Offset of longitude in radians, its error; offset of latitude, its error.

    `latitude` in degrees; `slip` bounds the error of t.
    """
    c = math.sin((90.0 - abs(latitude)) * (math.pi / 180))
    s = math.sin(latitude * (math.pi / 180))
    ahead = math.sin(t)
    n, e, u = ahead * north, ahead * east, math.cos(t)
    a = u * c - n * s
    level = math.sqrt(a * a + e * e)
    w = e * e / (level + a) if a > 0 else level - a
    to_east = math.atan2(e, a)
    to_north = math.atan2(n - w * s, u + w * c)
    moved = slip + 12 * _U * abs(ahead)
    wrong_a = 40 * _U * (c + abs(n))
    if not 16 * (moved + wrong_a) < level:
        return to_east, math.inf, to_north, math.inf
    wrong_w = wrong_a * (w / level) + 18 * _U * e * e / level + 8 * _U * w
    wrong_east = (moved + (18 * _U * abs(a * e) + abs(e) * wrong_a) / level) / level
    wrong_north = moved + 2 * wrong_w + 40 * _U * (abs(n) + w + abs(to_north))
    return (
        to_east,
        1.1 * wrong_east + 17 * _U * abs(to_east),
        to_north,
        1.1 * wrong_north,
    )


@kernel
def cell_at(
    degrees: float, offset: float, error: float, per_degree: float
) -> tuple[np.int64, float, float]:
    """Cell of degrees + offset (radians), the place in it from 0 to 1, and its error in cells.

    The whole and the broken part of degrees * per_degree are exact: the product is p + rest
    (Dekker; `per_degree` is 10^k with k <= 9, 21 bits, so the halves' products are exact).
    """
    p = degrees * per_degree
    spread = 134217729.0 * degrees
    high = spread - (spread - degrees)
    rest = (high * per_degree - p) + (degrees - high) * per_degree
    away = offset * (180 / math.pi * per_degree)
    whole, whole_away = math.floor(p), math.floor(away)
    at = (p - whole) + rest + (away - whole_away) + 0.5
    carried = math.floor(at)
    scale = 180 / math.pi * per_degree
    wrong = error * scale + 8 * _U * (abs(away) + 1)
    return np.int64(whole) + np.int64(whole_away) + np.int64(carried), at - carried, wrong
