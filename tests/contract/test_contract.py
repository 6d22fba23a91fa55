"""The contract of every mechanism in the registry."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish import audit
from whereish.errors import InvalidInput, WhereishError
from whereish.mechanisms.base import HasDensity, Mechanism
from whereish.mechanisms.registry import REGISTRY, mechanism_named
from whereish.randomness import SeededRandomness
from whereish.space import Line, Sphere
from whereish.units import Epsilon

from laws import chi_square

EPS = Epsilon(0.01)
NAMES = sorted(REGISTRY)
FINE = {"globe-laplace": {"decimals": 7}}


def built(name: str, scale: float = 1.0, fine: bool = False) -> Mechanism:
    options = FINE.get(name, {"resolution": "1 mm"}) if fine else {}
    return REGISTRY[name].build(EPS * scale, **options)


def places(mechanism: Mechanism, count: int = 60) -> np.ndarray:
    """Secrets within a few 1/eps of each other."""
    generator = np.random.default_rng(3)
    if isinstance(mechanism.space, Line):
        return generator.uniform(-300, 300, (count, 1))
    if isinstance(mechanism.space, Sphere):
        return np.array([179.9995, 48.0]) + generator.uniform(-0.003, 0.003, (count, 2))
    return generator.uniform(-300, 300, (count, 2))


def base_metric(mechanism: Mechanism):
    return mechanism.guarantee.metric.base


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_it_is_a_mechanism_and_says_what_it_promises(name):
    mechanism = built(name)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.guarantee.source
    assert mechanism_named(name, EPS) == mechanism
    assert type(mechanism).__doc__


def test_shape_and_input_unchanged(name):
    mechanism = built(name)
    secrets = places(mechanism)
    before = secrets.copy()
    reports = mechanism.report(secrets)
    assert reports.coordinates.shape == secrets.shape
    assert reports.space == mechanism.space
    assert np.array_equal(secrets, before)
    assert not np.array_equal(reports.coordinates, secrets)
    assert len(mechanism.report(secrets[:0])) == 0
    assert len(mechanism.report(secrets[0])) == 1


def test_bad_secrets_are_refused_without_repeating_them(name):
    mechanism = built(name)
    secrets = places(mechanism)
    for bad in (math.nan, math.inf, -math.inf):
        broken = secrets.copy()
        broken[3, 0] = bad
        with pytest.raises(InvalidInput, match="1 of 60") as caught:
            mechanism.report(broken)
        assert not any(f"{value:.4f}"[:6] in str(caught.value) for value in secrets.ravel())
    with pytest.raises(WhereishError):
        mechanism.report(secrets, rng=np.random.default_rng(0))


def test_reproducible_noise_is_marked(name):
    mechanism = built(name)
    secrets = places(mechanism)
    first, second = (mechanism.report(secrets, rng=SeededRandomness(4)) for _ in range(2))
    assert np.array_equal(first, second)
    assert first.reproducible
    assert not mechanism.report(secrets).reproducible


def test_the_guarantee_bounds_the_density_and_less_does_not(name):
    mechanism = built(name)
    assert isinstance(mechanism, HasDensity)
    found = audit.density(mechanism, places(mechanism))
    assert found.factor <= 1 + 1e-6  # rounding of log-densities at places a metre apart
    if REGISTRY[name].tight:
        smaller = audit.density(
            mechanism, places(mechanism), metric=0.99 * mechanism.guarantee.metric
        )
        assert smaller.factor > 1.005


def test_the_law_is_accepted_and_a_wrong_scale_rejected(name):
    mechanism, n = built(name, fine=True), 1_000_000
    secret = places(mechanism)[:1]
    distance = base_metric(mechanism)(mechanism.report(np.repeat(secret, n, 0)), secret)

    def p_value(model: Mechanism) -> float:
        rings = [model.ideal_quantile(p).m for p in np.linspace(0, 1, 51)[1:-1]]
        counts = np.bincount(np.searchsorted(rings, distance), minlength=51).astype(float)
        return chi_square(counts, np.full(50, 1 / 50))

    assert p_value(mechanism) > 1e-6
    for scale in (0.98, 1.02):
        assert p_value(built(name, scale, fine=True)) < 1e-12


def test_the_statistical_audit_comes_close_but_not_above(name):
    mechanism = built(name)
    here = places(mechanism)[0]
    there = here + (
        np.array([0.0, 200 / 111_000])
        if isinstance(mechanism.space, Sphere)
        else np.eye(len(here))[0] * 200
    )
    found = audit.statistical(mechanism, here, there, samples=2_000_000)
    assert found.epsilon_lower <= 1.0
    if REGISTRY[name].tight:
        assert found.epsilon_lower >= 0.9


def bearings(mechanism: Mechanism, secret: np.ndarray, reports: np.ndarray) -> np.ndarray:
    if not isinstance(mechanism.space, Sphere):
        offset = reports - secret
        return np.arctan2(offset[:, -1], offset[:, 0])
    east = np.radians(reports[:, 0] - secret[0])
    lat, lat0 = np.radians(reports[:, 1]), np.radians(secret[1])
    return np.arctan2(
        np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(east),
        np.sin(east) * np.cos(lat),
    )


@pytest.mark.parametrize("where", [[5, 0], [5, 45], [5, 89.9], [180, 30], [-180, -30]], ids=str)
def test_isotropy(name, where):
    """No direction is favoured beyond the symmetry of the metric (eight octants)."""
    mechanism = built(name, fine=True)
    secret = np.array(where, float)[: mechanism.space.dimension]
    reports = mechanism.report(np.repeat(secret[None], 400_000, 0)).coordinates
    if mechanism.space.dimension == 1:
        counts = np.bincount((reports[:, 0] > secret[0]).astype(int), minlength=2)
        assert abs(counts[0] - counts[1]) < 5 * math.sqrt(counts.sum())
        return
    sectors = np.floor((bearings(mechanism, secret, reports) / math.pi + 1) * 4).astype(int) % 8
    counts = np.bincount(sectors, minlength=8)
    expected = counts.sum() / 8
    assert ((counts - expected) ** 2 / expected).sum() < 60


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInput, match="planar-laplace"):
        mechanism_named("lambert-w", EPS)
