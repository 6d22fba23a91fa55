"""A statistical audit of trace sessions against their stated total, from both sides.

Two traces of two places each, 1.5/eps apart in every place, an hour between: each session draws
two noisy reports, so that it states 2 eps, 3 nats.  Of its reports r only one bit is kept: whether
ln P(r|x) - ln P(r|y) reaches 0.85 of that.  It is a function of the reports, so it tells no more
than they do, and by Neyman and Pearson no bit tells more.  What is counted are the real answers of
real sessions; densities only choose the bit.

Run: python -m stress.trace_total [SHARE]
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Bars
from whereish.audit.statistical import level_lower
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.mechanisms.traces.predictive import PredictiveMechanism
from whereish.randomness import SeededRandomness
from whereish.units import Epsilon

Array = NDArray[np.float64]
BUDGET = FixedUtility("500 m")
EPS = BUDGET.level
APART = 1.5 / EPS
X, Y = np.zeros((2, 2)), np.array([[APART, 0.0], [APART, 0.0]])
REACHED = 0.85
RISK = 1e-4


def sessions(trace: Array, count: int, rng: SeededRandomness) -> Array:
    """The two reports of each of so many sessions of one trace."""
    mechanism = PredictiveMechanism(BUDGET, PlanarLaplace)
    reports = np.empty((count, 2, 2))
    for told in reports:
        session = mechanism.start(rng=rng)
        for i, place in enumerate(trace):
            told[i] = np.asarray(session.report(place, 3600.0 * i))[0]
        assert session.transcript.spent == 2 * Fraction(EPS)
    return reports


def bits(reports: Array) -> Array:
    """Whether each pair of reports speaks for x by so much."""
    noise, gap = PlanarLaplace(Epsilon(EPS)), np.zeros(len(reports))
    for sign, trace in ((1, X), (-1, Y)):
        for i, place in enumerate(trace):
            gap += sign * noise.log_density(reports[:, i], np.tile(place, (len(reports), 1)))
    return gap >= REACHED * 2 * EPS * APART


def audited(count: int, seed: int = 1) -> float:
    """The share of the stated total that so many sessions a trace refute any claim below of.

    A lower bound, too high with a probability of at most 1e-4.
    """
    rng = SeededRandomness(seed)
    of_x = int(np.random.default_rng(seed).binomial(2 * count, 0.5))
    hits = [
        int(bits(sessions(trace, many, rng)).sum())
        for trace, many in ((X, of_x), (Y, 2 * count - of_x))
    ]
    return level_lower(hits[0], hits[1], RISK) / (2 * EPS * APART)


def main(share: float = 1.0) -> list[str]:
    bars = Bars("sessions of two places against their stated total, by their real reports")
    count = max(int(75_000 * share), 2000)
    found = audited(count)
    name = f"share of the total below which {count:,} sessions a trace refute"
    bars.at_most(name, found, 1.0, "")
    if share >= 1:
        bars.at_least(name, found, 0.85, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(bool(main(*map(float, sys.argv[1:]))))
