"""How a trace spends its privacy budget: fixed utility, and fixed rate.

Before each report a budget manager looks at the *public* transcript of what was
reported so far and plans the next step: the level of the private test and its
threshold, and the level of the noise should the test fail (Chatzikokolakis,
Palamidessi, Stronati, PETS 2014, section 4).  With

    c_N  the radius that holds planar Laplace noise of level 1 with probability delta,
    c_T  the number that holds |Laplace noise| of level 1 with probability delta,

noise of level e_N is within alpha = c_N / e_N of the truth with probability delta.  A
test of level e_T with threshold l = c_T / (gamma e_T) lets a prediction through that
is within l + c_T / e_T = (c_T / e_T)(1 + 1/gamma) with that probability; asking it to
be alpha / eta gives the ratio of the two levels,

    kappa = e_T / e_N = eta (c_T / c_N) (1 + 1/gamma).

A share PR of predictions that hold makes a step cost e_N (kappa + 1 - PR) on average,
so predicting pays where PR > kappa.  eta near 1 keeps predicted reports as accurate
as noisy ones and costs kappa > 0.6; the small eta that is the default here lets a few
predicted reports be worse and is what saves budget at equal *average* error.

Both managers keep ``total``: a step is planned only if all that it may cost still
fits, for every answer of the test.  Amounts are fractions, added without rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.calibration import probability
from whereish.units import SMALLEST_EPSILON, Epsilon, Length

__all__ = ["BudgetManager", "FixedRate", "FixedUtility", "Plan", "Reported", "Transcript"]

_PRIOR_TESTS = 10  # tests that the assumed prediction rate counts for


@dataclass(frozen=True)
class Plan:
    """What the next step may spend.

    `test` None: no test; `noise` None: the prediction is reported unseen, for free.
    """

    test: Epsilon | None = None
    threshold: Length | None = None
    noise: Epsilon | None = None

    def cost(self, *, hard: bool) -> Fraction:
        """Spent per metre: the test always, the noise in a hard step only."""
        test = Fraction(self.test.per_m) if self.test else Fraction(0)
        return test + (Fraction(self.noise.per_m) if hard and self.noise else Fraction(0))

    @property
    def most(self) -> Fraction:
        """The largest cost, whatever the test says."""
        return self.cost(hard=True)


@dataclass(frozen=True)
class Reported:
    """One public report: the place, when, and whether it carries fresh noise (hard)."""

    place: FloatArray
    time_s: float | None
    hard: bool
    plan: Plan


@dataclass
class Transcript:
    """All that was made public so far, in order; secrets never enter it."""

    reports: list[Reported] = field(default_factory=list, repr=False)
    spent: Fraction = Fraction(0)
    tests: int = 0
    passed: int = 0
    last_hard: Reported | None = field(default=None, repr=False)
    last_look: Reported | None = field(default=None, repr=False)

    def append(self, report: Reported) -> None:
        """Add a report and what it cost; a look is a step that used the secret."""
        self.reports.append(report)
        self.spent += report.plan.cost(hard=report.hard)
        if report.plan.test is not None:
            self.tests += 1
            self.passed += not report.hard
        if report.hard:
            self.last_hard = report
        if report.plan.most:
            self.last_look = report


@runtime_checkable
class BudgetManager(Protocol):
    """Plans each step from the transcript and the clock alone."""

    @property
    def total(self) -> Epsilon | None:
        """What no trace ever exceeds, per metre of d_inf; None for no limit."""

    def plan(self, transcript: Transcript, time_s: float | None) -> Plan | None:
        """The next step; None when the budget cannot pay for one."""


@dataclass(frozen=True)
class _Strategy:
    """What the two strategies share: the shape of a step, skipping, and the limit."""

    total: Epsilon | None
    confidence: float
    eta: float
    gamma: float
    top_speed: float | None

    def _check(self) -> None:
        if self.total is not None:
            object.__setattr__(self, "total", Epsilon.of(self.total))
        if not 0 < probability(self.confidence) < 1:
            raise InvalidInput(f"confidence must be between 0 and 1; got {self.confidence!r}")
        named = {"eta": self.eta, "gamma": self.gamma, "top_speed": self.top_speed}
        for name, value in named.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be a finite number > 0; got {value!r}")

    @property
    def noise_radius(self) -> float:
        """c_N: where the distribution function of Gamma(2) reaches the confidence."""
        from scipy.special import gammaincinv

        return float(gammaincinv(2.0, self.confidence))

    @property
    def test_radius(self) -> float:
        """c_T = -ln(1 - delta)."""
        return -math.log1p(-self.confidence)

    @property
    def kappa(self) -> float:
        """Cost of a test over cost of noise."""
        return self.eta * self.test_radius / self.noise_radius * (1 + 1 / self.gamma)

    def _step(self, noise: float) -> Plan:
        """The test and noise of level `noise` per metre."""
        test = self.kappa * noise
        threshold = self.test_radius / (self.gamma * test)
        return Plan(Epsilon(test), Length(threshold), Epsilon(noise))

    def _affordable(self, plan: Plan, transcript: Transcript) -> bool:
        return self.total is None or transcript.spent + plan.most <= Fraction(self.total.per_m)

    def _fresh(self, transcript: Transcript, time_s: float | None, threshold: float) -> bool:
        """Whether the last look is so recent that nobody can have gone far since.

        Far is half the threshold, at `top_speed` metres per second (a public bound).
        """
        last = transcript.last_look
        if self.top_speed is None or last is None or last.time_s is None or time_s is None:
            return False
        return (time_s - last.time_s) * self.top_speed <= threshold / 2


@dataclass(frozen=True)
class FixedUtility(_Strategy):
    """Noisy reports are within `accuracy` with probability `confidence`, while budget lasts.

    Parameters
    ----------
    accuracy
        alpha: the noise has level c_N / alpha in every hard step, in metres of the noise's own
        law.  In true metres the radius is ``noise(epsilon).quantile(confidence)``: up to 1%
        longer on the globe.
    total
        What the whole trace may spend, per metre; None for no limit.
    eta, gamma
        A prediction may be off by alpha / eta; the threshold is 1/gamma times the
        test's own noise.  (The paper's experiments take eta about 0.5, gamma 0.8.)
    top_speed
        Metres per second that nobody exceeds.  With it, and with times, steps so soon
        after the last look that the person is still near are predicted for free.  The
        times of reports are public in any case.

    Examples
    --------
    >>> import whereish as wh
    >>> budget = wh.FixedUtility("500 m", total="0.02/m")
    >>> trace = wh.PredictiveMechanism(budget).report([[2.35, 48.85]] * 10)
    >>> trace.epsilon_spent.per_m <= 0.02
    True
    """

    accuracy: Length

    def __init__(
        self,
        accuracy: Length | str,
        *,
        total: Epsilon | str | None = None,
        confidence: float = 0.9,
        eta: float = 0.1,
        gamma: float = 1.5,
        top_speed: float | None = None,
    ) -> None:
        _set(self, total, confidence, eta, gamma, top_speed)
        object.__setattr__(self, "accuracy", Length.positive(accuracy, name="accuracy"))

    def plan(self, transcript: Transcript, time_s: float | None) -> Plan | None:
        """Noise for the first report; then test and noise at the fixed levels."""
        step = self._step(self.noise_radius / self.accuracy.m)
        if transcript.last_hard is None:
            step = Plan(noise=step.noise)
        elif step.threshold and self._fresh(transcript, time_s, step.threshold.m):
            return Plan()
        return step if self._affordable(step, transcript) else None

    def most(self, steps: int) -> Fraction:
        """What so many steps cost at their worst, per metre: every test fails."""
        step = self._step(self.noise_radius / self.accuracy.m)
        return step.most * steps - step.cost(hard=False)


@dataclass(frozen=True)
class FixedRate(_Strategy):
    """The budget lasts for `steps` reports; what predictions save buys accuracy.

    The rate is what is left over the steps that are left.  With the share PR of
    predictions that held so far, a step of noise level rate / (1 - PR + kappa) costs
    the rate on average.  PR starts from `predicted`, which counts as ten tests.

    >>> import whereish as wh
    >>> budget = wh.FixedRate("0.05/m", steps=10)
    >>> trace = wh.PredictiveMechanism(budget).report([[2.35, 48.85]] * 10)
    >>> len(trace), trace.epsilon_spent.per_m <= 0.05
    (10, True)
    """

    steps: int
    predicted: float

    def __init__(
        self,
        total: Epsilon | str,
        steps: int,
        *,
        predicted: float = 0.7,
        confidence: float = 0.9,
        eta: float = 0.1,
        gamma: float = 1.5,
        top_speed: float | None = None,
    ) -> None:
        _set(self, total, confidence, eta, gamma, top_speed)
        if not isinstance(steps, int) or steps < 1:
            raise InvalidInput(f"steps must be a whole number > 0; got {steps!r}")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "predicted", probability(predicted))

    def plan(self, transcript: Transcript, time_s: float | None) -> Plan | None:
        """Spend what is left evenly over the steps that are left."""
        assert self.total is not None
        ahead = self.steps - len(transcript.reports)
        left = Fraction(self.total.per_m) - transcript.spent
        if ahead < 1 or left <= 0:
            return None
        last = transcript.last_hard
        if last is not None and last.plan.noise is not None:
            typical = self.noise_radius / last.plan.noise.per_m
            if self._fresh(transcript, time_s, typical):
                return Plan()
        rate = float(left) / ahead
        share = (transcript.passed + _PRIOR_TESTS * self.predicted) / (
            transcript.tests + _PRIOR_TESTS
        )
        first = last is None
        # One step takes at most half of what is left, so that later ones get theirs.
        reserve = 1 - 2.0**-40 if ahead == 1 else 0.5
        most = reserve * float(left) / (1 if first else 1 + self.kappa)
        noise = min(rate / (1 - share + self.kappa), most)
        if noise * min(1.0, self.kappa) < SMALLEST_EPSILON:
            return None
        step = Plan(noise=Epsilon(noise)) if first else self._step(noise)
        return step if self._affordable(step, transcript) else None


def _set(
    strategy: _Strategy,
    total: Epsilon | str | None,
    confidence: float,
    eta: float,
    gamma: float,
    top_speed: float | None,
) -> None:
    object.__setattr__(strategy, "total", None if total is None else Epsilon.of(total))
    object.__setattr__(strategy, "confidence", confidence)
    object.__setattr__(strategy, "eta", eta)
    object.__setattr__(strategy, "gamma", gamma)
    object.__setattr__(strategy, "top_speed", top_speed)
    strategy._check()
