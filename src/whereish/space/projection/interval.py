"""Intervals of numbers, one per entry of an array: enclosures of what a formula can give.

Ends are computed in doubles without directed rounding; whoever uses them adds a margin far
above the few hundred roundings of 2^-53 that a formula makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["Interval"]

_TURN = 2 * np.pi


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """The closed intervals [lo, hi], with the arithmetic of sets."""

    lo: FloatArray
    hi: FloatArray

    @classmethod
    def around(cls, centre: FloatArray, half: FloatArray) -> Interval:
        """[centre - half, centre + half]."""
        return cls(centre - half, centre + half)

    def rising(self, f: Callable[[FloatArray], FloatArray]) -> Interval:
        """The image under a nondecreasing function."""
        return Interval(f(self.lo), f(self.hi))

    def __add__(self, other: Interval | float) -> Interval:
        if isinstance(other, Interval):
            return Interval(self.lo + other.lo, self.hi + other.hi)
        return Interval(self.lo + other, self.hi + other)

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __sub__(self, other: Interval | float) -> Interval:
        return self + (-other)

    def __rsub__(self, other: float) -> Interval:
        return -self + other

    def __mul__(self, other: Interval | float) -> Interval:
        if not isinstance(other, Interval):
            ends = self.lo * other, self.hi * other
            return Interval(np.minimum(*ends), np.maximum(*ends))
        products = np.stack(
            [self.lo * other.lo, self.lo * other.hi, self.hi * other.lo, self.hi * other.hi]
        )
        return Interval(products.min(axis=0), products.max(axis=0))

    __rmul__ = __mul__

    def inverse(self) -> Interval:
        """1/x; the whole line where zero is inside."""
        with np.errstate(divide="ignore"):
            ends = 1 / self.lo, 1 / self.hi
        crosses = (self.lo <= 0) & (self.hi >= 0)
        return Interval(np.where(crosses, -np.inf, ends[1]), np.where(crosses, np.inf, ends[0]))

    def square(self) -> Interval:
        """x²."""
        ends = self.lo**2, self.hi**2
        crosses = (self.lo <= 0) & (self.hi >= 0)
        return Interval(np.where(crosses, 0.0, np.minimum(*ends)), np.maximum(*ends))

    def sqrt(self) -> Interval:
        """The root of x, of its part >= 0."""
        return self.rising(lambda x: np.sqrt(np.maximum(x, 0.0)))

    def cos(self) -> Interval:
        """The cosine of any angle in radians."""
        ends = np.cos(self.lo), np.cos(self.hi)
        top = np.floor(self.hi / _TURN) >= np.ceil(self.lo / _TURN)
        bottom = np.floor(self.hi / _TURN - 0.5) >= np.ceil(self.lo / _TURN - 0.5)
        return Interval(
            np.where(bottom, -1.0, np.minimum(*ends)), np.where(top, 1.0, np.maximum(*ends))
        )

    def sin(self) -> Interval:
        """The sine of any angle in radians."""
        return (self - np.pi / 2).cos()

    @property
    def magnitude(self) -> FloatArray:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    @property
    def mignitude(self) -> FloatArray:
        """The smallest absolute value."""
        crosses = (self.lo <= 0) & (self.hi >= 0)
        return np.where(crosses, 0.0, np.minimum(np.abs(self.lo), np.abs(self.hi)))
