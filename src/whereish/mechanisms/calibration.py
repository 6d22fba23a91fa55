"""Start from what people know: an error that they accept, a radius to hide in.

Radii are given in true metres: a mechanism's law lives on a sphere or a plane, whose metres
may be shorter than true ones, and its reports are rounded to a lattice.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Self, TypeAlias

from whereish.errors import InvalidInput
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON, Epsilon, Length

__all__ = ["Calibrated", "TrueRadii", "probability"]

_MARGIN: Final = 2.0**-40  # relative: rounding of the laws' closed forms

Place: TypeAlias = tuple[float, float]
"""Longitude and latitude, or x and y: a place in the coordinates of a mechanism's space."""


class TrueRadii(ABC):
    """Radii around the secret that hold its report, rounding included, in true metres.

    If the ideal report is within r with probability p, and no place within r in the law's
    own metres is more than f(r) true metres away from the secret, then the report is within
    f(r) plus the largest rounding with probability at least p.
    """

    @abstractmethod
    def cdf(self, radius: Length | str) -> float:
        """Probability that the ideal report lies within `radius`, in the law's own metres."""

    @abstractmethod
    def ideal_quantile(self, chance: float) -> Length:
        """The radius that holds the ideal report with probability `chance`."""

    @property
    @abstractmethod
    def rounding(self) -> Length:
        """How far, at most, a report is from the ideal one that was rounded to it."""

    def stretch(self, reach: float, at: Place | None) -> float:
        """True metres for each metre of the law, at most, within `reach` of `at` (anywhere)."""
        return 1.0

    def to_true(self, reach: float, at: Place | None = None) -> float:
        """True metres that hold every report whose ideal one is within `reach` law metres."""
        return reach * self.stretch(reach, at) + self.rounding.m

    def to_law(self, radius: float, at: Place | None = None) -> float:
        """Law metres; reports of ideal ones within them are within `radius` true metres."""
        left = max(radius - self.rounding.m, 0.0)
        return left / self.stretch(left, at)

    def quantile(self, chance: float, *, at: Place | None = None) -> Length:
        """A radius in true metres that holds the report with at least probability `chance`.

        For every secret; or, smaller, for the one at the place `at`, which may then be read
        off the radius: show such a radius to nobody who may not know the place.
        """
        return Length(self.to_true(self.ideal_quantile(chance).m * (1 + _MARGIN), at))

    def coverage(self, radius: Length | str, *, at: Place | None = None) -> float:
        """A probability with which the report is, at least, within `radius` true metres."""
        return self.within(self.to_law(Length.of(radius, name="radius").m, at))

    def within(self, reach: float) -> float:
        """Probability that the ideal report lies within `reach` law metres, at least."""
        return self.cdf(Length(reach * (1 - _MARGIN))) if reach < math.inf else 1.0


class Calibrated(TrueRadii):
    """Constructors from nats within a radius, a mean error or a quantile.

    Errors fall as epsilon grows, so the epsilon that gives a wanted error is found
    by bisection.  `options` go to the mechanism's own constructor.
    """

    @abstractmethod
    def __init__(self, epsilon: Epsilon | str, **options: Any) -> None: ...

    @property
    @abstractmethod
    def mean_error(self) -> Length:
        """Expected distance of the ideal report in true metres, at most."""

    @classmethod
    def with_level(cls, level: float, radius: Length | str, **options: Any) -> Self:
        """Places within `radius` are at most e^`level` times as likely as each other (nats)."""
        return cls(Epsilon.at(level, radius), **options)

    @classmethod
    def with_mean_error(cls, length: Length | str, **options: Any) -> Self:
        """The mechanism whose ideal report is at most `length` away on average."""
        wanted = Length.positive(length, name="mean error")
        return cls._solved(lambda mechanism: mechanism.mean_error.m, wanted, options)

    @classmethod
    def with_quantile(cls, chance: float, length: Length | str, **options: Any) -> Self:
        """The mechanism whose report is within `length` with at least probability `chance`."""
        wanted = Length.positive(length, name="length")
        if not 0 < probability(chance) < 1:
            raise InvalidInput(f"probability must be between 0 and 1, exclusive; got {chance!r}")
        return cls._solved(lambda mechanism: mechanism.quantile(chance).m, wanted, options)

    @classmethod
    def _solved(
        cls, error: Callable[[Self], float], wanted: Length, options: dict[str, Any]
    ) -> Self:
        low, high = math.log(SMALLEST_EPSILON), math.log(LARGEST_EPSILON)
        largest, smallest = (
            error(cls(Epsilon(eps), **options)) for eps in (SMALLEST_EPSILON, LARGEST_EPSILON)
        )
        if not smallest <= wanted.m <= largest:
            raise InvalidInput(
                f"no epsilon gives an error of {wanted}: it must lie between"
                f" {Length(smallest)} and {Length(largest)}"
            )
        for _ in range(64):
            middle = (low + high) / 2
            if error(cls(Epsilon(_exp(middle)), **options)) > wanted.m:
                low = middle
            else:
                high = middle
        return cls(Epsilon(_exp(high)), **options)


def _exp(log_epsilon: float) -> float:
    return min(max(math.exp(log_epsilon), SMALLEST_EPSILON), LARGEST_EPSILON)


def probability(value: float) -> float:
    """`value`, if it is a probability below 1 (the radius for 1 is infinite)."""
    if not (isinstance(value, int | float) and 0 <= value < 1):
        raise InvalidInput(f"probability must be in [0, 1); got {value!r}")
    return float(value)
