"""Numbers of about 104 bits as unevaluated sums of two doubles, in compiled code.

For draws that doubles leave open: a thousand times faster than ball arithmetic, and bounded
more coarsely.  Sums and products follow Dekker and Knuth; each is within 2^-100 relative.
:func:`log` and :func:`atan2` take one Newton step from the library's double, :func:`sincos`
sums a Taylor series of a sixteenth of the angle and doubles it four times.  Their absolute
errors are below 2^-90 for the arguments named (2^-97 for the series, at most four times as
much at each doubling; `tests/sampling/test_double_double.py` finds less than 2^-95).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from whereish.compiled import fma, kernel

__all__ = [
    "DEGREE",
    "PI",
    "RADIAN",
    "add",
    "atan2",
    "div",
    "log",
    "mul",
    "neg",
    "sincos",
    "sqrt",
    "two_product",
    "two_sum",
    "unit",
]

Double2: TypeAlias = tuple[float, float]

PI: Final = (3.141592653589793, 1.2246467991473532e-16)
DEGREE: Final = (0.017453292519943295, 2.9486522708701687e-19)
"""pi / 180."""
RADIAN: Final = (57.29577951308232, -1.9878495670576283e-15)
"""180 / pi."""
_LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)


def _inverse_factorials() -> np.ndarray:
    """1/n! for n up to 27, as rows of two doubles."""
    exact = [Fraction(1, math.factorial(n)) for n in range(28)]
    return np.array([(float(f), float(f - Fraction(float(f)))) for f in exact])


_INVERSE: Final = _inverse_factorials()


@kernel
def two_sum(a: float, b: float) -> Double2:
    """a + b, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def two_product(a: float, b: float) -> Double2:
    """a * b, exactly (no overflow)."""
    product = a * b
    return product, fma(a, b, -product)


@kernel
def add(a: Double2, b: Double2) -> Double2:
    """a + b."""
    high, low = two_sum(a[0], b[0])
    tail, rest = two_sum(a[1], b[1])
    high, low = two_sum(high, low + tail)
    return two_sum(high, low + rest)


@kernel
def neg(a: Double2) -> Double2:
    """-a."""
    return -a[0], -a[1]


@kernel
def mul(a: Double2, b: Double2) -> Double2:
    """a * b."""
    high, low = two_product(a[0], b[0])
    return two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


@kernel
def div(a: Double2, b: Double2) -> Double2:
    """a / b: long division with three digits of 53 bits."""
    first = a[0] / b[0]
    rest = add(a, neg(mul((first, 0.0), b)))
    second = rest[0] / b[0]
    rest = add(rest, neg(mul((second, 0.0), b)))
    return add(two_sum(first, second), (rest[0] / b[0], 0.0))


@kernel
def sqrt(a: Double2) -> Double2:
    """The square root of a > 0."""
    root = math.sqrt(a[0])
    rest = add(a, neg(two_product(root, root)))
    return two_sum(root, rest[0] / (2 * root))


@kernel
def unit(word: np.uint64, bits: int) -> Double2:
    """(the last `bits` bits of `word` + 1/2) / 2^bits, exactly; 33 to 64 bits."""
    low = np.int64(word & np.uint64(0xFFFFFFFF))
    high = np.int64((word >> np.uint64(32)) & np.uint64((1 << (bits - 32)) - 1))
    return two_sum(high * 2.0 ** (32 - bits), (low + 0.5) * 2.0**-bits)


@kernel
def _exp(x: float) -> Double2:
    """e^x for a double of at most 200 in size, within 2^-94 relative."""
    turns = np.rint(x / _LN2[0])
    rest = add((x, 0.0), neg(mul((turns, 0.0), _LN2)))
    y = (rest[0] / 256, rest[1] / 256)
    total = (_INVERSE[12, 0], _INVERSE[12, 1])
    for n in range(11, -1, -1):
        total = add(mul(total, y), (_INVERSE[n, 0], _INVERSE[n, 1]))
    for _ in range(8):
        total = mul(total, total)
    scale = 2.0**turns
    return total[0] * scale, total[1] * scale


@kernel
def log(a: Double2) -> Double2:
    """ln a for a from 2^-128 to 1."""
    guess = math.log(a[0])
    off = add(mul(a, _exp(-guess)), (-1.0, 0.0))
    return add((guess, 0.0), add(off, (-off[0] * off[0] / 2, 0.0)))


@kernel
def sincos(a: Double2) -> tuple[Double2, Double2]:
    """Sine and cosine of an angle of at most 2 pi in size."""
    y = (a[0] / 16, a[1] / 16)
    square = mul(y, y)
    s = (_INVERSE[27, 0], _INVERSE[27, 1])
    for n in range(25, 0, -2):
        s = add((_INVERSE[n, 0], _INVERSE[n, 1]), neg(mul(s, square)))
    s = mul(s, y)
    c = (_INVERSE[26, 0], _INVERSE[26, 1])
    for n in range(24, -1, -2):
        c = add((_INVERSE[n, 0], _INVERSE[n, 1]), neg(mul(c, square)))
    for _ in range(4):
        twice = mul(s, c)
        flat = mul(s, s)
        s = (2 * twice[0], 2 * twice[1])
        c = add((1.0, 0.0), (-2 * flat[0], -2 * flat[1]))
    return s, c


@kernel
def atan2(y: Double2, x: Double2) -> Double2:
    """The angle of (x, y), which is not the origin."""
    guess = math.atan2(y[0], x[0])
    s, c = sincos((guess, 0.0))
    across = add(mul(y, c), neg(mul(x, s)))
    along = add(mul(x, c), mul(y, s))
    return add((guess, 0.0), div(across, along))
