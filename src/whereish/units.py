"""Lengths and privacy levels, with their units.

A privacy level epsilon is a number per length: "ln(4)/200 m" makes two places
200 m apart at most 4 times as likely as each other.  A bare number has no
meaning without a unit, so text must carry one.  Plain numbers are accepted only
through :meth:`Length.metres` and :meth:`Epsilon.per_metre`, which name it.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any

from whereish.errors import InvalidInput, UnitError

__all__ = [
    "METRES_PER",
    "UNITS",
    "Epsilon",
    "Length",
    "at_least_one",
    "number",
    "per_unit",
    "whole",
    "whole_number",
]

METRES_PER = {
    "mm": 1e-3,
    "cm": 1e-2,
    "m": 1.0,
    "km": 1e3,
    "ft": 0.3048,
    "yd": 0.9144,
    "mi": 1609.344,
    "nmi": 1852.0,
}
"""Metres in one of each unit (international foot, yard, mile; nautical mile)."""

_WORDS = {
    "m": ("metre", "metres", "meter", "meters"),
    "km": ("kilometre", "kilometres", "kilometer", "kilometers"),
    "ft": ("foot", "feet"),
    "yd": ("yard", "yards"),
    "mi": ("mile", "miles"),
}
_METRES_IN = METRES_PER | {
    word: METRES_PER[unit] for unit, words in _WORDS.items() for word in words
}
UNITS = f"{', '.join(METRES_PER)} (or metres, meters, kilometres, feet, yards, miles)"
"""The units of a length, for messages."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 1e3
"""Privacy levels per metre outside this range are taken for a mistake in the unit."""

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A decimal number in text.  Python's float() would also take "1_1" (an identifier), "nan",
"infinity" and the digits of other scripts, none of which is meant where a number is."""

_NUMBER = NUMBER
_UNIT = "|".join(sorted(_METRES_IN, key=len, reverse=True))
_LENGTH = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})\s*")
_LEVEL = re.compile(rf"\s*(?:(?:ln|log)\s*\(\s*({_NUMBER})\s*\)|({_NUMBER}))\s*")
_PER = re.compile(rf"\s*({_NUMBER})?\s*({_UNIT})\s*")
_ALONE = re.compile(rf"[ \t]*({_NUMBER})[ \t]*")
_WHOLE = re.compile(r"[ \t]*([+-]?[0-9]+)[ \t]*")


def number(text: str) -> float:
    """The finite decimal number that `text` is; `ValueError`, which does not quote it, otherwise.

    >>> number("-1.5e3")
    -1500.0
    """
    match = _ALONE.fullmatch(text)
    value = float(match[1]) if match else math.nan
    if not math.isfinite(value):
        raise ValueError("not a finite decimal number")
    return value


def whole_number(text: str) -> int:
    """The integer that `text` is; `ValueError`, which does not quote it, otherwise."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("not a whole number")
    return int(match[1])


def whole(value: Any, name: str) -> int:
    """`value` as a plain int; fractions, floats and text are refused."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidInput(f"{name} must be a whole number; got {type(value).__name__}") from None


def per_unit(unit: str) -> float:
    """Metres in the unit of a level "per km"."""
    if unit not in METRES_PER:
        raise InvalidInput(f"per must be one of {', '.join(METRES_PER)}; got {unit!r}")
    return METRES_PER[unit]


def _with_unit(value: object, must: str, write: str) -> str:
    """The text, where a unit may be; a bare number is refused, as its unit would be a guess."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnitError(f"{must}; got {type(value).__name__}")
    raise UnitError(f"{must}; got the bare number {value!r}: write {write.format(value)}")


