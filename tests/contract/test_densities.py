"""Mechanisms with a density: the promise is kept, a smaller one is not, and the law is this one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from whereish import audit
from whereish.mechanisms.registry import REGISTRY
from whereish.randomness import SeededRandomness
from whereish.space import Sphere
from whereish.units import Epsilon

from contract.cases import CALIBRATED, DENSITIES, example, secrets_of


@pytest.mark.parametrize("name", DENSITIES)
def test_the_guarantee_bounds_the_density_and_less_does_not(name):
    mechanism = example(name)
    found = audit.density(mechanism, secrets_of(mechanism))
    assert found.factor <= 1 + 1e-6  # rounding of log-densities at places a metre apart
    if REGISTRY[name].tight:
        less = 0.99 * mechanism.guarantee.metric
        assert audit.density(mechanism, secrets_of(mechanism), metric=less).factor > 1.005


def fine(name: str, scale: float = 1.0):
    """The mechanism at a scale of epsilon, on a lattice that no test sees."""
    step = {"decimals": 7} if name == "globe-laplace" else {"resolution": "1 mm"}
    return REGISTRY[name].make(Epsilon(0.01) * scale, **step)


@pytest.mark.parametrize("name", CALIBRATED)
def test_the_law_is_accepted_and_a_wrong_scale_rejected(name):
    mechanism, n = fine(name), 1_000_000
    secret = secrets_of(mechanism)[:1]
    reports = mechanism.report(np.repeat(secret, n, 0), rng=SeededRandomness(1)).coordinates
    distance = np.sort(mechanism.guarantee.metric.base(reports, secret))

    def p_value(scale: float) -> float:
        """Rings that hold a fiftieth each, if the noise is that of this scale."""
        density = fine(name, scale)
        radii = np.linspace(0, 40 / 0.01, 400_001)
        rings = ring_masses(density, secret, radii)
        edges = np.interp(np.linspace(0, 1, 51)[1:-1], rings, radii)
        counts = np.diff(np.searchsorted(distance, [0, *edges, np.inf])).astype(float)
        return float(chisquare(counts, np.full(50, n / 50)).pvalue)

    assert p_value(1.0) > 1e-6
    for scale in (0.98, 1.02):
        assert p_value(scale) < 1e-12


def ring_masses(mechanism, secret: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """P(distance <= r), by integrating the density itself over circles of its metric."""
    middle = (radii[1:] + radii[:-1]) / 2
    place = np.repeat(secret, len(middle), 0)
    if isinstance(mechanism.space, Sphere):
        from whereish.space.sphere import RADIUS_M

        up = np.column_stack([place[:, 0], place[:, 1] + np.degrees(middle / RADIUS_M)])
        circle = 2 * math.pi * RADIUS_M * np.sin(middle / RADIUS_M)
    else:
        up = place + np.eye(place.shape[1])[-1] * middle[:, None]
        around = {1: 2.0, 2: 2 * math.pi * middle}
        circle = around[place.shape[1]]
        if "|_1" in mechanism.guarantee.metric.description and place.shape[1] == 2:
            circle = 4 * middle  # the diamond |x|_1 = r: area 2 r^2
    mass = np.exp(mechanism.log_density(up, place)) * circle * np.diff(radii)
    total = np.concatenate([[0.0], np.cumsum(mass)])
    assert total[-1] == pytest.approx(1, abs=1e-6)
    return total


@pytest.mark.parametrize("name", CALIBRATED)
def test_the_statistical_audit_comes_close_but_not_above(name):
    mechanism = example(name)
    here = secrets_of(mechanism)[0]
    there = here + (
        np.array([0.0, 200 / 111_000])
        if isinstance(mechanism.space, Sphere)
        else np.eye(len(here))[0] * 200
    )
    found = audit.statistical(mechanism, here, there, samples=2_000_000, rng=SeededRandomness(2))
    assert 0.9 <= found.epsilon_lower <= 1.0


def bearings(mechanism, secret: np.ndarray, reports: np.ndarray) -> np.ndarray:
    if not isinstance(mechanism.space, Sphere):
        offset = reports - secret
        return np.arctan2(offset[:, -1], offset[:, 0])
    east = np.radians(reports[:, 0] - secret[0])
    lat, lat0 = np.radians(reports[:, 1]), np.radians(secret[1])
    return np.arctan2(
        np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(east),
        np.sin(east) * np.cos(lat),
    )


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("where", [[5, 0], [5, 45], [5, 89.9], [180, 30], [-180, -30]], ids=str)
def test_no_direction_is_favoured(name, where):
    """Beyond the symmetry of the metric: eight octants, or two sides."""
    mechanism = fine(name) if name in CALIBRATED else example(name)
    if getattr(mechanism, "resolution", 0) > 1:
        pytest.skip("a coarse lattice has directions of its own")
    secret = np.array(where, float)[: mechanism.space.dimension]
    secrets = np.repeat(secret[None], 400_000, 0)
    reports = mechanism.report(secrets, rng=SeededRandomness(3)).coordinates
    if mechanism.space.dimension == 1:
        counts = np.bincount((reports[:, 0] > secret[0]).astype(int), minlength=2)
        assert abs(counts[0] - counts[1]) < 5 * math.sqrt(counts.sum())
        return
    turn = bearings(mechanism, secret, reports) / math.pi + 1
    counts = np.bincount(np.floor(turn * 4).astype(int) % 8, minlength=8)
    expected = counts.sum() / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 60
