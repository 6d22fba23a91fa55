"""How little a live trace can cost at equal mean error: what is proven, and an oracle.

A rival holds a planar Laplace report until the next one.  Whoever reports live may use all earlier
reports, and chooses cadence and level.  How much is there to win?

**Somebody who wanders** (Brownian, variance q a second on each axis).  Per report of level eps and
time T between two, everything depends on u = q T eps^2 alone: the mean error is f(u) / eps, and at
a given mean error the budget a second is as f(u)^3 / u.  :func:`wanderer` computes the least over
u for holding and for the filter below, which knows q.

*Whatever the mechanism*: a step on its own place of level eps keeps |ln p(r|x) - ln p(r|x')| <=
eps |x - x'|, so its score has norm at most eps: the trace of its Fisher information about x is at
most eps^2, whatever the mechanism; planar Laplace noise has just that.  With J the information on
an axis before a report, van Trees's inequality (1968; recursively, Tichavsky, Muravchik, Nehorai,
IEEE TSP 1998) gives 1 / (J + eps^2 / 2) <= mean square error of any estimator on an axis, where
times and levels are foreknown and both axes told alike; between reports 1 / J grows by q T. That
is a Kalman filter with noise of variance 2 / eps^2 where planar Laplace noise has 3.  Against
holding, in the root mean square, a Kalman filter costs 0.88
(:mod:`whereish.mechanisms.traces.cadence`); budgets are as the root of the variance at level 1, so
that no such steps cost less than 0.88 sqrt(2/3) = 0.72 of the best hold
(:func:`least_in_the_mean_square`); a linear filter on Laplace reports has 0.88.

**Somebody who is somewhere else at every point**: earlier reports tell nothing of the next of n
places, all positions are alike.  *Steps on their own place*, of levels that add up to s: averaged
over all shifts, a step is noise, and no noise of level e has a mean error below 2 / e, that of
planar Laplace noise (ElSalamouny, Gambs, 2018, Theorem 9); 1 / e is convex, so that the mean error
is at least 2 n / s.  That is what holding costs with k = 1: no filter, cadence or choice of levels
gets below 1.00 of it.  *Noise of all places together* can: blocks that share a hidden radius
(:mod:`whereish.mechanisms.traces.shared_radius`) cost 0.71, the K-norm noise of d_inf, as
e^{-s max |v_i|}, (1 + 1 / 2n) 2/3, since it is uniform in a ball of radius Gamma(2n + 1) / s.
*Whatever the mechanism*: again it may be taken for noise, of a density f on n places with f(v) >=
f(w) e^{-s |v - w|_inf}.  Integrated around its maximum M that gives M <= s^{2n} / ((2n)! pi^n).  Of
the densities up to M the one of least sum of |v_i| is constant where that sum is below some c, a
set of volume (2 pi)^n c^{2n} / (2n)! = 1 / M, and has the mean 2n c / (2n + 1).  So the mean error
is at least ((2n)!)^{1/n} sqrt(2) / ((2n + 1) s), and no private mechanism whatever costs less than
that over 2 n / s, which falls to 2 / (sqrt(2) e^2) = 0.19 of holding as n grows
(:func:`least_apart`).  What lies between 0.19 and 0.67 we do not know.

**A given trace.**  :func:`floor` takes reports at every k-th point, and follows them by the filter
of one Ornstein-Uhlenbeck velocity; k, the level, the speed and the turn are the best *for this
trace, in hindsight*, which nobody has live.  It is no bound for all mechanisms; but where even
this oracle is not below 0.8 of holding, one that has to find all of it out is not to be expected
there.

**The filter** knows that planar Laplace noise is a mixture of Gaussians: its density is as e^{-eps
r}, that of a normal law of variance t, t ~ Gamma(3/2, eps^2 / 2) (Andrews, Mallows, JRSS B 1974).
Five nodes of Gauss-Laguerre quadrature stand for t: a Kalman update for each, weighted by how well
it explains the report, and moments matched.

Run: python -m whereish.studies.trace_floor (the wanderer); python -m benchmarks.bench_floor
(traces)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.mechanisms.traces.motion import moved
from whereish.mechanisms.traces.shared_radius import RATIO, SIZES, law
from whereish.studies.figures import run_program, say

__all__ = ["floor", "least_apart", "least_in_the_mean_square", "main", "wanderer"]

LEVELS: Final = np.geomspace(2e-4, 0.1, 24)
SPEEDS: Final = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
"""Metres a second on each axis."""
TURNS_S: Final = (15.0, 60.0, 150.0, 400.0, 1200.0)
EVERY: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 36, 60, 100)


def _nodes() -> tuple[FloatArray, FloatArray]:
    """Variances on an axis and their weights, of planar Laplace noise of level 1."""
    from scipy.special import roots_genlaguerre

    at, weights = roots_genlaguerre(5, 0.5)
    return 2.0 * np.asarray(at), np.asarray(weights / weights.sum())


@kernel
def _mean_error(
    places: FloatArray,
    noise: FloatArray,
    level: float,
    every: int,
    velocity: tuple[float, float, float, float, float],
    variances: FloatArray,
    weights: FloatArray,
) -> float:
    """Of the filter's place at all points, with a report at every k-th of them.

    `velocity`: what is kept of it to the next point, the path of one metre a second, and the growth
    of the variances of position, both, and velocity.
    """
    kept, path, grown, grown_both, grown_speed = velocity
    place, going = places[0] + noise[0] / level, np.zeros(2)
    position, both, speed = 3.0 / level**2, 0.0, grown_speed / max(1.0 - kept * kept, 1e-12)
    total = np.hypot(noise[0, 0], noise[0, 1]) / level
    share = np.empty(len(variances))
    for i in range(1, len(places)):
        place = place + path * going
        going = kept * going
        position += 2 * path * both + path * path * speed + grown
        both = kept * (both + path * speed) + grown_both
        speed = kept * kept * speed + grown_speed
        if i % every == 0:
            off = places[i] + noise[i] / level - place
            square = off[0] ** 2 + off[1] ** 2
            width = position + variances / level**2
            share[:] = np.log(weights / width) - square / (2 * width)
            share[:] = np.exp(share - share.max())
            share /= share.sum()
            gain = (share / width).sum()
            more = ((share / width**2).sum() - gain * gain) * square / 2
            place = place + position * gain * off
            going = going + both * gain * off
            lost = gain - more
            speed -= both * both * lost
            both -= position * both * lost
            position -= position * position * lost
        total += np.hypot(place[0] - places[i, 0], place[1] - places[i, 1])
    return float(total / len(places))


def _velocity(
    speed: float, turn: float, seconds: float
) -> tuple[float, float, float, float, float]:
    from whereish.mechanisms.traces.motion import moved

    kept, path, grown, both, fast = moved(seconds, turn, speed**2)
    return float(kept), float(path), float(grown), float(both), float(fast)


def _noise(count: int, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    radius, angle = generator.gamma(2, 1, count), generator.uniform(0, 2 * np.pi, count)
    return np.asarray(radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def floor(places: FloatArray, seconds: FloatArray, wanted: list[float], *, seed: int) -> FloatArray:
    """The least budget per metre for each mean error, all parameters chosen in hindsight."""
    step = float(np.median(np.diff(seconds)))
    noise, (variances, weights) = _noise(len(places), seed), _nodes()
    goals = np.log(wanted)
    least = np.full(len(wanted), np.inf)
    for every in EVERY:
        budgets = np.log(LEVELS * -(-len(places) // every))
        for speed in SPEEDS:
            for turn in TURNS_S:
                how = moved(step, turn, speed**2)
                errors = np.log(
                    [
                        _mean_error(places, noise, level, every, how, variances, weights)
                        for level in LEVELS
                    ]
                )
                errors = np.minimum.accumulate(errors)
                found = np.exp(np.interp(-goals, -errors, budgets))
                reached = (errors[-1] <= goals) & (goals <= errors[0])
                least = np.where(reached, np.minimum(least, found), least)
    return least


def wanderer(*, seed: int, points: int = 200_000, steps: int = 12) -> tuple[float, float]:
    """(least budget of the filter over that of holding, the filter's u) at equal mean error."""
    generator = np.random.default_rng(seed)
    variances, weights = _nodes()
    held, followed = {}, {}
    for u in (3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0):
        way = generator.normal(0, np.sqrt(u / steps), (points, 2)).cumsum(axis=0)
        noise = _noise(points, seed + 1)
        told = np.repeat((way + noise)[::steps], steps, axis=0)[:points]
        held[u] = float(np.hypot(*(told - way).T).mean()) ** 3 / u
        how = (0.0, 0.0, u / steps, 0.0, 0.0)  # no velocity: the place alone wanders
        error = _mean_error(way, noise, 1.0, steps, how, variances, weights)
        followed[u] = error**3 / u
    best = min(followed, key=followed.__getitem__)
    return followed[best] / min(held.values()), best


def least_in_the_mean_square() -> float:
    """No private steps, live, cost less of a wanderer's best hold, in the root mean square.

    At mean square error 1 and with m the variance between two reports, holding costs
    1 / (m sqrt(1 - m / 2)) and the bound sqrt(2/3) / sqrt(m (1 - m^2 / 4)), up to one constant.
    """
    held = 1 / (4 / 3 * np.sqrt(1 / 3))  # m = 4/3
    m = np.sqrt(4 / 3)
    return float(np.sqrt(2 / 3) / np.sqrt(m * (1 - m * m / 4)) / held)


def least_apart(points: int) -> float:
    """No private mechanism costs less of holding, for somebody who is elsewhere at every point."""
    root = math.exp(math.lgamma(2 * points + 1) / points)
    return root * math.sqrt(2) / (2 * points + 1) / (2 * points)


def main() -> None:
    """What live reports of a wanderer cost of the best hold."""
    ratio, u = wanderer(seed=1)
    say(f"wanderer, best filter over best hold at equal mean error: {ratio:.3f} (u = {u:g})")
    say(f"no private steps below this, root mean square: {least_in_the_mean_square():.3f}")
    say("elsewhere at every point, steps on their own place over holding: 1.000")
    say(f"the same, blocks of {SIZES[-1]}: {float(RATIO) * law(SIZES[-1]).mean / 2:.3f}")
    say(f"the same, no mechanism whatever on 1,000 points below this: {least_apart(1000):.3f}")


if __name__ == "__main__":
    run_program(main)
