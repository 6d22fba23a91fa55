"""The level that a caller wants, said as an epsilon or as an error that people know.

Noise of one family is farther away the smaller its epsilon, so that a mean error, or a radius
that holds the report with some confidence, stands for one epsilon
(:class:`~whereish.mechanisms.calibration.Calibrated` finds it).
"""

from __future__ import annotations

from typing import Any

from whereish.errors import InvalidInput
from whereish.mechanisms.calibration import Calibrated
from whereish.units import Epsilon, Length

__all__ = ["CONFIDENCE", "ways_given", "wanted_level"]

CONFIDENCE = 0.95
"""With which probability a report lies within a radius, where nothing else is said."""

_WAYS = "epsilon ('ln(4)/200 m'), mean_error ('300 m') and within ('500 m', with confidence=0.95)"


def ways_given(
    epsilon: Epsilon | str | None,
    mean_error: Length | str | None,
    within: Length | str | None,
    confidence: float | None,
) -> int:
    """In how many ways a level is given; a confidence without a radius is refused."""
    if confidence is not None and within is None:
        raise InvalidInput(
            "confidence goes with within: within='500 m', confidence=0.95 asks that reports be"
            " within 500 m with probability 0.95"
        )
    return sum(one is not None for one in (epsilon, mean_error, within))


def wanted_level(
    epsilon: Epsilon | str | None = None,
    *,
    mean_error: Length | str | None = None,
    within: Length | str | None = None,
    confidence: float | None = None,
    family: type[Calibrated] | None = None,
    **options: Any,
) -> Epsilon:
    """The epsilon that was asked for, in one of three ways.

    `family` is the noise whose error is meant, Laplace noise on the globe by default, and
    `options` what its constructor takes besides epsilon.

    Raises
    ------
    InvalidInput
        Unless exactly one way is given, or if no epsilon has such an error.

    Examples
    --------
    >>> from whereish.mechanisms.wanted_level import wanted_level
    >>> print(wanted_level(mean_error="300 m"))
    6.73418/km
    """
    count = ways_given(epsilon, mean_error, within, confidence)
    if count != 1:
        got = "none" if count == 0 else f"{count} of them"
        raise InvalidInput(f"give one of {_WAYS}; got {got}")
    if epsilon is not None:
        return Epsilon.of(epsilon)
    if family is None:
        from whereish.mechanisms.noise.globe_laplace import GlobeLaplace

        family = GlobeLaplace
    if mean_error is not None:
        wanted = Length.positive(mean_error, name="mean_error")
        found: Any = family.with_mean_error(wanted, **options)
    else:
        assert within is not None
        radius = Length.positive(within, name="within")
        chance = CONFIDENCE if confidence is None else confidence
        found = family.with_quantile(chance, radius, **options)
    level: Epsilon = found.epsilon
    return level
