"""The predictive mechanism for mobility traces: reuse what was said while it still holds.

A person's successive places are close, so fresh noise at every one of them buys little
and costs n * eps.  Instead (Chatzikokolakis, Palamidessi, Stronati, "A predictive
differentially-private mechanism for mobility traces", PETS 2014): for each place x_i

1. predict z from the earlier *reports*;
2. ask privately whether z is near x_i (:class:`~whereish.mechanisms.traces.noisy_test.NoisyTest`,
   level e_T);
3. if so report z (an easy step, cost e_T), else report x_i with fresh noise (a hard
   step, cost e_T + e_N).

Levels and threshold come from a budget manager (:mod:`whereish.mechanisms.traces.budget`).

What is promised
----------------
Reports are pairs (place, easy or hard), and times and their number are public.
Predictor and manager see the transcript r and the clock only, so given r_1..r_{i-1}
step i is a mechanism on x_i alone, of level s_i(r) = e_T + [hard] e_N.  Multiplying the
steps, for all traces x, x' and every transcript r,

    ln P(r | x) - ln P(r | x')  <=  sum_i s_i(r) d(x_i, x'_i)  <=  s(r) d_inf(x, x'),

with s(r) = sum_i s_i(r), the sum actually spent.  This is the paper's lemma on its
budget, and it is an *ex post* statement: it bounds what this very transcript tells,
and another run on the same trace may spend more.  It becomes d-privacy in the usual
sense, s * d_inf for all sets of transcripts, if s(r) <= s for *every* r: the paper's
theorem for a bounded budget manager.  ``total`` makes ours bounded, since a step is
taken only when its worst cost still fits; that s is :attr:`TraceRelease.bound`, a
:class:`~whereish.privacy.guarantee.Guarantee`.  What was spent is
:attr:`TraceRelease.guarantee`, a :class:`~whereish.privacy.guarantee.SpentBudget`: an event may
gather transcripts that spent more, so s(r) bounds no event's probability.  Without a total,
the number n of places is public, and n steps at their worst are s: :meth:`worst_case` of
:class:`PredictiveMechanism`.  A budget is charged s *before* the first report; charging s(r)
afterwards is sound only where s fitted below the cap beforehand, so that no transcript can
exceed it.  A change of one place x_i alone is told by s_i(r) only; but somebody who stays at
one place for a night is protected there at what the whole night spends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import BudgetExceeded, InvalidInput, NotPrivate
from whereish.mechanisms.base import Mechanism, check_domain
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.traces.budget import (
    BudgetManager,
    FixedUtility,
    Plan,
    Reported,
    Transcript,
)
from whereish.mechanisms.traces.noisy_test import NoisyTest, Surface, level_on, metric_on
from whereish.mechanisms.traces.predictors import Predictor, last_report, straight_on
from whereish.privacy.guarantee import Basis, Guarantee, SpentBudget
from whereish.privacy.metric import Metric, rounded_up
from whereish.privacy.tuples import TupleMax
from whereish.randomness import Randomness, secure
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates
from whereish.space.sphere import Sphere
from whereish.units import Epsilon, at_least_one

__all__ = [
    "NoiseFamily",
    "PredictiveMechanism",
    "Predictor",
    "TraceRelease",
    "TraceSession",
    "last_report",
    "straight_on",
]

NoiseFamily: TypeAlias = Callable[[Epsilon], Mechanism]
"""From a level to the mechanism of the hard steps."""

_PAPER = "predictive mechanism (Chatzikokolakis, Palamidessi, Stronati, PETS 2014)"
_NUMERICS = "exact: cells of a public lattice, tests in ball arithmetic"


@dataclass(frozen=True)
class TraceRelease:
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
    """

    reports: Points
    hard: NDArray[np.bool_] = field(repr=False)
    costs: FloatArray = field(repr=False)
    spent: Fraction
    tests: int
    total: Epsilon | None
    places: int | None = None

    def __len__(self) -> int:
        return len(self.reports)

    @property
    def epsilon_spent(self) -> Epsilon:
        """The sum actually spent, rounded up."""
        return Epsilon(rounded_up(self.spent))

    @property
    def guarantee(self) -> SpentBudget:
        """What this transcript tells at most: spent * d_inf, ex post; no bound for sets."""
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
        return _bounded(self.reports.space, Fraction(self.total.per_m), count)


