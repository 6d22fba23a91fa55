"""What nobody gets below, live: the wanderer's figures, and the oracle on traces with an answer."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.studies import trace_floor
from whereish.studies.trace_floor import (
    _nodes,
    floor,
    least_apart,
    least_in_the_mean_square,
    main,
    wanderer,
)
from whereish.studies.trace_rivals import HoldCosts


def test_the_nodes_have_the_moments_of_planar_laplace_noise():
    """E r^2 = 6 and E r^4 = 120: of a mixture, 2 E t and 8 E t^2."""
    variances, weights = _nodes()
    assert weights.sum() == pytest.approx(1.0)
    assert 2 * (weights * variances).sum() == pytest.approx(6.0)
    assert 8 * (weights * variances**2).sum() == pytest.approx(120.0)


def test_a_wanderer_leaves_little_to_win():
    ratio, _ = wanderer(seed=1)
    assert ratio == pytest.approx(0.9, abs=0.02)
    assert least_in_the_mean_square() == pytest.approx(0.8773 * np.sqrt(2 / 3), abs=1e-3)
    assert least_in_the_mean_square() < 0.8 < ratio


def test_the_oracle_gains_on_a_straight_way_and_not_on_jumps(monkeypatch):
    monkeypatch.setattr(trace_floor, "SPEEDS", (3.0, 12.0))
    monkeypatch.setattr(trace_floor, "TURNS_S", (15.0, 1200.0))
    monkeypatch.setattr(trace_floor, "EVERY", (1, 2, 4, 8, 16))
    seconds = 60.0 * np.arange(1500)
    straight = np.column_stack([6.0 * seconds, 0.0 * seconds])
    jumps = np.random.default_rng(1).normal(0, 500, (1500, 2)).cumsum(axis=0)
    for places, error, low, high in ((straight, 400.0, 0.0, 0.6), (jumps, 100.0, 0.9, 1.05)):
        ratio = floor(places, seconds, [error], seed=7)[0] / HoldCosts.of(places).least(error).min()
        assert low <= ratio <= high, ratio


def test_of_somebody_who_is_elsewhere_at_every_point_little_is_proven_for_all_mechanisms():
    """One place: 0.47 of planar Laplace noise, which is optimal; many: towards 0.19."""
    assert least_apart(1) == pytest.approx(np.sqrt(2) / 3)
    assert least_apart(10**6) == pytest.approx(np.sqrt(2) / np.exp(2), rel=1e-3)
    for points in (1, 4, 100):
        norm = (1 + 1 / (2 * points)) * 2 / 3  # the K-norm noise of d_inf is above the bound
        assert least_apart(points) < norm


def test_the_figures_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(trace_floor, "wanderer", lambda **_: (0.9, 8.0))
    main()
    assert "0.900" in capsys.readouterr().out
