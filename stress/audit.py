"""The statistical audit in full numbers: false positives, power, and what it must refute.

Runs of ten each take minutes; ``python -m stress.audit 0.1`` does a tenth of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from benchmarks.measure import Bars, in_child
from whereish import audit
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean, GreatCircle, Metric
from whereish.randomness import SeededRandomness
from whereish.units import Epsilon

EPS = 1 / 200
CASES: dict[str, tuple[Callable[[Epsilon], Mechanism], Metric, list[float]]] = {
    "planar Laplace": (PlanarLaplace, Euclidean(), [0.0, 0.0]),
    "globe Laplace": (GlobeLaplace, GreatCircle(), [2.35, 48.86]),
}
RISK = 0.1
STREAMING = f"""
from whereish import audit
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.units import Epsilon
def job():
    audit.statistical(PlanarLaplace(Epsilon({EPS})), at=[0, 0], samples=20_000_000)
"""


def geometric(seed: int) -> Callable[[NDArray[np.float64]], ArrayLike]:
    """Two-sided geometric noise, tight for |x - y|: half-lines reach the claim exactly."""
    generator = np.random.default_rng(seed)

    def sample(secrets: NDArray[np.float64]) -> ArrayLike:
        steps = generator.geometric(1 - np.exp(-1), (2, len(secrets)))
        return secrets[:, 0] + steps[0] - steps[1]

    return sample


def false_positives(runs: int) -> list[str]:
    bars = Bars(f"the audit of exact promises at confidence {1 - RISK:g}, {runs} runs each")
    most = int(binom.isf(1e-6, runs, RISK))
    small = {"samples": 4000, "confidence": 1 - RISK}
    found = sum(
        audit.statistical(
            geometric(seed), [0], [1], metric=Euclidean(), rng=SeededRandomness(seed), **small
        ).refuted
        for seed in range(runs)
    )
    bars.at_most("geometric noise on a line, refuted", found, most, "")
    for name, (build, _, at) in CASES.items():
        mechanism = build(Epsilon(EPS))
        found = sum(
            audit.statistical(mechanism, at=at, rng=SeededRandomness(seed), **small).refuted
            for seed in range(runs)
        )
        bars.at_most(f"{name}, with a search, refuted", found, most, "")
    return bars.failed


def power(runs: int) -> list[str]:
    bars = Bars(f"excesses found at confidence 0.9999 by a search, {runs} runs each")
    for excess, samples in ((0.05, 2_000_000), (0.02, 20_000_000)):
        for name, (build, metric, at) in CASES.items():
            mechanism = build(Epsilon(EPS * (1 + excess)))
            found = [
                audit.statistical(
                    mechanism,
                    metric=EPS * metric,
                    at=at,
                    samples=samples,
                    rng=SeededRandomness(seed),
                )
                for seed in range(runs)
            ]
            bounds = [one.epsilon_lower for one in found]
            bars.note(f"{name}, lower bounds", f"{min(bounds):.4f} .. {max(bounds):.4f}")
            refuted = sum(one.refuted for one in found)
            label = f"{name}, {excess:.0%} over, {samples:.0e} samples: found"
            bars.at_least(label, refuted, np.ceil(0.9 * runs), "")
            honest = audit.statistical(
                build(Epsilon(EPS)), at=at, samples=samples, rng=SeededRandomness(runs)
            )
            bars.at_most(f"{name}, smallest excess stated", honest.smallest_excess, excess, "")
    return bars.failed


def other_noise() -> list[str]:
    """Noise that keeps the metric nowhere, or not in all directions."""
    bars = Bars("other noise, refuted by a search")
    generator = np.random.default_rng(0)

    def laplace(secrets: NDArray[np.float64]) -> ArrayLike:
        return secrets + generator.laplace(0, 1 / EPS, secrets.shape)

    def gaussian(secrets: NDArray[np.float64]) -> ArrayLike:
        return secrets + 4 / EPS * generator.standard_normal(secrets.shape)

    # By the lemma of Neyman and Pearson no test of one pair has more power against the Gaussian
    # than 0.0002 with 1e6 reports a secret, and 0.93 with 1e8.
    for name, sampler, samples in (
        ("Laplace noise on each coordinate", laplace, 1_000_000),
        ("Gaussian noise of 4/epsilon", gaussian, 250_000_000),
    ):
        found = audit.statistical(
            sampler,
            metric=EPS * Euclidean(),
            at=[0, 0],
            samples=samples,
            rng=SeededRandomness(1),
        )
        bars.note(name, f"{samples:.1e} samples; {found.event}; {found.hits} hits")
        bars.at_least(f"{name}, lower bound", found.epsilon_lower, 1.0, "")
    return bars.failed


def memory() -> list[str]:
    bars = Bars("a search with 20,000,000 samples a secret")
    spent = in_child(STREAMING)
    bars.note("CPU seconds", f"{spent['cpu']:.1f}")
    bars.at_most("peak memory", spent["peak_mb"], 600, "MB")
    return bars.failed


def main(share: float = 1.0) -> list[str]:
    return [
        *false_positives(max(40, round(400 * share))),
        *power(max(1, round(10 * share))),
        *other_noise(),
        *memory(),
    ]


if __name__ == "__main__":
    sys.exit(1 if main(*map(float, sys.argv[1:])) else 0)