def _real(value: Any, name: str) -> float:
    """`value` as a plain float; text is refused, since float() would read "1_1" as 11."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number; got {type(value).__name__}") from None


def at_least_one(value: Any, *, name: str, meaning: str) -> int:
    """`value` as a whole number >= 1; fractions are refused, never truncated."""
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInput(f"{name} must be a whole number >= 1 ({meaning}); got {value!r}")
    return count


@dataclass(frozen=True, order=True, slots=True)
class Length:
    """A length, kept in metres.

    >>> Length.of("2 mi").m
    3218.688
    """

    m: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", _real(self.m, "a length in metres"))
        if not math.isfinite(self.m):
            raise InvalidInput("a length must be a finite number of metres")

    @classmethod
    def metres(cls, value: float) -> Length:
        """The length of `value` metres."""
        return cls(value)

    @classmethod
    def of(cls, value: Length | str, *, name: str = "length") -> Length:
        """Read "200 m", "1.5 km" or "2 mi"; a `Length` passes through.

        A bare number is refused, since its unit would be a guess.
        """
        if isinstance(value, Length):
            return value
        match = _LENGTH.fullmatch(
            _with_unit(
                value,
                f"{name} must be a length with its unit, such as '200 m'",
                "'{0} m' or Length.metres({0})",
            )
        )
        if match is None:
            raise UnitError(
                f"{name} must be a number and a unit, such as '200 m'; got {value!r}. The units"
                f" are {UNITS}"
            )
        return cls(float(match[1]) * _METRES_IN[match[2]])

    @classmethod
    def positive(cls, value: Length | str, *, name: str = "length") -> Length:
        """Like :meth:`of`, and greater than zero."""
        length = cls.of(value, name=name)
        if length.m <= 0:
            raise InvalidInput(f"{name} must be greater than zero; got {length}")
        return length

    def __mul__(self, factor: float) -> Length:
        return Length(self.m * factor)

    __rmul__ = __mul__

    def __str__(self) -> str:
        if self.m == 0 or 1 <= abs(self.m) < 1e4:
            return f"{self.m:.6g} m"
        return f"{self.m / 1e3:.6g} km" if abs(self.m) >= 1e4 else f"{self.m:.3g} m"


@dataclass(frozen=True, order=True, slots=True)
class Epsilon:
    """A privacy level per length, kept per metre.

    >>> round(Epsilon.of("ln(4)/200 m").per_m, 6)
    0.006931
    >>> Epsilon.of("1.07/km").per_m
    0.00107
    """

    per_m: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_m", _real(self.per_m, "epsilon per metre"))
        if not (math.isfinite(self.per_m) and self.per_m > 0):
            raise InvalidInput(
                f"epsilon must be a finite number > 0, in 1/length; got {self.per_m:g} per metre"
            )
        if not SMALLEST_EPSILON <= self.per_m <= LARGEST_EPSILON:
            raise InvalidInput(
                f"epsilon must be between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g} per metre;"
                f" got {self.per_m:g} per metre: is the unit right?"
            )

    @classmethod
    def per_metre(cls, value: float) -> Epsilon:
        """The level of `value` per metre."""
        return cls(value)

    @classmethod
    def at(cls, level: float, radius: Length | str) -> Epsilon:
        """The epsilon of `level` nats within `radius`: epsilon = level / radius."""
        return cls(_real(level, "level") / Length.positive(radius, name="radius").m)

    @classmethod
    def of(cls, value: Epsilon | str) -> Epsilon:
        """Read "ln(4)/200 m", "1.07/km" or "0.01/m"; an `Epsilon` passes through."""
        if isinstance(value, Epsilon):
            return value
        must = "epsilon must have a unit, such as '0.01/m' or 'ln(4)/200 m'"
        text = _with_unit(value, must, "'{0}/m', '{0}/km' or Epsilon.per_metre({0})")
        numerator, slash, denominator = text.partition("/")
        level, per = _LEVEL.fullmatch(numerator), _PER.fullmatch(denominator)
        if not slash or level is None or per is None:
            raise UnitError(
                "epsilon must be a level per length, such as '0.01/m', '1.07/km' or"
                f" 'ln(4)/200 m'; got {value!r}. The units are {UNITS}"
            )
        inner = level[1]
        if inner is not None and float(inner) <= 0:
            raise InvalidInput(f"ln() in epsilon must have a number > 0; got {value!r}")
        top = math.log(float(inner)) if inner is not None else float(level[2])
        bottom = (float(per[1]) if per[1] else 1.0) * _METRES_IN[per[2]]
        if bottom <= 0:
            raise InvalidInput(f"the length in epsilon must be greater than zero; got {value!r}")
        return cls(top / bottom)

    def __mul__(self, factor: float) -> Epsilon:
        if not isinstance(factor, int | float):
            return NotImplemented  # a metric, which knows how to be scaled
        return Epsilon(self.per_m * factor)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return f"{self.per_m:.6g}/m" if self.per_m >= 0.1 else f"{self.per_m * 1e3:.6g}/km"
