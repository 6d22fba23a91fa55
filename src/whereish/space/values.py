"""Values: the finite universe q*[0..k] of a record's field, with or without null.

Inside, a value is its index 0..k, and null is -1: sums, orders and distances are then
integer arithmetic, without a rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.space.points import plain_numbers

__all__ = ["NULL", "Multiples", "Values", "as_numbers", "rational"]


NULL: Final = -1
"""The index of null."""

_TOLERANCE = 1e-9  # of a step: decimals such as 0.3 are not multiples of 0.1 in doubles
_ROUNDING = 2.0**-50  # of the index: step and quotient are rounded
_LARGEST_TOP = 2**50


def rational(number: Fraction | float | str, *, name: str) -> Fraction:
    """`number` exactly; a double is read as the decimal that prints it (0.1 is 1/10)."""
    try:
        if isinstance(number, Rational):
            return Fraction(number)
        if isinstance(number, str) and (not number.isascii() or "_" in number):
            raise ValueError  # Fraction would read "1_1" as 11
        return Fraction(str(float(number)) if isinstance(number, float) else number)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(
            f"{name} must be a finite number, such as 1, 0.25 or '1/3'; got {number!r}"
        ) from None


@dataclass(frozen=True, init=False)
class Values:
    """The values 0, q, 2q, ..., kq, and null where that is allowed.

    Parameters
    ----------
    step
        q > 0, kept as a fraction.
    top
        k >= 1, the index of the largest value.
    null
        Whether an entry may be missing: None or NaN where people write it.

    >>> Values("1/2", 4).indices([0, 1.5, 2]).tolist()
    [0, 3, 4]
    """

    step: Fraction
    top: int
    null: bool

    def __init__(self, step: Fraction | float | str, top: int, *, null: bool = False) -> None:
        q = rational(step, name="the step of a universe")
        if q <= 0:
            raise InvalidInput(f"the step of a universe must be greater than zero; got {q}")
        if not isinstance(top, int | np.integer) or isinstance(top, bool):
            raise InvalidInput(f"the top of a universe must be a whole number; got {top!r}")
        if not 1 <= top <= _LARGEST_TOP:
            raise InvalidInput(f"the top of a universe must be from 1 to 2^50; got {top}")
        object.__setattr__(self, "step", q)
        object.__setattr__(self, "top", int(top))
        object.__setattr__(self, "null", bool(null))

    @property
    def diameter(self) -> Fraction:
        """The largest distance qk: of 0 and qk, and of null and any value."""
        return self.step * self.top

    @property
    def dimension(self) -> int:
        """One coordinate."""
        return 1

    @property
    def description(self) -> str:
        """The universe in the field's notation."""
        prefix = "" if self.step == 1 else f"{self.step}*"
        return f"{prefix}[0..{self.top}]" + (" with null" if self.null else "")

    def check(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all entries are values of the universe."""
        self.indices(coordinates)

    def indices(self, data: ArrayLike) -> IntArray:
        """The index of each entry: 0..k, or -1 for null.

        Entries outside the universe are refused; the message does not quote them.
        """
        numbers = as_numbers(data)
        missing = np.isnan(numbers)
        if missing.any() and not self.null:
            raise InvalidInput(
                f"values must be in {self.description}; {int(missing.sum())} of {numbers.size} are"
                " missing: declare the universe with null=True, or drop them"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(missing, 0.0, numbers) / float(self.step)
            index = np.rint(scaled)
            bad = ~(_whole(scaled, index) & (index >= 0) & (index <= self.top))
        if bad.any():
            raise InvalidInput(
                f"values must be in {self.description}; {int(bad.sum())} of {numbers.size} are not:"
                " clamp or round them to the declared universe first, never widen it to the data"
            )
        return np.where(missing, NULL, index).astype(np.int64)

    def at(self, indices: ArrayLike) -> FloatArray:
        """The values at these indices, NaN for null."""
        index = np.asarray(indices, np.int64)
        values = index * float(self.step.numerator) / float(self.step.denominator)
        return np.asarray(np.where(index == NULL, math.nan, values))

    def all_indices(self) -> IntArray:
        """Every index, null last where it is allowed."""
        return np.append(np.arange(self.top + 1), [NULL] if self.null else []).astype(np.int64)

    def to_json(self) -> dict[str, Any]:
        """A plain description."""
        return {"step": str(self.step), "top": self.top, "null": self.null}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Values:
        """The universe that :meth:`to_json` described."""
        return cls(str(data["step"]), int(data["top"]), null=bool(data["null"]))


@dataclass(frozen=True, init=False)
class Multiples:
    """All multiples of a step q, without an end."""

    step: Fraction

    def __init__(self, step: Fraction | float | str) -> None:
        q = rational(step, name="the step of a lattice")
        if q <= 0:
            raise InvalidInput(f"the step of a lattice must be greater than zero; got {q}")
        object.__setattr__(self, "step", q)

    @property
    def dimension(self) -> int:
        """One coordinate."""
        return 1

    @property
    def description(self) -> str:
        """The lattice in the field's notation."""
        return f"the multiples of {self.step}"

    def check(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all entries are multiples of the step."""
        self.indices(coordinates)

    def indices(self, data: ArrayLike) -> IntArray:
        """Which multiple each entry is."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = as_numbers(data) / float(self.step)
            index = np.rint(scaled)
            good = _whole(scaled, index) & (np.abs(index) <= _LARGEST_TOP)
        if not good.all():
            raise InvalidInput(
                f"values must be multiples of {self.step} below 2^50 steps;"
                f" {int((~good).sum())} of {index.size} are not"
            )
        return index.astype(np.int64)

    def at(self, indices: ArrayLike) -> FloatArray:
        """The multiples with these indices."""
        index = np.asarray(indices, np.int64)
        return np.asarray(index * float(self.step.numerator) / float(self.step.denominator))


def _whole(scaled: FloatArray, index: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.abs(scaled - index) <= _TOLERANCE + _ROUNDING * np.abs(index))


def as_numbers(data: ArrayLike) -> FloatArray:
    """Doubles, NaN for null."""
    return plain_numbers(data, "values (None or NaN for null)").reshape(np.shape(data))
