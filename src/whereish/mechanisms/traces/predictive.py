"""The predictive mechanism for mobility traces: reuse what was said while it still holds.

A person's successive places are close, so fresh noise at every one of them buys little
and costs n * eps.  Instead (Chatzikokolakis, Palamidessi, Stronati, "A predictive
differentially-private mechanism for mobility traces", PETS 2014): for each place x_i

1. predict z from the earlier *reports*;
2. ask privately whether z is near x_i (:class:`~whereish.mechanisms.traces.noisy_test.NoisyTest`,
   level e_T);
3. if so report z (an easy step, cost e_T), else report x_i with fresh noise (a hard
   step, cost e_T + e_N).

A manager may leave out 2, and decide from the transcript alone whether z is reported (for free)
or fresh noise (e_N); or ask by a run of looks of which only the first and the failed one cost
(:mod:`~whereish.mechanisms.traces.sparse_test`, proven there for a whole run).  Several noisy
reports may share a hidden radius, and are then paid together
(:mod:`~whereish.mechanisms.traces.shared_radius`, proven there for a block).

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
exceed it.  Runs of looks and blocks of noise are steps on several places, whose level is what
they have paid: they multiply in the same way.  A change of one place x_i alone is told by e_T + e_N
of its own step only, whatever that was charged; but somebody who stays at one place for a night
is protected there at what the whole night spends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import BudgetExceeded, InvalidInput, NotPrivate
from whereish.mechanisms.base import Mechanism, check_domain
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.traces.budget import BudgetManager, FixedUtility
from whereish.mechanisms.traces.cadence import Cadence
from whereish.mechanisms.traces.noisy_test import NoisyTest, level_on, metric_on
from whereish.mechanisms.traces.predictors import Predictor, by_motion, last_report, straight_on
from whereish.mechanisms.traces.release import TraceRelease, bounded
from whereish.mechanisms.traces.saved_session import read_transcript, written_transcript
from whereish.mechanisms.traces.shared_radius import SharedRadius, can_share
from whereish.mechanisms.traces.sparse_test import SparseRun
from whereish.mechanisms.traces.transcript import (
    Plan,
    Reported,
    Shared,
    Surface,
    Transcript,
    checked_times,
)
from whereish.privacy.guarantee import Guarantee
from whereish.randomness import Randomness, secure
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
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
        A function of the public transcript: :func:`last_report`, :func:`straight_on`, or
        :func:`by_motion`, the default.

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
    predict: Predictor = by_motion

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
        return bounded(self.start().space, min(amounts), count)

    def start(self, *, rng: Randomness | None = None) -> TraceSession:
        """A trace to which places are added one by one, as they happen."""
        return TraceSession(self, secure(rng))

    def resume(self, data: dict[str, Any], *, rng: Randomness | None = None) -> TraceSession:
        """Go on with the session that :meth:`TraceSession.to_json` described.

        With the mechanism that began it: the amounts spent are counted on.

        >>> import whereish as wh
        >>> mechanism = wh.PredictiveMechanism(wh.FixedUtility("500 m", total="0.02/m"))
        >>> session = mechanism.start()
        >>> first = session.report([[2.35, 48.85]])
        >>> again = mechanism.resume(session.to_json())
        >>> again.transcript.spent == session.transcript.spent
        True
        """
        session = self.start(rng=rng)
        transcript, given, reproducible = read_transcript(data, session.space, self.budget)
        if reproducible and not session.rng.reproducible:
            raise InvalidInput(
                "the session was begun with a seed, so its reports protect nobody: resume it with"
                " a seeded rng, or begin a new one"
            )
        session.transcript, session._given = transcript, given
        return session

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
        release ends, or goes on with free predictions (``when_spent="predict"``).  With the
        motion filter the reports are smoothed once all are drawn, which costs nothing; what
        was drawn is kept beside them.
        """
        if when_spent not in ("stop", "predict"):
            raise InvalidInput(f"when_spent must be 'stop' or 'predict'; got {when_spent!r}")
        session = self.start(rng=rng)
        places = session.checked(trace)
        times = checked_times(times_s, len(places))
        session._given = len(places)
        session.transcript.whole = self.predict is by_motion
        for place, time_s in zip(places, times, strict=True):
            try:
                session._step(place, time_s)
            except BudgetExceeded:
                if when_spent == "stop" or not session.transcript.reports:
                    break
                session._predict_only(time_s)
        return session.release(smooth=True)