@dataclass(frozen=True)
class PredictiveMechanism:
    """Predict, test privately, and add noise only where the prediction failed.

    Contract: keeps ``total * d_inf`` on whole traces (``worst_case``).

    Parameters
    ----------
    budget
        :class:`~whereish.mechanisms.traces.budget.FixedUtility` or
        :class:`~whereish.mechanisms.traces.budget.FixedRate`.
    noise
        The family of the hard steps: ``GlobeLaplace`` (the default), or
        ``lambda eps: PlanarLaplace(eps, plane=plane)``.
    predict
        A function of the public transcript: :func:`last_report` or :func:`straight_on`.

    Raises
    ------
    InvalidInput
        If `budget` is no budget manager.

    Examples
    --------
    >>> import whereish as wh
    >>> mechanism = wh.PredictiveMechanism(wh.FixedUtility("500 m", total="0.02/m"))
    >>> trace = mechanism.report([[2.35, 48.85]] * 10)
    >>> trace.spent <= trace.total.per_m
    True
    """

    budget: BudgetManager
    noise: NoiseFamily = GlobeLaplace
    predict: Predictor = last_report

    def __post_init__(self) -> None:
        if not isinstance(self.budget, BudgetManager):
            raise InvalidInput(
                "budget must be a budget manager, such as FixedUtility('200 m');"
                f" got {type(self.budget).__name__}"
            )

    def worst_case(self, places: int) -> Guarantee:
        """What every run on a trace of so many places keeps, for all sets of transcripts.

        The manager's total, or the worst cost of so many steps where that is less or there is
        no total: what to charge before the first report.
        """
        count = at_least_one(places, name="places", meaning="the length of the trace")
        budget = self.budget
        total = budget.total
        amounts = [] if total is None else [Fraction(total.per_m)]
        if isinstance(budget, FixedUtility):
            amounts.append(budget.most(count))
        if not amounts:
            raise InvalidInput(
                "this budget manager has no total, so no amount bounds every run: give it one"
            )
        return _bounded(self.start().space, min(amounts), count)

    def start(self, *, rng: Randomness | None = None) -> TraceSession:
        """A trace to which places are added one by one, as they happen."""
        return TraceSession(self, secure(rng))

    def report(
        self,
        trace: Points | ArrayLike,
        times_s: ArrayLike | None = None,
        *,
        rng: Randomness | None = None,
        when_spent: Literal["stop", "predict"] = "stop",
    ) -> TraceRelease:
        """Sanitise a whole trace, in order.

        `times_s` are seconds on any clock, and public.  When the budget is spent the
        release ends, or goes on with free predictions (``when_spent="predict"``).
        """
        if when_spent not in ("stop", "predict"):
            raise InvalidInput(f"when_spent must be 'stop' or 'predict'; got {when_spent!r}")
        session = self.start(rng=rng)
        places = session.checked(trace)
        times = _checked_times(times_s, len(places))
        session._given = len(places)
        for place, time_s in zip(places, times, strict=True):
            try:
                session._step(place, time_s)
            except BudgetExceeded:
                if when_spent == "stop" or not session.transcript.reports:
                    break
                session._predict_only(time_s)
        return session.release()


