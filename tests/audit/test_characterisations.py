from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish import audit
from whereish.audit.characterisations import (
    hiding_attack,
    informed_attack,
    sampled_attacks,
    worst_hiding_attack,
    worst_informed_attack,
)
from whereish.errors import InvalidInput
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy import ValueDistance
from whereish.space.values import Values

VALUES = Values(1, 6)
EPSILON = 0.6
MECHANISM = TruncatedGeometric(VALUES, EPSILON)
D = EPSILON * ValueDistance(VALUES).matrix(VALUES.at(np.arange(7)))


def random_channel(seed: int, size: int = 5, reports: int = 6) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.full(reports, 2.0), size)
    places = random.uniform(0, 3, (size, 2))
    return matrix, np.linalg.norm(places[:, None] - places, axis=2)


def test_by_hand():
    """Two secrets, a coin that tells the truth three times in four, a flat prior."""
    coin, d = [[0.75, 0.25], [0.25, 0.75]], [[0, 2.0], [2.0, 0]]
    informed = informed_attack(coin, d, [0.5, 0.5], [0, 1])
    assert informed.learned == pytest.approx(math.log(0.5 / 0.25))  # 1/2 falls to 1/4
    assert informed.allowed == 2
    hidden = hiding_attack(coin, d, [0.5, 0.5], [1, 0])
    assert hidden.learned == pytest.approx(math.log(3))  # 3/4 against 1/4
    assert hidden.allowed == 4
    assert hiding_attack(coin, d, [0.5, 0.5], [0, 1]).factor == 0  # nothing hidden, no difference


def test_a_private_channel_withstands_all_sampled_adversaries():
    for attack in sampled_attacks(MECHANISM, D, count=400, seed=3):
        assert 0.3 < attack.factor <= 1 + 1e-9
        assert not attack.succeeds


@pytest.mark.parametrize("worst", [worst_hiding_attack, worst_informed_attack])
def test_the_bounds_are_attained_and_a_smaller_metric_is_refuted(worst):
    attack = worst(MECHANISM, D)
    assert attack.factor == pytest.approx(1, abs=1e-6)
    assert not attack.succeeds
    assert worst(MECHANISM, 0.99 * D).succeeds


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_worst_adversaries_find_exactly_the_audit_s_factor(seed):
    matrix, d = random_channel(seed)
    factor = audit.exact(matrix, d).factor
    assert worst_hiding_attack(matrix, d).factor == pytest.approx(factor, rel=1e-6)
    assert worst_informed_attack(matrix, d).factor == pytest.approx(factor, rel=1e-6)
    hiding, informed = sampled_attacks(matrix, d, count=60, seed=seed)
    assert 0 < hiding.factor <= factor * (1 + 1e-9)
    assert 0 < informed.factor <= factor * (1 + 1e-9)


def test_the_worst_attack_names_its_adversary_and_can_be_run_again():
    matrix, d = random_channel(11)
    attack = worst_hiding_attack(matrix, d)
    again = hiding_attack(matrix, d, attack.prior, attack.assumed)
    assert again.learned == attack.learned
    x, other, z = audit.exact(matrix, d).worst
    assert set(np.flatnonzero(attack.prior)) == {x, other}
    assert attack.report == z
    informed = worst_informed_attack(matrix, d)
    assert set(informed.assumed) == {x, other}


def test_reports_that_only_one_secret_makes_tell_all():
    matrix, d = [[1.0, 0.0], [0.5, 0.5]], [[0, 1.0], [1.0, 0]]
    assert worst_hiding_attack(matrix, d).learned == math.inf
    assert worst_informed_attack(matrix, d).learned == math.inf
    # ... but a report that no secret makes tells nothing.
    harmless = [[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]]
    assert math.isfinite(worst_informed_attack(harmless, d).learned)
    assert math.isfinite(worst_hiding_attack(harmless, d).learned)


def test_secrets_infinitely_far_apart_may_be_told_apart():
    d = [[0, math.inf], [math.inf, 0]]
    assert worst_hiding_attack(np.eye(2), d).factor == 0
    assert not informed_attack(np.eye(2), d, [0.5, 0.5], [0, 1]).succeeds


def test_a_constant_channel_teaches_nothing():
    constant = np.full((4, 3), 1 / 3)
    d = np.ones((4, 4)) - np.eye(4)
    assert worst_hiding_attack(constant, d).learned < 1e-12
    assert all(a.learned < 1e-12 for a in sampled_attacks(constant, d, count=5, seed=0))
    one = sampled_attacks([[0.5, 0.5]], [[0.0]], count=3, seed=0)
    assert all(a.factor == 0 for a in one)


def test_integer_weights_and_metrics_with_sites_are_taken():
    weights = np.array([[3, 1], [1, 3]])
    assert worst_informed_attack(weights, [[0, 1.0], [1.0, 0]]).learned == pytest.approx(
        math.log(3)
    )
    places = VALUES.at(np.arange(7))
    attack = worst_informed_attack(MECHANISM, EPSILON * ValueDistance(VALUES), sites=places)
    assert attack.factor == pytest.approx(1, abs=1e-6)


def test_bad_adversaries_are_refused():
    coin, d = [[0.75, 0.25], [0.25, 0.75]], [[0, 2.0], [2.0, 0]]
    with pytest.raises(InvalidInput, match="prior must sum to 1"):
        hiding_attack(coin, d, [0.5, 0.6], [1, 0])
    with pytest.raises(InvalidInput, match="indices"):
        hiding_attack(coin, d, [0.5, 0.5], [1, 2])
    with pytest.raises(InvalidInput, match="map each"):
        hiding_attack(coin, d, [0.5, 0.5], [1])
    with pytest.raises(InvalidInput, match="at least one secret"):
        informed_attack(coin, d, [0.5, 0.5], [])
    with pytest.raises(InvalidInput, match="some weight"):
        informed_attack(coin, d, [1.0, 0.0], [1])
    with pytest.raises(InvalidInput, match="distances must be"):
        informed_attack(coin, [[0.0]], [0.5, 0.5], [1])
    with pytest.raises(InvalidInput, match="sum to 1"):
        worst_hiding_attack([[0.5, 0.6], [0.5, 0.5]], d)
    with pytest.raises(InvalidInput, match="count"):
        sampled_attacks(coin, d, count=0, seed=0)