@dataclass
class TraceSession:
    """One person's trace in progress."""

    mechanism: PredictiveMechanism = field(repr=False)
    rng: Randomness = field(repr=False)
    transcript: Transcript = field(default_factory=Transcript)
    _families: dict[float, Mechanism] = field(default_factory=dict, repr=False)
    _given: int = field(default=0, repr=False)
    _run: SparseRun | None = field(default=None, repr=False)
    _block: SharedRadius | None = field(default=None, repr=False)
    space: Surface = field(init=False)

    def __post_init__(self) -> None:
        noise = self.mechanism.noise(Epsilon(1e-3))
        space = noise.space
        if not isinstance(space, Plane | Sphere):
            raise InvalidInput(
                f"traces must live on the globe or on a plane; got {space.description}"
            )
        self.space = self.transcript.space = space
        # Who goes on with another's transcript does not know its hidden radii.
        self.transcript.shares = not self.transcript.reports and can_share(noise)

    def report(self, place: Points | ArrayLike, time_s: float | None = None) -> Points:
        """Report the next place; raises `BudgetExceeded` when no further step can be paid."""
        x = self.checked(place)
        if len(x) != 1:
            raise InvalidInput(f"a session reports one place at a time; got {len(x)}")
        time_s = checked_times(None if time_s is None else [time_s], 1)[0]
        self._given += 1
        self._step(x[0], time_s)
        return self._points(self.transcript.reports[-1].place[None].copy())

    def to_json(self) -> dict[str, Any]:
        """All that was made public, for :meth:`PredictiveMechanism.resume` in another process.

        Keep it before a report leaves, so that a crash forgets no report.  A run of sparse looks
        that is open is not kept, since its threshold is secret: a resumed session opens a new
        one, and pays for it.
        """
        return written_transcript(self.transcript, self._given, reproducible=self.rng.reproducible)

    def checked(self, places: Points | ArrayLike) -> FloatArray:
        """The coordinates of places for which the promise holds; others are refused unseen.

        A refusal after the private test would tell its outcome for free.
        """
        x = checked_coordinates(places, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(x)
        return x

    def release(self, *, smooth: bool = False) -> TraceRelease:
        """All reports so far, with what they cost.

        `smooth`: as they look now that all are known, if a motion filter follows the trace.
        """
        reports = self.transcript.reports
        drawn = self._points(np.array([r.place for r in reports]).reshape(-1, 2))
        costs = [float(r.plan.cost(hard=r.hard)) for r in reports]
        follows = smooth and reports and self._follows
        places = self._points(self._smoothed()) if follows else drawn
        return TraceRelease(
            places,
            np.array([r.hard for r in reports], dtype=bool),
            np.array(costs, dtype=np.float64),
            self.transcript.spent,
            self.transcript.tests,
            self.mechanism.budget.total,
            max(self._given, len(reports)),
            drawn,
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
        noise = None if plan.noise is None and not plan.looks else self._family(plan)
        check_domain(noise, secret[None])
        hard = True
        place = secret
        if plan.looks or plan.noise is None:
            place = self._prediction(time_s)
            hard = plan.looks and not self._test(plan, secret, place)
        if hard:
            assert noise is not None
            place = self._noisy(noise, secret, plan)
        first = not self.transcript.reports
        self.transcript.append(Reported(place, time_s, hard, plan, first))

    def _noisy(self, noise: Mechanism, secret: FloatArray, plan: Plan) -> FloatArray:
        """A fresh report.  Where it fails, the failure tells the test's answer: that is paid."""
        try:
            if plan.shared is not None:
                return self._in_block(plan.shared, noise, secret)
            return np.array(noise.report(secret[None], rng=self.rng).coordinates[0])
        except Exception:
            if plan.looks:
                self.transcript.spent += plan.most
            raise

    def _in_block(self, shared: Shared, noise: Mechanism, secret: FloatArray) -> FloatArray:
        if shared.used == 0:
            self._block = SharedRadius(shared, noise, self.rng)
        assert self._block is not None
        return self._block.report(secret, shared.used)

    def _predict_only(self, time_s: float | None) -> None:
        self._check_clock(time_s)
        self.transcript.append(Reported(self._prediction(time_s), time_s, False, Plan()))

    def _prediction(self, time_s: float | None) -> FloatArray:
        guess = np.asarray(self.mechanism.predict(self.transcript, time_s), float).reshape(-1)
        if guess.shape != (2,) or not np.isfinite(guess).all():
            raise InvalidInput("a predictor must return two finite coordinates")
        return self._on_space(guess)

    def _on_space(self, places: FloatArray) -> FloatArray:
        """Places that a predictor may have carried beyond the degrees there are."""
        if isinstance(self.space, Sphere):
            lon = (places[..., 0] + 180.0) % 360.0 - 180.0
            return np.stack([lon, np.clip(places[..., 1], -90.0, 90.0)], axis=-1)
        return places

    @property
    def _follows(self) -> bool:
        """Whether a motion filter follows this trace, and its place is what is predicted."""
        return (
            self.mechanism.predict is by_motion
            and self.transcript.derived.get("cadence") is not None
        )

    def _smoothed(self) -> FloatArray:
        cadence: Cadence = self.transcript.derived["cadence"]
        return self._on_space(cadence.smoothed(self.transcript))

    def _test(self, plan: Plan, secret: FloatArray, guess: FloatArray) -> bool:
        if plan.guard is not None:
            if self._run is None or not plan.guard.opened:
                self._run = SparseRun(plan.guard, self.space, self.rng)
            return not self._run.fails(secret, guess)
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