@dataclass
class TraceSession:
    """One person's trace in progress."""

    mechanism: PredictiveMechanism = field(repr=False)
    rng: Randomness = field(repr=False)
    transcript: Transcript = field(default_factory=Transcript)
    _families: dict[float, Mechanism] = field(default_factory=dict, repr=False)
    _given: int = field(default=0, repr=False)
    space: Surface = field(init=False)

    def __post_init__(self) -> None:
        space = self.mechanism.noise(Epsilon(1e-3)).space
        if not isinstance(space, Plane | Sphere):
            raise InvalidInput(
                f"traces must live on the globe or on a plane; got {space.description}"
            )
        self.space = space

    def report(self, place: Points | ArrayLike, time_s: float | None = None) -> Points:
        """Report the next place; raises `BudgetExceeded` when no further step can be paid."""
        x = self.checked(place)
        if len(x) != 1:
            raise InvalidInput(f"a session reports one place at a time; got {len(x)}")
        time_s = _checked_times(None if time_s is None else [time_s], 1)[0]
        self._given += 1
        self._step(x[0], time_s)
        return self._points(self.transcript.reports[-1].place[None].copy())

    def checked(self, places: Points | ArrayLike) -> FloatArray:
        """The coordinates of places for which the promise holds; others are refused unseen.

        A refusal after the private test would tell its outcome for free.
        """
        x = checked_coordinates(places, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(x)
        return x

    def release(self) -> TraceRelease:
        """All reports so far, with what they cost."""
        reports = self.transcript.reports
        places = np.array([r.place for r in reports]).reshape(-1, 2)
        costs = [float(r.plan.cost(hard=r.hard)) for r in reports]
        return TraceRelease(
            self._points(places),
            np.array([r.hard for r in reports], dtype=bool),
            np.array(costs, dtype=np.float64),
            self.transcript.spent,
            self.transcript.tests,
            self.mechanism.budget.total,
            max(self._given, len(reports)),
        )

    def _points(self, places: FloatArray) -> Points:
        return Points.trusted(places, self.space, reproducible=self.rng.reproducible)

    def _step(self, secret: FloatArray, time_s: float | None) -> None:
        self._check_clock(time_s)
        plan = self.mechanism.budget.plan(self.transcript, time_s)
        if plan is None:
            raise BudgetExceeded(
                f"the trace's budget cannot pay for another report: it has spent"
                f" {float(self.transcript.spent):.6g} per metre in"
                f" {len(self.transcript.reports)} reports"
            )
        total = self.mechanism.budget.total
        if total is not None and self.transcript.spent + plan.most > Fraction(total.per_m):
            raise BudgetExceeded("the budget manager planned a step beyond its own total")
        noise = None if plan.noise is None and plan.test is None else self._family(plan)
        check_domain(noise, secret[None])
        hard = True
        place = secret
        if plan.test is not None or plan.noise is None:
            place = self._prediction(time_s)
            hard = plan.test is not None and not self._test(plan, secret, place)
        if hard:
            assert noise is not None
            place = self._noisy(noise, secret, plan)
        self.transcript.append(Reported(place, time_s, hard, plan))

    def _noisy(self, noise: Mechanism, secret: FloatArray, plan: Plan) -> FloatArray:
        """A fresh report.  Where it fails, the failure tells the test's answer: that is paid."""
        try:
            return np.array(noise.report(secret[None], rng=self.rng).coordinates[0])
        except Exception:
            if plan.test is not None:
                self.transcript.spent += plan.most
            raise

    def _predict_only(self, time_s: float | None) -> None:
        self._check_clock(time_s)
        self.transcript.append(Reported(self._prediction(time_s), time_s, False, Plan()))

    def _prediction(self, time_s: float | None) -> FloatArray:
        guess = np.asarray(self.mechanism.predict(self.transcript, time_s), float).reshape(-1)
        if guess.shape != (2,) or not np.isfinite(guess).all():
            raise InvalidInput("a predictor must return two finite coordinates")
        if isinstance(self.space, Sphere):
            lon = (guess[0] + 180.0) % 360.0 - 180.0
            return np.array([lon, min(max(guess[1], -90.0), 90.0)])
        return guess

    def _test(self, plan: Plan, secret: FloatArray, guess: FloatArray) -> bool:
        assert plan.test is not None
        assert plan.threshold is not None
        return NoisyTest(plan.test, plan.threshold, self.space)._decide(secret, guess, self.rng)

    def _family(self, plan: Plan) -> Mechanism:
        """The mechanism of a hard step, checked before anything is asked of the secret."""
        if plan.noise is None:
            raise InvalidInput("a plan with a test must have noise for the case that it fails")
        mechanism = self._families.get(plan.noise.per_m)
        if mechanism is None:
            mechanism = self.mechanism.noise(plan.noise)
            promised = level_on(self.space, plan.noise) * metric_on(self.space)
            if not mechanism.guarantee.implies(promised):
                raise NotPrivate(
                    f"the noise asked for at {plan.noise} must keep that level; it keeps"
                    f" {mechanism.guarantee.metric.description}"
                )
            self._families = {plan.noise.per_m: mechanism}
        return mechanism

    def _check_clock(self, time_s: float | None) -> None:
        if self.transcript.reports:
            before = self.transcript.reports[-1].time_s
            if (before is None) != (time_s is None):
                raise InvalidInput("either all reports of a trace have a time, or none")
            if before is not None and time_s is not None and time_s < before:
                raise InvalidInput("the times of a trace must not go back: sort it first")


def _d_inf(space: Space, amount: Fraction, count: int) -> Metric:
    """`amount` per true metre, rounded up, times d_inf on traces of `count` places."""
    assert isinstance(space, Plane | Sphere)
    scale = 1.0 if isinstance(space, Sphere) else space.scale
    return rounded_up(amount / Fraction(scale)) * TupleMax(metric_on(space), max(count, 1))


def _bounded(space: Space, amount: Fraction, count: int) -> Guarantee:
    source = f"{_PAPER}, theorem for a bounded budget manager"
    return Guarantee(_d_inf(space, amount, count), Basis.THEOREM, source, _NUMERICS).on(space)


def _checked_times(times_s: ArrayLike | None, count: int) -> list[float] | list[None]:
    if times_s is None:
        return [None] * count
    try:
        times = np.asarray(times_s, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("times_s must be numbers of seconds") from None
    if times.shape != (count,) or not np.isfinite(times).all():
        raise InvalidInput(
            f"times_s must be {count} finite numbers of seconds, one for each place;"
            f" got shape {times.shape}"
        )
    return [float(t) for t in times]
