"""A sanitised trace, what it cost, and what is promised of it.

The two statements, ex post and for every run, are explained in
:mod:`whereish.mechanisms.traces.predictive`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.traces.noisy_test import metric_on
from whereish.privacy.guarantee import Basis, Guarantee, SpentBudget
from whereish.privacy.metric import Metric, rounded_up
from whereish.privacy.tuples import TupleMax
from whereish.results import JsonResult
from whereish.space.plane import Plane
from whereish.space.points import Points, Space
from whereish.space.sphere import Sphere
from whereish.units import Epsilon

__all__ = ["TraceRelease", "bounded"]

_PAPER = "predictive mechanism (Chatzikokolakis, Palamidessi, Stronati, PETS 2014)"
_NUMERICS = "exact: cells of a public lattice, tests in ball arithmetic"


@dataclass(frozen=True)
class TraceRelease(JsonResult):
    """A sanitised trace: the reports, and what they cost.

    Parameters
    ----------
    reports
        One place for each step taken; fewer than secrets if the budget ran out.
    hard
        Which steps carry fresh noise.
    costs
        What each step spent, per metre.
    spent
        Their exact sum.
    places
        How many places were given: `bound` speaks of traces of that length, also where
        the budget ended before them.
    drawn
        What was reported step by step: the transcript, of which `guarantee` speaks.  `reports`
        are a function of it: the same, or the whole trace smoothed once all of it is known.
    """

    reports: Points
    hard: NDArray[np.bool_] = field(repr=False)
    costs: FloatArray = field(repr=False)
    spent: Fraction
    tests: int
    total: Epsilon | None
    places: int | None = None
    drawn: Points | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.reports)

    @property
    def smoothed(self) -> bool:
        """Whether `reports` are the whole trace smoothed, not what was drawn step by step."""
        return self.drawn is not None and self.drawn is not self.reports

    @property
    def epsilon_spent(self) -> Epsilon:
        """The sum actually spent, rounded up."""
        return Epsilon(rounded_up(self.spent))

    @property
    def guarantee(self) -> SpentBudget:
        """What this transcript tells at most: spent * d_inf, ex post; no bound for sets.

        The same holds of smoothed reports together with `spent`: their chance is the sum over
        the transcripts that smooth to them and spent just that, each of which keeps it.
        """
        source = f"{_PAPER}, ex post: the likelihood ratio of this very transcript"
        metric = _d_inf(self.reports.space, self.spent, len(self))
        return SpentBudget(metric, Basis.THEOREM, source, _NUMERICS).on(self.reports.space)

    @property
    def bound(self) -> Guarantee:
        """What every run keeps: total * d_inf, for all sets of transcripts."""
        if self.total is None:
            raise InvalidInput(
                "this trace was made without a total budget, so only what it spent is known:"
                " give the budget manager a total"
            )
        # The trace may end early, which depends on the reports: it is about all places given.
        count = len(self) if self.places is None else self.places
        return bounded(self.reports.space, Fraction(self.total.per_m), count)


def _d_inf(space: Space, amount: Fraction, count: int) -> Metric:
    """`amount` per true metre, rounded up, times d_inf on traces of `count` places."""
    assert isinstance(space, Plane | Sphere)
    scale = 1.0 if isinstance(space, Sphere) else space.scale
    return rounded_up(amount / Fraction(scale)) * TupleMax(metric_on(space), max(count, 1))


def bounded(space: Space, amount: Fraction, count: int) -> Guarantee:
    """What every run keeps: `amount` per true metre times d_inf, for all sets."""
    source = f"{_PAPER}, theorem for a bounded budget manager"
    return Guarantee(_d_inf(space, amount, count), Basis.THEOREM, source, _NUMERICS).on(space)
