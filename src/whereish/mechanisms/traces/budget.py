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

That is ``tests="every"`` of :class:`FixedUtility`.  Its default, ``tests="sparse"``, asks seldom:
fresh noise comes when the public estimate has become too uncertain
(:mod:`~whereish.mechanisms.traces.cadence`), and a look after a pause pays only if it fails.

Both managers keep ``total``: a step is planned only if all that it may cost still
fits, for every answer of the test.  Amounts are fractions, added without rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

from whereish.errors import InvalidInput
from whereish.mechanisms.calibration import probability
from whereish.mechanisms.traces.cadence import Cadence, guarded, shared_noise
from whereish.mechanisms.traces.shared_radius import ALONE, SIZES, sharing_pays
from whereish.mechanisms.traces.transcript import Plan, Transcript
from whereish.units import SMALLEST_EPSILON, Epsilon, Length

__all__ = ["BudgetManager", "FixedRate", "FixedUtility"]

_PRIOR_TESTS = 10  # tests that the assumed prediction rate counts for


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
        alpha: planar Laplace noise has level c_N / alpha.  Noise that several reports share
        (:mod:`~whereish.mechanisms.traces.shared_radius`, where tests are sparse) has a higher
        level, at which it is within alpha as surely, and costs less in all.
    total
        What the whole trace may spend, per metre; None for no limit.
    tests
        "sparse": fresh noise where the public estimate has become too uncertain, a private
        look after a pause.  "every": the paper's private test at every step, which `eta`,
        `gamma` and `top_speed` shape; it is the default where one of them is given.
    eta, gamma
        A prediction may be off by alpha / eta (0.1); the threshold is 1/gamma (1.5) times the
        test's own noise.  (The paper's experiments take eta about 0.5, gamma 0.8.)
    top_speed
        Metres per second that nobody exceeds.  With it, and with times, steps so soon
        after the last look that the person is still near are predicted for free.  The
        times of reports are public in any case.
    blocks
        Whether reports share noise: less is spent on the trace as a whole, and one place
        alone is told by up to 1.78 times as much as without, at equal mean error.

    Raises
    ------
    InvalidInput
        If `tests` is neither, or "sparse" with what shapes the paper's tests, or `blocks` is
        neither True nor False.

    Examples
    --------
    >>> import whereish as wh
    >>> budget = wh.FixedUtility("500 m", total="0.02/m")
    >>> trace = wh.PredictiveMechanism(budget).report([[2.35, 48.85]] * 10)
    >>> trace.epsilon_spent.per_m <= 0.02
    True
    """

    accuracy: Length
    tests: Literal["sparse", "every"]
    blocks: bool

    def __init__(
        self,
        accuracy: Length | str,
        *,
        total: Epsilon | str | None = None,
        confidence: float = 0.9,
        eta: float | None = None,
        gamma: float | None = None,
        top_speed: float | None = None,
        tests: Literal["sparse", "every"] | None = None,
        blocks: bool = True,
    ) -> None:
        shaped = not (eta is None and gamma is None and top_speed is None)
        chosen = tests if tests is not None else "every" if shaped else "sparse"
        if chosen not in ("sparse", "every"):
            raise InvalidInput(f"tests must be 'sparse' or 'every'; got {tests!r}")
        if chosen == "sparse" and shaped:
            raise InvalidInput(
                "eta, gamma and top_speed shape the test of every step: leave them out,"
                " or take tests='every'"
            )
        if not isinstance(blocks, bool):
            raise InvalidInput(f"blocks must be True or False; got {blocks!r}")
        eta, gamma = (0.1 if eta is None else eta), (1.5 if gamma is None else gamma)
        _set(self, total, confidence, eta, gamma, top_speed)
        object.__setattr__(self, "accuracy", Length.positive(accuracy, name="accuracy"))
        object.__setattr__(self, "tests", chosen)
        object.__setattr__(self, "blocks", blocks)

    @property
    def level(self) -> float:
        """The level of planar Laplace noise of this accuracy, per metre."""
        return self.noise_radius / self.accuracy.m

    def plan(self, transcript: Transcript, time_s: float | None) -> Plan | None:
        """Noise for the first report; then test and noise at the fixed levels."""
        if self.tests == "sparse":
            cadence = Cadence.of(transcript, self.level, self.confidence, blocks=self.blocks)
            planned = cadence.plan(transcript, time_s)
            return planned if self._affordable(planned, transcript) else None
        step = self._step(self.level)
        if transcript.last_hard is None:
            step = Plan(noise=step.noise)
        elif step.threshold and self._fresh(transcript, time_s, step.threshold.m):
            return Plan()
        return step if self._affordable(step, transcript) else None

    def most(self, steps: int) -> Fraction:
        """What so many steps cost at their worst, per metre: every test fails.

        Where noise is drawn in blocks, too, and wherever a session is resumed, which draws alone
        from there on.
        """
        if self.tests == "sparse":
            level = Fraction(self.level)
            looks = (steps - 1) * (guarded(self.level).most - level)
            # Later blocks save more than their beginning costs beyond noise of its own.
            first = range(min(steps, ALONE + sum(SIZES) + SIZES[-1]) + 1)
            more = max(self.blocks_cost(drawn) - drawn * level for drawn in first)
            return looks + steps * level + more
        step = self._step(self.level)
        return step.most * steps - step.cost(hard=False)

    def blocks_cost(self, reports: int) -> Fraction:
        """What the noise of so many reports costs where they share hidden radii."""
        spent = min(reports, ALONE) * Fraction(self.level)
        left, block = reports - ALONE, 0
        if not (self.blocks and sharing_pays(self.confidence)):
            return spent + max(left, 0) * Fraction(self.level)
        while left > 0:
            shared = shared_noise(self.level, block, self.confidence)
            each, together = Fraction(shared.each.per_m), shared.ratio * shared.reports
            spent += min(Fraction(left), together) * each
            left, block = left - shared.reports, block + 1
        return spent


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
