"""Random words to doubles, with their errors: the pieces that exact kernels share.

Each piece returns a value from the first 53 bits of a word and states how far it is from the
truth; :mod:`whereish.sampling.lazy_uniform` decides what that leaves open.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from whereish.compiled import fma, kernel

__all__ = [
    "ROUNDING",
    "direction",
    "fraction",
    "log_error",
    "log_errors",
    "moved_cell",
    "near_border",
    "nearest_node",
    "octant",
]

ROUNDING: Final = 2.0**-48
"""Relative error allowed for a short chain of double operations: 32 units of 2^-53."""


@kernel
def fraction(word: np.uint64, skip: int) -> float:
    """Midpoint of the interval of 53 bits after the first `skip` (at most 11) bits.

    In [2^-54, 1 - 2^-53], so that tables may be indexed and logarithms divided by: the
    last midpoint would round to 1 and is rounded down.  The uniform number differs from it
    by at most 2^-53: half of that is the interval's, half the rounding of the midpoint.
    """
    bits = (word >> np.uint64(11 - skip)) & np.uint64(0x1FFFFFFFFFFFFF)
    return min((np.int64(bits) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)


@kernel
def log_error(midpoint: float) -> float:
    """Bound on |ln U - ln a| for a uniform U with 53-bit midpoint a, and on rounding a.

    2^-53 / (a - 2^-53) < 2^-52 / a for a >= 2^-40; below that the linear bound is not
    worth its proof, and the draw goes to ball arithmetic.
    """
    return 2.0**-52 / midpoint if midpoint >= 2.0**-40 else math.inf


@kernel
def log_errors(a: float, b: float) -> float:
    """The same bound on |ln UV - ln ab|: 2^-52 / a + 2^-52 / b.

    Half of it is slack, which covers its own roundings.
    """
    return 2.0**-52 * (a + b) / (a * b) if min(a, b) >= 2.0**-40 else math.inf


@kernel
def octant(phi: float) -> tuple[float, float]:
    """Cosine and sine of an angle in [0, pi/4], each within 2^-51 relative.

    Taylor polynomials with remainder below 2^-57.
    """
    q = phi * phi
    s = fma(q, fma(q, 1 / 355687428096000, -1 / 1307674368000), 1 / 6227020800)
    s = fma(q, fma(q, fma(q, s, -1 / 39916800), 1 / 362880), -1 / 5040)
    s = fma(phi * q, fma(q, fma(q, s, 1 / 120), -1 / 6), phi)
    c = fma(q, fma(q, 1 / 20922789888000, -1 / 87178291200), 1 / 479001600)
    c = fma(q, fma(q, fma(q, c, -1 / 3628800), 1 / 40320), -1 / 720)
    c = fma(q * q, fma(q, c, 1 / 24), fma(q, -0.5, 1.0))
    return c, s


@kernel
def direction(word: np.uint64) -> tuple[float, float]:
    """Cosine and sine of a uniform angle: three bits for the octant, 53 for the rest.

    With the interval of the angle and the roundings, each is within 2^-50 of the truth.
    """
    c, s = octant(fraction(word, 3) * (math.pi / 4))
    if word >> np.uint64(63):
        s, c = c, s
    if (word >> np.uint64(62)) & np.uint64(1):
        s = -s
    if (word >> np.uint64(61)) & np.uint64(1):
        c = -c
    return c, s


@kernel
def nearest_node(coordinate: float, step: float) -> tuple[float, float]:
    """A number n of steps next to `coordinate`, and what is left: coordinate - n * step.

    What is left is at most 0.52 steps, and rounded once.  So errors of a cell do not grow with
    the secret's coordinates, nor does the time that they cost.
    """
    n = np.rint(coordinate * (1 / step))
    return n, fma(-n, step, coordinate)


@kernel
def near_border(coordinate: float, floor: float, error: float) -> bool:
    """Whether an error this large could move `coordinate` into another cell.

    Written so that NaN and infinity count as near.
    """
    offset = coordinate - floor
    return not (offset > error and offset < 1 - error)


@kernel
def moved_cell(
    x: float, y: float, radius: float, slip: float, angle: np.uint64, step: float
) -> tuple[np.int64, np.int64, bool]:
    """Column and row of (x, y) + radius (cos t, sin t), and whether they are certain.

    `radius` is off by at most `slip`; every other error is relative to it or to a step, and
    covered by ROUNDING.
    """
    per_step = 1 / step
    cosine, sine = direction(angle)
    (east, from_east), (north, from_north) = nearest_node(x, step), nearest_node(y, step)
    error = (slip + ROUNDING * radius) * per_step + ROUNDING
    at_x = (from_east + radius * cosine) * per_step + 0.5
    at_y = (from_north + radius * sine) * per_step + 0.5
    column, row = math.floor(at_x), math.floor(at_y)
    open_ = near_border(at_x, column, error) or near_border(at_y, row, error)
    return np.int64(east) + np.int64(column), np.int64(north) + np.int64(row), not open_
