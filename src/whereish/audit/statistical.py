"""Statistical audit: a lower confidence bound on the epsilon of any sampler.

A sampler that keeps eps * d has P(S|x) <= e^{eps d(x,y)} P(S|y) for every event S.
The audit looks in one part of the reports for secrets x, y and an event S that tell most
(:mod:`whereish.audit.race`).  What it has chosen is counted on the other, larger part, so
nothing of the search enters the bound.  The bound holds whatever the sampler claims and
with whatever code: only its output is used.

The test.  Each of 2n reports is of x or of y by a fair coin.  Given that a report falls
into S, it is of x with probability P(S|x) / (P(S|x) + P(S|y)), so of N hits the a that
come from x are Binomial(N, p) with ln(p / (1-p)) = ln P(S|x) - ln P(S|y), exactly.  The
lower bound of Clopper and Pearson on p, through the logarithm of its odds, is the bound on
the level.  One binomial is sharper than bounds on P(S|x) and P(S|y) with half of the
risk each: for e^2 as many hits of x as of y by a quarter.

Its power.  The hits also say which excess would have been seen: with N hits the audit
refutes a claim with probability `power` if the event's level is at least some L.  Were the
noise of the sampler (1 + delta) times smaller, the event's level would be (1 + delta) times
the one found; the least delta that takes it to L is `smallest_excess`.  It speaks of
samplers of this shape: a fault elsewhere (other places, other events) may be larger
and stay unseen, so a bound below the claim proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.audit.events import Reports
from whereish.audit.pairs import Pair, pairs_among, pairs_around
from whereish.audit.race import BATCH, Draw, race
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Euclidean
from whereish.randomness import Randomness, secure
from whereish.results import JsonResult
from whereish.units import Epsilon

__all__ = ["StatisticalAudit", "statistical"]

Sampler: TypeAlias = Callable[[FloatArray], ArrayLike]

POWER = 0.9
"""The probability with which `smallest_excess` would have been seen."""

_LEARNING_SHARE = 5
_MOST_LEARNING = 2**24


@dataclass(frozen=True)
class StatisticalAudit(JsonResult):
    """With this `confidence` an event tells the two secrets apart by at least `level_lower` nats.

    `epsilon_lower` is that per unit of distance; a promise of eps * d is refuted
    when it exceeds eps.  For a metric that carries eps already it is a factor, and the
    promise is refuted above 1.

    Parameters
    ----------
    claim
        The epsilon (nats per unit of distance) that was tested; None if none was given.
    hits
        How many reports of the first and of the other secret fell into the event.
    smallest_excess
        The least relative excess that would have been refuted with probability 0.9: by a
        sampler like this one with so much less noise.  Infinite if none would; None
        without a claim.
    """

    _NOT_TOLD = ("secrets",)

    level_lower: float
    distance: float
    confidence: float
    event: str
    samples: int
    claim: float | None = None
    hits: tuple[int, int] = (0, 0)
    smallest_excess: float | None = None
    secrets: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon, in nats per unit of distance."""
        return self.level_lower / self.distance

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted; never without one."""
        return self.claim is not None and self.epsilon_lower > self.claim

    def __str__(self) -> str:
        found = (
            f"level at least {self.epsilon_lower:.6g} per unit of distance"
            f" (confidence {self.confidence:g}, {self.samples:,} samples a secret;"
            f" event: {self.event})"
        )
        if self.claim is None or self.smallest_excess is None:
            return found
        verdict = f"the claim of {self.claim:.6g} is {'' if self.refuted else 'not '}refuted"
        power = (
            f"an excess below {self.smallest_excess:.2%} would not be seen"
            if math.isfinite(self.smallest_excess)
            else "no excess would be seen with so few samples"
        )
        return f"{verdict}: {found}; {power} with probability {POWER:g}"


def statistical(
    sampler: Mechanism | Sampler,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    metric: Metric | None = None,
    distance: float | None = None,
    epsilon: float | Epsilon | None = None,
    at: ArrayLike | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.9999,
    rng: Randomness | None = None,
) -> StatisticalAudit:
    """Bound the epsilon of a black box from below.

    Parameters
    ----------
    sampler
        A mechanism, or any function from an (n, d) array of secrets to n reports.
    x, y
        The two secrets to tell apart.  Without them the audit searches.
    metric, distance
        What the log-likelihood ratio is divided by: a metric, or the distance of x and y
        itself.  A mechanism's own metric is the default.
    epsilon
        The claim, per unit of the metric: 1 unless given, for a metric that carries it.
    at
        Where to search: one place, around which secrets in all directions and at several
        distances are tried, or several places, of which all pairs are.
    samples
        Reports drawn for each secret, on average; at most a fifth of them to choose the
        event.  Secrets that a search drops are drawn less often.
    """
    if not 0.5 < confidence < 1:
        raise InvalidInput(f"confidence must be between 0.5 and 1; got {confidence!r}")
    if samples < 1000:
        raise InvalidInput(f"a statistical audit needs at least 1000 samples; got {samples}")
    if metric is None and isinstance(sampler, Mechanism):
        metric = sampler.guarantee.metric
    claim = _claim(epsilon, promised=metric is not None)
    measure = metric or Euclidean()
    pairs = _pairs(x, y, at, measure, distance, claim)
    draw = _drawing(sampler, measure, rng)
    learning = min(samples // _LEARNING_SHARE, _MOST_LEARNING)
    testing, risk = samples - learning, 1 - confidence
    pair, event = race(pairs, measure, draw, learning, testing, risk)
    coin = np.random.Generator(np.random.PCG64(secure(rng).words(4).tolist()))
    of_first = int(coin.binomial(2 * testing, 0.5))
    first, other = (
        sum(int(np.count_nonzero(event.holds(z))) for z in draw(secret, count))
        for secret, count in ((pair.x, of_first), (pair.y, 2 * testing - of_first))
    )
    return StatisticalAudit(
        level_lower(first, other, risk),
        pair.distance,
        confidence,
        event.name,
        samples,
        claim,
        (first, other),
        None if claim is None else smallest_excess(first, other, claim * pair.distance, risk),
        (pair.x, pair.y),
    )


def level_lower(first: int, other: int, risk: float) -> float:
    """Lower bound on ln P(S|x) - ln P(S|y), at most `risk` of being too high.

    Of first + other hits `other` are of y with probability 1 - p; its upper bound q by
    Clopper and Pearson gives ln((1-q)/q).
    """
    from scipy.stats import beta

    if first == 0:
        return 0.0
    q = float(beta.isf(risk, other + 1, first))
    return max(math.log1p(-q) - math.log(q), 0.0) if q < 1 else 0.0


def smallest_excess(first: int, other: int, claimed: float, risk: float) -> float:
    """The least delta that is seen with probability 0.9 at a level 1 + delta times as high.

    With N hits a claim of L nats is refuted by k of x or more, for the least k with
    P(Binomial(N, e^L/(1+e^L)) >= k) <= risk.
    """
    from scipy.stats import beta, binom

    hits = first + other
    needed = int(binom.isf(risk, hits, 1 / (1 + math.exp(-claimed)))) + 1 if hits else 1
    found = math.log((first + 0.5) / (other + 0.5))
    if needed > hits or found <= 0:
        return math.inf
    miss = float(beta.ppf(1 - POWER, hits - needed + 1, needed))
    return (math.log1p(-miss) - math.log(miss)) / min(found, claimed) - 1


def _claim(epsilon: float | Epsilon | None, *, promised: bool) -> float | None:
    if epsilon is None:
        return 1.0 if promised else None
    value = epsilon.per_m if isinstance(epsilon, Epsilon) else float(epsilon)
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"epsilon must be a finite number > 0; got {epsilon!r}")
    return value


def _pairs(
    x: ArrayLike | None,
    y: ArrayLike | None,
    at: ArrayLike | None,
    metric: Metric,
    distance: float | None,
    claim: float | None,
) -> list[Pair]:
    """The pair that is given, or those to search."""
    if x is not None and y is not None and at is None:
        here, there = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
        if distance is None:
            distance = float(metric(here[None], there[None]).ravel()[0])
        if not (math.isfinite(distance) and distance > 0):
            raise InvalidInput("the two secrets must be at a finite distance greater than zero")
        return [Pair(here, there, distance)]
    if at is None or x is not None or y is not None:
        raise InvalidInput("an audit needs two secrets x and y, or a place `at` which to search")
    if distance is not None:
        raise InvalidInput("an audit that searches needs a metric, not one distance")
    if claim is None:
        raise InvalidInput("an audit that searches needs the claim: epsilon, or a metric with it")
    places = np.atleast_1d(np.asarray(at, float))
    if places.ndim == 2 and len(places) > 1:
        return pairs_among(places, metric)
    return pairs_around(places.reshape(-1), metric, claim)


def _drawing(sampler: Mechanism | Sampler, metric: Metric, rng: Randomness | None) -> Draw:
    """Reports of one secret, batch by batch."""

    def draw(secret: FloatArray, count: int) -> Iterator[Reports]:
        for low in range(0, count, BATCH):
            secrets = np.tile(secret, (min(BATCH, count - low), 1))
            reports = (
                sampler.report(secrets, rng=rng).coordinates
                if isinstance(sampler, Mechanism)
                else np.asarray(sampler(secrets), float)
            )
            reports = reports.reshape(len(secrets), -1)
            if not np.isfinite(reports).all():
                raise InvalidInput("the sampler must return finite numbers")
            yield Reports(reports, metric)

    return draw
