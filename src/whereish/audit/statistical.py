"""Statistical audit: a lower confidence bound on the epsilon of any sampler.

A sampler that keeps eps * d has P(S|x) <= e^{eps d(x,y)} P(S|y) for every event S.
The audit draws reports of two secrets x and y, looks in one half of them for an
event S that tells x from y, and bounds P(S|x) from below and P(S|y) from above on
the other half (Clopper and Pearson, exact).  The logarithm of their quotient is a
lower bound on the level that the sampler really has, whatever it claims, and with
whatever code: only its output is used.

Events that are tried: more of the distance to y than to x (what tells the secrets of
a metric mechanism apart), unions of boxes, and single outputs that come again and
again (a tool that returns the true place now and then).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.privacy.metric import Euclidean, Metric
from whereish.randomness import Randomness

__all__ = ["StatisticalAudit", "statistical"]

Sampler: TypeAlias = Callable[[FloatArray], ArrayLike]
_Event: TypeAlias = Callable[[FloatArray], NDArray[np.bool_]]

_BOXES = 24
_LARGEST_DRAW = 1_000_000


@dataclass(frozen=True)
class StatisticalAudit:
    """With this `confidence` the sampler's level between the two secrets is at least `level_lower`.

    `epsilon_lower` is the level per unit of distance; a promise of eps * d is refuted
    when it exceeds eps.  For a metric that carries eps already it is a factor, and the
    promise is refuted above 1.
    """

    level_lower: float
    distance: float
    confidence: float
    event: str
    samples: int

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on the level per unit of distance."""
        return self.level_lower / self.distance


