"""Users' counts estimated from noisy ones, by what all users do: post-processing, free of budget.

Of each user and place y = x + N is seen, N the rounded Laplace noise.  Most x are zero.  The model
is x = 0 with probability 1 - q_c at place c, and else a count from one law pi(x), x >= 1, for all
places; q and pi are fitted to all noisy counts by expectation maximisation (Kiefer and Wolfowitz's
nonparametric maximum likelihood, as Robbins's empirical Bayes uses it).  The estimate of x is
its posterior mean given y.  Where noise drowns the counts it is q_c E[x | x >= 1], what all users
do; where it does not, the user's own count.

Whether these estimates or the plain noisy counts are nearer to the truth, in the earth mover's
distance, is judged by running all of it once more where the truth is known (a parametric bootstrap:
Efron, 1979): counts drawn from the posterior are the truth, get noise of their own, and the model
is fitted anew to those (:func:`better_estimate`).  So what fitting q and pi to few users costs is
part of the judgement; by the same fit, estimates look better than they are.  And a model fitted to
nothing but noise finds something in it, which it then finds again: so estimates are taken only
where the noisy counts show that there is something (:func:`_shows_something`).  All this is a
function of the noisy counts and of public choices, so no budget is spent on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.transport import transport_cost
from whereish.randomness import Randomness

__all__ = ["CountModel", "better_estimate"]

_LARGEST = 2048
"""Counts above are taken as they are seen: noise of this size is of no use at all."""
_STEPS = 60
_JUDGED = 64
_ROUNDS = 3
_RISK = 1e-3
"""Of taking noise for something, in each of two tests."""
_MARGIN = 0.95
_SPREAD = 0.75
"""Estimates must have at most 0.95 - 0.75 / sqrt(n) of the plain counts' error, as judged: for what
the model itself may miss, and for how the errors of n users differ in one release (by about 0.4 of
naive's each, so two standard errors); and be better by two standard errors of those judged."""


@dataclass(frozen=True, eq=False)
class CountModel:
    """The fitted model: q for each place, pi on 1..n, and the likelihood of y - low given x."""

    often: FloatArray
    law: FloatArray
    likelihood: FloatArray
    zero: FloatArray
    low: int

    @classmethod
    def fitted(cls, noisy: IntArray, scale: float) -> CountModel:
        """Maximum likelihood from counts plus Lap(scale), of users (rows) at places."""
        seen = np.clip(noisy, -_LARGEST, _LARGEST)
        low, high = int(seen.min()), max(int(seen.max()), 1)
        values = np.arange(low, high + 1)
        counts = np.arange(1, high + 1)
        likelihood = _rounded_laplace(values[:, None] - counts, scale)
        zero = _rounded_laplace(values, scale)
        places = noisy.shape[1]
        flat = (seen - low) + values.size * np.arange(places)
        table = np.bincount(flat.ravel(), minlength=values.size * places)
        table = table.reshape(places, values.size).astype(np.float64)
        often = np.full(places, 0.1)
        law = 1.0 / counts
        law /= law.sum()
        for _ in range(_STEPS):
            some = likelihood @ law
            own = often[:, None] * some
            share = own / (own + (1 - often[:, None]) * zero)
            often = (table * share).sum(axis=1) / table.sum(axis=1)
            law *= likelihood.T @ ((table * share).sum(axis=0) / some)
            law /= law.sum()
        return cls(often, law, likelihood, zero, low)

    def _visited(self, index: IntArray) -> FloatArray:
        """P(x >= 1 | y) of each entry."""
        some = (self.likelihood @ self.law)[index]
        own = self.often * some
        return np.asarray(own / (own + (1 - self.often) * self.zero[index]))

    def means(self, noisy: IntArray) -> FloatArray:
        """Posterior means of counts seen as `noisy`."""
        index = np.clip(noisy, self.low, _LARGEST) - self.low
        counts = np.arange(1, self.law.size + 1)
        each = (self.likelihood @ (self.law * counts)) / (self.likelihood @ self.law)
        means = self._visited(index) * each[index]
        return np.asarray(np.where(noisy > _LARGEST, noisy, means))

    def drawn(self, noisy: IntArray, generator: np.random.Generator) -> IntArray:
        """Counts drawn from the posterior: for judging estimates, never for release."""
        index = np.clip(noisy, self.low, _LARGEST) - self.low
        visited = generator.random(noisy.shape) < self._visited(index)
        seen = index[visited]
        below = np.cumsum(self.likelihood * self.law, axis=1)
        at = generator.random(seen.size) * below[seen, -1]
        counts = np.empty(seen.size, np.int64)
        for value in np.unique(seen):
            here = seen == value
            counts[here] = 1 + np.searchsorted(below[value], at[here])
        out = np.zeros(noisy.shape, np.int64)
        out[visited] = np.minimum(counts, self.law.size)
        return out


def better_estimate(
    noisy: IntArray, scale: float, level: PlaceLevel, rng: Randomness
) -> tuple[IntArray, bool]:
    """Whole counts >= 0 of users at places, and whether they are estimates or plain noisy ones."""
    plain = np.maximum(noisy, 0)
    if not _shows_something(noisy, scale):
        return plain, False
    model = CountModel.fitted(noisy, scale)
    generator = np.random.default_rng(int(rng.words(1)[0]))
    errors = np.vstack([_judged(model, noisy, scale, level, generator) for _ in range(_ROUNDS)])
    if _clearly_less(errors[:, 0], errors[:, 1], len(noisy)):
        return _estimated(model, noisy), True
    return plain, False


def _shows_something(noisy: IntArray, scale: float) -> bool:
    """Whether noisy counts differ from noise alone: places in their sums, or single counts.

    Rounded Laplace noise is n with probability sinh(1 / (2 scale)) t^|n|, t = e^{-1/scale}, n != 0,
    so its moments v and m of order 2 and 4 are sums of powers.  Were all places alike, sums of n
    users at C places would vary by n v: a chi-square of C - 1 degrees.  Were there no counts, the
    mean square of all n C would be v, up to sqrt((m - v^2) / (n C)).
    """
    from scipy.special import chdtri, ndtri

    t = np.exp(-1 / scale)
    each = np.exp(-0.5 / scale) - np.exp(-1.5 / scale)  # twice the sinh, times t
    square = each * (1 + t) / (1 - t) ** 3
    fourth = each * (1 + 11 * t + 11 * t**2 + t**3) / (1 - t) ** 5
    sums = noisy.sum(axis=0).astype(np.float64)
    apart = ((sums - sums.mean()) ** 2).sum()
    excess = (noisy.astype(np.float64) ** 2).mean() - square
    return bool(
        apart > chdtri(max(sums.size - 1, 1), _RISK) * len(noisy) * square
        or excess > -ndtri(_RISK) * np.sqrt((fourth - square**2) / noisy.size)
    )


def _judged(
    model: CountModel,
    noisy: IntArray,
    scale: float,
    level: PlaceLevel,
    generator: np.random.Generator,
) -> FloatArray:
    """Errors of estimates and of plain counts, for some users drawn from the model."""
    truths = model.drawn(noisy, generator)
    again = truths + np.rint(generator.laplace(0, scale, truths.shape)).astype(np.int64)
    ways = _estimated(CountModel.fitted(again, scale), again), np.maximum(again, 0)
    some = np.unique(np.linspace(0, len(noisy) - 1, _JUDGED).astype(np.intp))
    return np.array(
        [
            [_error(truths[user], released[user], level) for released in ways]
            for user in some
            if truths[user].any()
        ]
    ).reshape(-1, 2)


def _estimated(model: CountModel, noisy: IntArray) -> IntArray:
    return _whole(model.means(noisy))


def _clearly_less(ours: FloatArray, theirs: FloatArray, users: int) -> bool:
    """Whether the first errors are below the second by more than chance, in releases of so many."""
    if ours.size < 2:
        return False
    gain = theirs - ours
    sure = gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(gain.size)
    return bool(sure and ours.sum() <= (_MARGIN - _SPREAD / np.sqrt(users)) * theirs.sum())


def _error(truth: IntArray, released: IntArray, level: PlaceLevel) -> float:
    here, there = np.flatnonzero(truth), np.flatnonzero(released)
    if not there.size:
        return float(level.sensitivity)
    costs = level.distances[np.ix_(here, there)].astype(np.float64)
    return transport_cost(costs, truth[here], released[there])


def _rounded_laplace(at: IntArray, scale: float) -> FloatArray:
    """P(N = n) of Laplace noise rounded to whole numbers; never zero."""
    away = np.abs(at) / scale
    half = 0.5 / scale
    beyond = np.exp(-away) * np.sinh(half)
    return np.asarray(np.maximum(np.where(at == 0, -np.expm1(-half), beyond), 1e-300))


def _whole(estimate: FloatArray) -> IntArray:
    """Rows of whole numbers nearest in proportion, each with the rounded total of its row."""
    sums = estimate.sum(axis=1)
    total = np.maximum(np.rint(sums), 1.0)
    wanted = estimate * (total / np.maximum(sums, 1e-300))[:, None]
    floor = np.floor(wanted)
    missing = (total - floor.sum(axis=1)).astype(np.int64)
    order = np.argsort(floor - wanted, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(floor + (rank < missing[:, None]), dtype=np.int64)
