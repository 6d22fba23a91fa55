"""Start from what people know: an error that they accept, a radius to hide in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from whereish.errors import InvalidInput
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON, Epsilon, Length

__all__ = ["Calibrated", "probability"]


class Calibrated(ABC):
    """Constructors from a level within a radius, a mean error or a quantile.

    Errors fall as epsilon grows, so the epsilon that gives a wanted error is found
    by bisection.  `options` go to the mechanism's own constructor.
    """

    @abstractmethod
    def __init__(self, epsilon: Epsilon | str, **options: Any) -> None: ...

    @property
    @abstractmethod
    def mean_error(self) -> Length:
        """Expected distance between the secret and the ideal report."""

    @abstractmethod
    def quantile(self, chance: float) -> Length:
        """The distance that the ideal report keeps with probability `chance`."""

    @classmethod
    def with_level(cls, level: float, radius: Length | str, **options: Any) -> Self:
        """Places within `radius` become at most e^`level` times as likely as each other."""
        return cls(Epsilon.at(level, radius), **options)

    @classmethod
    def with_mean_error(cls, length: Length | str, **options: Any) -> Self:
        """The mechanism whose ideal report is `length` away on average."""
        wanted = Length.positive(length, name="mean error")
        return cls._solved(lambda mechanism: mechanism.mean_error.m, wanted, options)

    @classmethod
    def with_quantile(cls, chance: float, length: Length | str, **options: Any) -> Self:
        """The mechanism whose ideal report stays within `length` with probability `chance`."""
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
