"""Exact integer sampling: how many of a falling sequence of thresholds a uniform meets.

For 1 > T_1 > T_2 > ... > 0 and V uniform in [0, 1), the count N = #{n >= 1: V < T_n} has
P(N >= n) = T_n.  V is a string of bits of which a prefix v is known, and each T_n is
known by its own prefix floor(2^bits T_n), an integer: v below it means V < T_n, v above
it means V > T_n, and only where both agree (once in 2^64 / length draws) do more bits
decide.  So the law sampled is exactly that of the real numbers T_n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.randomness import Randomness
from whereish.space.values import rational

__all__ = ["Prefix", "Thresholds", "exp_minus_up", "level", "log_inverse_up", "uniform_below"]

Prefix: TypeAlias = Callable[[int, int], int]
"""(n, bits) -> floor(2^bits T_n), exactly."""

_WORD = 64
_DIGITS = 60


@dataclass(frozen=True)
class Thresholds:
    """A falling sequence of thresholds T_1 > T_2 > ...

    Parameters
    ----------
    table
        floor(2^64 T_n) for n = 1, 2, ..., down to 0 or to `last`.
    prefix
        floor(2^bits T_n), for the draws that 64 bits leave open.
    last
        Where the sequence ends: N <= last.  None: it does not.
    """

    table: NDArray[np.uint64]
    prefix: Prefix
    last: int | None = None
    _rising: NDArray[np.uint64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rising = np.ascontiguousarray(self.table[::-1])
        rising.setflags(write=False)
        object.__setattr__(self, "_rising", rising)

    def counts(self, uniforms: NDArray[np.uint64], rng: Randomness) -> IntArray:
        """N for each uniform, given by its first 64 bits; more bits come from `rng`."""
        above = np.searchsorted(self._rising, uniforms, side="right")
        counts = (len(self._rising) - above).astype(np.int64)
        unclear = np.searchsorted(self._rising, uniforms, side="left") < above
        if self.last is None or len(self.table) < self.last:
            unclear |= uniforms == 0  # the thresholds beyond the table all begin with 64 zeros
        for i in np.flatnonzero(unclear):
            counts[i] = self._settled(int(counts[i]), int(uniforms[i]), rng)
        return counts

    def _settled(self, met: int, value: int, rng: Randomness) -> int:
        """The count of a uniform that is known to meet `met` thresholds or more."""
        bits = _WORD
        while self.last is None or met < self.last:
            threshold = self.prefix(met + 1, bits)
            while value == threshold:
                value, bits = (value << _WORD) | int(rng.words(1)[0]), bits + _WORD
                threshold = self.prefix(met + 1, bits)
            if value > threshold:
                break
            met += 1
        return met


def uniform_below(bounds: IntArray, rng: Randomness) -> IntArray:
    """A uniform integer in [0, bound) for each bound >= 1, without bias.

    Words in the incomplete last multiple of the bound are drawn again.
    """
    sizes = bounds.astype(np.uint64)
    # 2^64 mod m = (2^64 - m) mod m, and the first term is what uint64 wraps to.
    excess = (np.uint64(0) - sizes) % sizes
    words = rng.words(sizes.size).reshape(sizes.shape)
    while (again := words < excess).any():
        words = words.copy()
        words[again] = rng.words(int(again.sum()))
    return (words % sizes).astype(np.int64)


def level(epsilon: Fraction | float) -> Fraction:
    """A privacy level as an exact number: a double stands for itself."""
    if isinstance(epsilon, float) and np.isfinite(epsilon):
        exact = Fraction(epsilon)
    else:
        exact = rational(epsilon, name="epsilon")
    if exact <= 0:
        raise InvalidInput(f"epsilon must be a finite number > 0; got {epsilon!r}")
    return exact


def exp_minus_up(exponent: Fraction, bits: int = _WORD) -> Fraction:
    """The least multiple of 2^-bits known to be at least e^-exponent."""
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_FLOOR
        low = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        bound = Fraction((-low).exp().next_plus())  # Decimal.exp is correctly rounded
    return Fraction(-(-bound.numerator * 2**bits // bound.denominator), 2**bits)


def log_inverse_up(ratio: Fraction, per: Fraction) -> float:
    """A double that is at least ln(1/ratio) / per, and next to it."""
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_CEILING
        inverse = Decimal(ratio.denominator) / Decimal(ratio.numerator)
        exact = Fraction(inverse.ln().next_plus()) / per
    nearest = float(exact)
    return nearest if nearest >= exact else float(np.nextafter(nearest, np.inf))
