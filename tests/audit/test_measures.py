"""Measures of location privacy, by enumeration; and channels at equal quality loss."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whereish as wh
from instances import distances, peaked
from whereish.audit.measures import privacy_measures
from whereish.errors import InvalidInput


def by_hand(k, p, d, confidence):
    """Every measure by loops over reports, secrets, guesses and sets of secrets."""
    n, m = k.shape
    error, after, ratio, worst, anonymity, area = 0.0, 0.0, 0.0, np.inf, [], []
    weights = []
    for z in range(m):
        chance = sum(p[x] * k[x, z] for x in range(n))
        if chance == 0:
            continue
        belief = [p[x] * k[x, z] / chance for x in range(n)]
        error += chance * min(sum(belief[x] * d[x][g] for x in range(n)) for g in range(n))
        after += chance * max(belief)
        ratio += chance * max(p) / max(belief)
        worst = min(worst, max(p) / max(belief))
        anonymity.append(sum(b > 0 for b in belief))
        sizes = [
            len(chosen)
            for size in range(1, n + 1)
            for chosen in itertools.combinations(range(n), size)
            if sum(belief[x] for x in chosen) >= confidence - 1e-12
        ]
        area.append(min(sizes))
        weights.append(chance)
    return error, after, ratio, worst, anonymity, area, np.array(weights)


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_all_measures_by_enumeration(n, m, seed):
    rng = np.random.default_rng(seed)
    k = rng.dirichlet(np.ones(m), size=n) * (rng.random((n, m)) < 0.7) + 1e-3 * np.eye(n, m)
    k[:, 0] += 1e-3
    k /= k.sum(axis=1, keepdims=True)
    p = rng.dirichlet(np.ones(n))
    d = distances(rng.uniform(size=(n, 2)))
    found = privacy_measures(k, p, distances=d, confidence=0.8, cell_area=2.0)
    error, after, ratio, worst, anonymity, area, weights = by_hand(k, p, d, 0.8)
    assert found.distance_error == pytest.approx(error)
    assert found.identified_after == pytest.approx(after)
    assert found.identified_before == pytest.approx(p.max())
    assert found.leakage == pytest.approx(after / p.max())
    assert found.identification_ratio == pytest.approx(ratio)
    assert found.worst_identification_ratio == pytest.approx(worst)
    assert found.least_anonymity == min(anonymity)
    assert found.mean_anonymity == pytest.approx(weights @ anonymity)
    assert found.uncertainty_area == pytest.approx(2.0 * (weights @ area))
    assert found.least_uncertainty_area == 2.0 * min(area)
    assert found.quality_loss is None


def test_cloaking_zones_and_dummies_have_their_k():
    raster = wh.Raster(6, 4, (100, 100))
    zones = np.arange(24) // 6
    found = privacy_measures(wh.cloaking_channel(raster, zones), None)
    assert (found.least_anonymity, found.mean_anonymity) == (6, 6.0)
    # A report of the true cell with two dummies among ten cells, all triples alike.
    triples = list(itertools.combinations(range(10), 3))
    dummies = np.array([[(x in t) / 36 for t in triples] for x in range(10)])
    line = np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0)))
    found = privacy_measures(dummies, None, distances=line)
    assert (found.least_anonymity, found.mean_anonymity) == (3, pytest.approx(3))
    assert found.identified_after == pytest.approx(1 / 3)
    # Of cells without prior an adversary knows that they are dummies.
    prior = [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]
    assert privacy_measures(dummies, prior, distances=line).least_anonymity == 1


def test_the_table_has_a_line_for_each_measure():
    places, prior = peaked(3, 3)
    found = privacy_measures(wh.exponential_channel(places, "1/km"), prior)
    assert found.quality_loss >= found.distance_error
    assert len(str(found).splitlines()) == 11
    assert "before / after, worst report" in str(found)
    with pytest.raises(InvalidInput):
        privacy_measures(np.eye(2), None)


# -- equal quality loss ---------------------------------------------------------------


@pytest.mark.parametrize("make", [wh.exponential_channel, wh.laplace_channel])
@pytest.mark.parametrize("loss", ["euclidean", "squared"])
def test_a_channel_has_the_quality_loss_that_was_asked_for(make, loss):
    places, prior = peaked(4, 4)
    raster = wh.Raster(4, 4, (500, 400))
    for where, share in itertools.product((places, raster), (0.1, 0.4)):
        blind = wh.quality_loss(wh.uniform_channel(where), prior, loss)
        channel = make(where, quality_loss=share * blind, prior=prior, loss=loss)
        assert wh.quality_loss(channel, prior, loss) == pytest.approx(share * blind, rel=1e-9)
        assert channel.verify().upper <= 1


@pytest.mark.parametrize("make", [wh.exponential_channel, wh.laplace_channel])
def test_a_channel_has_the_accuracy_that_was_asked_for(make):
    places, prior = peaked(4, 4)
    for chance in (0.5, 0.95):
        channel = make(places, accuracy=(chance, "1 km"), prior=prior)
        near = distances(places) <= 1000
        used = [
            int(np.flatnonzero((places == z).all(axis=1))[0]) for z in channel.reports.coordinates
        ]
        held = float(prior @ (channel.matrix * near[:, used]).sum(axis=1))
        assert held == pytest.approx(chance, abs=1e-9)


def test_the_epsilon_found_is_that_of_a_closed_form():
    """Two places, exponential: loss d / (1 + e^{eps d / 2}) for a flat prior."""
    for wanted in (100.0, 2500.0, 4900.0):
        channel = wh.exponential_channel([[0, 0], [10_000, 0]], quality_loss=wanted)
        epsilon = channel.guarantee.metric.factor
        assert epsilon == pytest.approx(2 * np.log(10_000 / wanted - 1) / 10_000, rel=1e-8)


@pytest.mark.parametrize("make", [wh.exponential_channel, wh.laplace_channel])
def test_what_no_epsilon_gives_is_refused_with_the_range(make):
    places, _ = peaked(3, 3)
    with pytest.raises(InvalidInput, match="between"):
        make(places, quality_loss=1e7)
    for wrong in (
        {"quality_loss": 10.0, "epsilon": "1/km"},
        {"quality_loss": 10.0, "accuracy": (0.5, "1 km")},
        {"quality_loss": -1.0},
        {"accuracy": (1.5, "1 km")},
    ):
        with pytest.raises(InvalidInput):
            make(places, **wrong)
    with pytest.raises(InvalidInput):
        make(places)


def test_mechanisms_at_equal_loss_are_compared_as_in_the_thesis():
    """Section 6.2.2: at the loss of the optimal channel the others give less privacy, in nats."""
    places, prior = peaked(3, 3)
    best = wh.optimal_channel(places, prior, "1/km", gap=1e-6)
    for make in (wh.exponential_channel, wh.laplace_channel):
        other = make(places, quality_loss=best.loss, prior=prior)
        assert wh.quality_loss(other, prior) == pytest.approx(best.loss, rel=1e-9)
        assert other.guarantee.metric.factor > 1e-3
