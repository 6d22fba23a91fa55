"""A run of looks: its proof by exact likelihoods, and that the answers follow their law."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from whereish.mechanisms.traces.sparse_test import SparseRun
from whereish.mechanisms.traces.transcript import Guard
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane
from whereish.space.sphere import Sphere
from whereish.units import Epsilon, Length

OPENING, FAILING, THRESHOLD = 0.15, 0.5, 25.0
GUARD = Guard(Epsilon(OPENING), Epsilon(FAILING), Length(THRESHOLD), opened=False)


def likelihood(distances: list[float], failed: bool, rates: tuple[float, float]) -> float:
    """P(all looks hold, but the last fails if `failed`), by quadrature over the threshold."""
    opening, failing = rates
    held = distances[:-1] if failed else distances

    def tail(y: float) -> float:
        return min(1.0, float(np.exp(-failing / 2 * y)))

    def integrand(r: float) -> float:
        value = opening * np.exp(-opening * r)
        for d in held:
            value *= 1 - tail(THRESHOLD + r - d)
        return float(value * (tail(THRESHOLD + r - distances[-1]) if failed else 1.0))

    kinks = sorted({max(d - THRESHOLD, 0.0) for d in distances})
    edges = [0.0, *kinks, kinks[-1] + 60 / opening]
    pieces = (piece for piece in pairwise(edges) if piece[1] > piece[0])
    return sum(quad(integrand, *piece, limit=200, epsabs=0)[0] for piece in pieces)


def share(here: list[float], there: list[float], failed: bool, rates=(OPENING, FAILING)) -> float:
    """ln of the ratio of likelihoods over what the theorem allows."""
    moved = max(abs(a - b) for a, b in zip(here, there, strict=True))
    allowed = (rates[0] + rates[1] * failed) * moved
    logs = [np.log(likelihood(d, failed, rates)) for d in (here, there)]
    return abs(float(logs[0] - logs[1])) / allowed


def test_a_run_never_tells_more_than_its_levels():
    generator = np.random.default_rng(5)
    worst = 0.0
    for trial in range(120):
        looks = int(generator.integers(1, 7))
        here = generator.uniform(0, 60, looks)
        there = np.maximum(
            here + generator.uniform(-1, 1, looks) * generator.choice([0.5, 5, 20]), 0
        )
        worst = max(worst, share(list(here), list(there), bool(trial % 2)))
    assert worst <= 1 + 1e-7


def test_its_levels_are_needed():
    """Holding looks far beyond the threshold tell its level alone; a failure adds its own.

    Many looks that held at d leave the threshold near d or above: they cost a; the look that
    fails from nearer costs b when it moves against them.
    """
    assert share([200.0], [190.0], failed=False) > 0.95
    here, there = [120.0] * 40 + [60.0], [110.0] * 40 + [70.0]
    assert 0.9 < share(here, there, failed=True) <= 1 + 1e-7
    # Looks with less noise than b/2 asks for tell more than a + b.
    moved, (a, b) = 10.0, (OPENING, FAILING)
    quieter = [np.log(likelihood(d, True, (a, 1.3 * b))) for d in (here, there)]
    assert abs(quieter[0] - quieter[1]) > (a + b) * moved


@pytest.mark.parametrize("space", [Plane.metres(), Sphere()], ids=["plane", "globe"])
def test_answers_follow_their_law(space):
    """Frequencies of the first failing look against quadrature; a near miss is rejected."""
    scale = 1.0 if isinstance(space, Plane) else 180 / (np.pi * 6_335_439.0)
    distances, runs = [20.0, 32.0, 28.0, 45.0], 20_000
    counts = np.zeros(len(distances) + 1)
    rng = SeededRandomness(17)
    guess = np.zeros(2)
    for _ in range(runs):
        run = SparseRun(GUARD, space, rng)
        fails = (i for i, d in enumerate(distances) if run.fails(np.array([0.0, d * scale]), guess))
        counts[next(fails, len(distances))] += 1

    def law(rates: tuple[float, float]) -> np.ndarray:
        first = [likelihood(distances[: i + 1], True, rates) for i in range(len(distances))]
        return np.array([*first, likelihood(distances, False, rates)])

    def statistic(rates: tuple[float, float]) -> float:
        expected = runs * law(rates)
        return float(((counts - expected) ** 2 / expected).sum())

    assert law((OPENING, FAILING)).sum() == pytest.approx(1, abs=1e-6)
    assert statistic((OPENING, FAILING)) < 34  # chi-square with 4 degrees: 1e-6
    assert statistic((OPENING, 1.15 * FAILING)) > 34
    assert statistic((1.15 * OPENING, FAILING)) > 34


def test_a_plane_that_stretches_is_charged_in_every_look():
    plane = Plane("EPSG:3857", Box(2.2, 48.8, 2.5, 48.95))
    assert plane.scale > 1.5
    secret = plane.from_degrees([2.3], [48.85]).coordinates[0]
    far = THRESHOLD + 20
    guess = secret + np.array([far, 0.0])
    runs, rng = 6000, SeededRandomness(3)
    failed = sum(SparseRun(GUARD, plane, rng).fails(secret, guess) for _ in range(runs))
    rates = (OPENING / plane.scale, FAILING / plane.scale)
    expected, near_miss = (likelihood([far], True, r) for r in (rates, (OPENING, FAILING)))
    spread = np.sqrt(expected * (1 - expected) / runs)
    assert abs(failed / runs - expected) < 5 * spread
    assert abs(near_miss - expected) > 6 * spread