def statistical(
    sampler: Mechanism | Sampler,
    x: ArrayLike,
    y: ArrayLike,
    *,
    metric: Metric | None = None,
    distance: float | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.9999,
    rng: Randomness | None = None,
) -> StatisticalAudit:
    """Bound the privacy level of a black box from below.

    Parameters
    ----------
    sampler
        A mechanism, or any function from an (n, d) array of secrets to n reports.
    x, y
        The two secrets to tell apart.
    metric, distance
        What the level is divided by: a metric, or the distance of x and y itself.  A
        mechanism's own metric is the default.
    samples
        Reports drawn for each secret.
    """
    if not 0.5 < confidence < 1:
        raise InvalidInput(f"confidence must be between 0.5 and 1; got {confidence!r}")
    if samples < 1000:
        raise InvalidInput(f"a statistical audit needs at least 1000 samples; got {samples}")
    here, there = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
    if metric is None and isinstance(sampler, Mechanism):
        metric = sampler.guarantee.metric
    if distance is None:
        distance = float((metric or Euclidean())(here[None], there[None])[0])
    if not (np.isfinite(distance) and distance > 0):
        raise InvalidInput("the two secrets must be at a finite distance greater than zero")
    draw = _drawing(sampler, rng)
    learn, test = ((draw(here, samples // 2), draw(there, samples // 2)) for _ in range(2))
    apart = _apart(metric or Euclidean(), here, there)
    risk = 1 - confidence
    tries = [
        (_level(event, *pair, risk), name, event, backwards)
        for backwards in (False, True)
        for pair in [learn[::-1] if backwards else learn]
        for name, event in _events(*pair, (lambda z: -apart(z)) if backwards else apart, risk)
    ]
    _, name, event, backwards = max(tries, key=lambda candidate: candidate[0])
    level = _level(event, *(test[::-1] if backwards else test), risk)
    return StatisticalAudit(level, distance, confidence, name, samples)


def _drawing(
    sampler: Mechanism | Sampler, rng: Randomness | None
) -> Callable[[FloatArray, int], FloatArray]:
    def draw(secret: FloatArray, count: int) -> FloatArray:
        parts = []
        for low in range(0, count, _LARGEST_DRAW):
            secrets = np.tile(secret, (min(_LARGEST_DRAW, count - low), 1))
            reports = (
                sampler.report(secrets, rng=rng).coordinates
                if isinstance(sampler, Mechanism)
                else np.asarray(sampler(secrets), float)
            )
            parts.append(reports.reshape(len(secrets), -1))
        together = np.concatenate(parts)
        if not np.isfinite(together).all():
            raise InvalidInput("the sampler must return finite numbers")
        return together

    return draw


def _apart(metric: Metric, x: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """How much farther a report is from y than from x."""
    return lambda z: metric(z, y[None]) - metric(z, x[None])


def _level(event: _Event, x: FloatArray, y: FloatArray, risk: float) -> float:
    """Lower bound on ln P(S|x) - ln P(S|y), at most `risk` of being too high."""
    return float(_levels(event(x).sum(), event(y).sum(), len(x), len(y), risk))


def _levels(hits_x: ArrayLike, hits_y: ArrayLike, n_x: int, n_y: int, risk: float) -> FloatArray:
    from scipy.stats import beta

    a, b = np.asarray(hits_x), np.asarray(hits_y)
    least = np.where(a > 0, beta.ppf(risk / 2, np.maximum(a, 1), n_x - a + 1), 0.0)
    most = np.where(b < n_y, beta.isf(risk / 2, b + 1, np.maximum(n_y - b, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(least) - np.log(most), 0.0))


def _events(
    x: FloatArray, y: FloatArray, apart: Callable[[FloatArray], FloatArray], risk: float
) -> list[tuple[str, _Event]]:
    """Events that seem likelier under the first sample than under the second."""
    return [
        _farther(apart, x, y, risk),
        _boxes(x, y, risk),
        *_repeated(x),
    ]


def _farther(
    apart: Callable[[FloatArray], FloatArray], x: FloatArray, y: FloatArray, risk: float
) -> tuple[str, _Event]:
    """Reports that are at least some amount farther from the other secret."""
    score_x, score_y = np.sort(apart(x)), np.sort(apart(y))
    limits = np.unique(np.quantile(score_x, np.linspace(0, 1, 400, endpoint=False)))
    hits_x = len(score_x) - np.searchsorted(score_x, limits)
    hits_y = len(score_y) - np.searchsorted(score_y, limits)
    best = limits[int(np.argmax(_levels(hits_x, hits_y, len(x), len(y), risk)))]
    return f"at least {best:.4g} farther from the other secret", lambda z: apart(z) >= best


def _boxes(x: FloatArray, y: FloatArray, risk: float) -> tuple[str, _Event]:
    """The union of those boxes of a grid that the first secret favours most."""
    cuts = [
        np.unique(np.quantile(axis, np.linspace(0, 1, _BOXES + 1)[1:-1]))
        for axis in np.concatenate([x, y]).T
    ]

    def box(z: FloatArray) -> NDArray[np.intp]:
        index = np.zeros(len(z), np.intp)
        for axis, cut in zip(z.T, cuts, strict=True):
            index = index * (len(cut) + 1) + np.searchsorted(cut, axis, side="right")
        return index

    size = int(np.prod([len(cut) + 1 for cut in cuts]))
    counts_x, counts_y = (np.bincount(box(z), minlength=size) for z in (x, y))
    order = np.argsort((counts_x + 0.5) / (counts_y + 0.5))[::-1]
    levels = _levels(np.cumsum(counts_x[order]), np.cumsum(counts_y[order]), len(x), len(y), risk)
    chosen = np.zeros(size, bool)
    chosen[order[: int(np.argmax(levels)) + 1]] = True
    return f"{int(chosen.sum())} of {size} boxes", lambda z: chosen[box(z)]


def _repeated(x: FloatArray) -> list[tuple[str, _Event]]:
    """The output that comes most often, if any comes often."""
    values, counts = np.unique(x[:100_000], axis=0, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] < 10:
        return []
    atom = values[most]
    return [("one repeated output", lambda z: (z == atom).all(axis=1))]
