import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whereish as wh
from instances import distances, peaked
from whereish.audit.adversary import (
    best_attack,
    identification,
    posterior,
    posterior_after,
    uncertainty_area,
)
from whereish.audit.utility import error_per_place, quality_loss
from whereish.errors import InvalidInput

K = np.array([[0.75, 0.25], [0.25, 0.75]])
D = np.array([[0.0, 1.0], [1.0, 0.0]])


def test_two_places_by_hand():
    prior = [0.6, 0.4]
    assert quality_loss(K, prior, D) == pytest.approx(0.25)
    assert error_per_place(K, D).tolist() == [0.25, 0.25]
    attack = best_attack(K, prior, D)
    assert attack.error == pytest.approx(0.25)
    assert attack.guesses.tolist() == [0, 1]
    found = identification(K, prior)
    assert (found.before, found.after) == (0.6, pytest.approx(0.75))
    assert found.leakage == pytest.approx(1.25)
    np.testing.assert_allclose(found.ratios, [0.6 * 0.55 / 0.45, 0.6 * 0.45 / 0.3])
    assert found.ratio == pytest.approx(0.55 * 0.6 * 0.55 / 0.45 + 0.45 * 0.9)
    assert found.worst == pytest.approx(0.6 * 0.55 / 0.45)
    np.testing.assert_allclose(posterior(K, prior)[:, 0], [0.45 / 0.55, 0.1 / 0.55])
    np.testing.assert_allclose(posterior_after(K, prior, [0, 0, 1]), posterior(K, prior)[:, 0])


def test_a_strong_prior_ignores_the_report():
    attack = best_attack(K, [0.9, 0.1], D)
    assert attack.guesses.tolist() == [0, 0]
    assert attack.error == pytest.approx(0.1)


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 10**6))
def test_laws_of_information(n, m, seed):
    rng = np.random.default_rng(seed)
    k, prior = rng.dirichlet(np.ones(m), size=n), rng.dirichlet(np.ones(n))
    d = distances(rng.uniform(size=(n, 2)))
    blind = (prior @ d).min()
    assert wh.adversary_error(k, prior, d) <= blind + 1e-12
    found = identification(k, prior)
    assert found.before <= found.after + 1e-12
    np.testing.assert_allclose(posterior(k, prior).sum(axis=0), 1)
    if m == n:
        assert wh.adversary_error(k, prior, d) <= quality_loss(k, prior, d) + 1e-12


def test_extremes():
    places, prior = peaked(4, 4)
    d = distances(places)
    truth, silence = wh.identity_channel(places), wh.uniform_channel(places)
    assert wh.adversary_error(truth, prior) == 0
    assert wh.adversary_error(silence, prior) == pytest.approx((prior @ d).min())
    assert identification(truth, prior).after == pytest.approx(1)
    assert identification(silence, prior).ratio == pytest.approx(1)
    assert uncertainty_area(truth, None, cell_area=9.0) == pytest.approx(9.0)
    assert uncertainty_area(silence, None, cell_area=9.0, confidence=0.5) == pytest.approx(72.0)


def test_many_reports_find_the_secret():
    places, prior = peaked(4, 4)
    channel = wh.exponential_channel(places, "2/km")
    reports = channel.draw(np.full(400, 5), rng=wh.SeededRandomness(2))
    assert posterior_after(channel, prior, reports).argmax() == 5


def test_bad_input():
    with pytest.raises(InvalidInput, match="give the distances as a matrix"):
        wh.adversary_error(K, None)
    with pytest.raises(InvalidInput, match="rows that sum to 1"):
        wh.quality_loss(2 * K, None, D)
    with pytest.raises(InvalidInput, match="shape"):
        wh.quality_loss(K, None, np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="indices of the channel"):
        posterior_after(K, None, [7])
    with pytest.raises(InvalidInput, match="all of these reports"):
        posterior_after(np.eye(2), None, [0, 1])
    with pytest.raises(InvalidInput, match="confidence"):
        uncertainty_area(K, None, confidence=2.0)
