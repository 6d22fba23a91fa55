"""Sensitivity: how far an answer moves when the data moves, by which metric.

A query f is Delta-sensitive with respect to a metric d on databases when
|f(x) - f(x')| <= Delta d(x, x') for all x, x'.  Then a mechanism H on answers that keeps
(eps/Delta) |y - y'| gives H o f that keeps eps * d (Chatzikokolakis et al., PETS 2013,
section 4; Bordenabe's thesis, chapter 4).

It is *uniformly* so when every two answers are joined by a chain y_1, y_2, ... on which
|y_1 - y_m| is the sum of the steps, and every step is tight: there are databases with these
answers and |y_i - y_{i+1}| = Delta d(x_i, x_{i+1}).  Then the converse holds too: H o f
keeps eps * d only if H keeps (eps/Delta) |y - y'|.  So the best mechanism for the answers
is the best one for the query, and on q*[0..k] that is the Truncated Geometric.  Chains on a
line are monotone, so *uniformly sensitive* means here: every two neighbouring answers are
tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from whereish.errors import InvalidInput
from whereish.privacy.metric import Metric
from whereish.privacy.tuples import (
    Discrete,
    NormalisedValueDistance,
    Records,
    TupleSum,
    ValueDistance,
)
from whereish.results import JsonResult

__all__ = ["Notion", "Sensitivity", "notion_of"]


class Notion(Enum):
    """The metrics on records with respect to which sensitivities are derived."""

    HAMMING = "d_h"
    MANHATTAN = "d_1"
    NORMALISED_MANHATTAN = "d~_1"
    MAXIMUM = "d_inf"


@dataclass(frozen=True)
class Sensitivity(JsonResult):
    """The least Delta with |f(x) - f(x')| <= Delta d(x, x'), and whether uniformly so.

    `reason` names the argument for both.
    """

    value: Fraction
    uniform: bool
    reason: str

    def times(self, factor: Fraction | int) -> Sensitivity:
        """The sensitivity with respect to d / factor."""
        return Sensitivity(self.value * factor, self.uniform, self.reason)


def notion_of(metric: Metric) -> Notion:
    """Which of the metrics on records this is."""
    Records.of(metric)  # raises where it is none
    base = getattr(metric, "base", None)
    summed = isinstance(metric, TupleSum)
    if isinstance(base, Discrete) and summed:
        return Notion.HAMMING
    if isinstance(base, NormalisedValueDistance) and summed:
        return Notion.NORMALISED_MANHATTAN
    if isinstance(base, ValueDistance):
        return Notion.MANHATTAN if summed else Notion.MAXIMUM
    raise InvalidInput(
        "sensitivities are derived for hamming, manhattan, normalised_manhattan and maximum of"
        f" Records(values, size); got {metric.description}: list the databases with"
        " FiniteQuery.of(query, metric)"
    )
