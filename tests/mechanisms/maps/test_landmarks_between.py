"""Narrow maps with a prior, on places: reports from a table between nodes, through every door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.randomness import SeededRandomness
from whereish.sampling import spline_table
from whereish.sampling.spline_coin import OPEN, nine_around
from whereish.sampling.spline_table import SplineTableSampler
from whereish.solvers.splines.corners import Corners
from whereish.solvers.tables.error import table_laws

from laws import chi_square

N = 8
STEEP = np.array([2_900.0, 6_900.0])
"""Amid nodes at the highest level: geometric and arithmetic means differ most."""

EAST = np.array([400.0, 0.0])


def city() -> wh.PrivacyMap:
    """1.2 nats to a cell at the most."""
    i, j = (np.indices((N, N)) + 0.5) / N
    return wh.PrivacyMap(np.where(j + 0.1 * i > 0.7, 3e-4, 3e-4 * 4**i), "1 km")


@pytest.fixture(scope="module")
def mechanism() -> wh.EikonalMechanism:
    built = wh.EikonalMechanism.build(city(), prior=np.ones((N, N)))
    assert built.places == "continuous"
    assert built.built.table is not None
    return built


@pytest.fixture(scope="module")
def plain() -> wh.EikonalMechanism:
    return wh.EikonalMechanism.build(city())


def test_it_says_what_it_is_and_what_it_is_worth(mechanism, plain):
    assert plain.built.table is None  # nobody said where people are
    told = mechanism.account()
    assert "the law of landmarks" in told
    found = mechanism.built.comparison
    left = replace(mechanism.built, comparison=replace(found, unsettled=1.23))
    told = replace(mechanism, built=left).account()
    assert "not searched for to the end" in told
    assert "1.23 times the error" in told
    moved, before = (one.mse(remap=one.posterior_mean()) for one in (mechanism, plain))
    assert moved < 0.98 * before  # of eight cells a side
    assert moved <= mechanism.mse() < 1.05 * moved  # reports are called by nodes near their means
    assert mechanism.recertify() == mechanism.factor <= 1.0
    assert f"{mechanism.factor:.6f}" in str(mechanism.guarantee)
    assert 0.3 < mechanism.lowered.min() <= mechanism.lowered.max() < 1.05


@pytest.mark.parametrize("place", [STEEP, (3_210.0, 4_321.0), (0.0, 0.0), (7_999.0, 4_000.0)])
def test_reports_follow_the_geometric_mean_and_no_near_miss(mechanism, place):
    place = np.array(place)
    drawn = mechanism.report(np.tile(place, (200_000, 1)), rng=SeededRandomness(7))
    cells = mechanism.reports.locate(drawn.coordinates)
    counts = np.bincount(cells, minlength=len(mechanism.reports) + 1)
    assert chi_square(counts, mechanism.distribution(place).ravel()) > 1e-6
    assert set(cells) <= set(mechanism.built.table.reported.tolist())
    nearby = mechanism.distribution(place + np.where(place > 4_000, -150.0, 150.0)).ravel()
    assert chi_square(counts, nearby) < 1e-6
    if np.array_equal(place, STEEP):
        nodes = Corners().raster(mechanism.map.raster)
        nine = nine_around(nodes, place[None])
        laws = np.zeros((9, len(mechanism.reports)))
        laws[:, mechanism.built.table.reported] = table_laws(
            mechanism.built.table, nine.cells(nodes.columns)[0]
        )
        assert chi_square(counts, nine.weights[0] @ laws) < 1e-6


def test_the_law_of_a_place_is_the_mean_of_nine_rows(mechanism):
    nodes = Corners().raster(mechanism.map.raster)
    for place in ((3_210.0, 4_321.0), (10.0, 7_990.0)):
        nine = nine_around(nodes, np.array([place]))
        rows = table_laws(mechanism.built.table, nine.cells(nodes.columns)[0])
        law = np.exp(nine.weights[0] @ np.log(rows))
        found = mechanism.distribution(place).ravel()
        np.testing.assert_allclose(found[mechanism.built.table.reported], law / law.sum())
        assert found.sum() == pytest.approx(1.0)
        # The normaliser is the chance that a draw is kept, of which the certificate has a bound.
        assert law.sum() >= mechanism.built.acceptance


def test_padded_reports_follow_it_too_and_one_takes_the_words_of_a_batch(mechanism):
    place = np.array([2_130.0, 5_840.0])
    drawn = mechanism.report(np.tile(place, (30_000, 1)), rng=SeededRandomness(2), padded=True)
    cells = mechanism.reports.locate(drawn.coordinates)
    counts = np.bincount(cells, minlength=len(mechanism.reports) + 1)
    assert chi_square(counts, mechanism.distribution(place).ravel()) > 1e-6
    assert chi_square(counts, mechanism.distribution(place + EAST).ravel()) < 1e-6
    alone, batch = SeededRandomness(8), SeededRandomness(8)
    for at in mechanism.map.raster.centres()[::7] + 111.0:
        one = mechanism.report(at[None], rng=alone).coordinates
        other = mechanism._draws.batch(at[None], batch, padded=False).coordinates
        np.testing.assert_array_equal(one, other)


def test_padded_attempts_follow_from_the_acceptance(mechanism):
    table, nodes = mechanism.built.table, Corners().raster(mechanism.map.raster)
    accepted = mechanism.built.acceptance
    attempts = SplineTableSampler(table, nodes, accepted).attempts
    assert (1 - accepted) ** attempts <= 2.0**-40 < (1 - accepted) ** (attempts - 1)
    # Where a batch keeps nothing for a place, another follows.
    hasty = SplineTableSampler(table, nodes, 1.0)
    assert hasty.attempts == 1
    row, column = hasty.draw(np.tile(STEEP, (3_000, 1)), SeededRandomness(1), padded=True)
    counts = np.bincount(row * nodes.columns + column, minlength=len(mechanism.reports) + 1)
    assert chi_square(counts, mechanism.distribution(STEEP).ravel()) > 1e-6


def test_coins_that_doubles_leave_open_are_decided_by_balls(mechanism, monkeypatch):
    """With doubles that decide nothing, the same words give the same reports."""
    places = mechanism.map.raster.centres()[::5] + 77.0
    fast = mechanism.report(places, rng=SeededRandomness(5)).coordinates
    before = spline_table.coins

    def doubtful(values, shares, surprise, errors, status):
        before(values, shares, surprise, errors, status)
        status[:] = OPEN

    monkeypatch.setattr(spline_table, "coins", doubtful)
    slow = mechanism.report(places, rng=SeededRandomness(5)).coordinates
    np.testing.assert_array_equal(fast, slow)


def test_the_error_is_that_of_places_spread_over_their_cells(mechanism):
    prior = np.random.default_rng(3).gamma(1.0, size=N * N)
    prior /= prior.sum()
    centres, reports = mechanism.map.raster.centres(), mechanism.reports.centres()
    offsets = (np.arange(6) + 0.5) / 6 - 0.5
    total, means = 0.0, np.zeros((len(reports), 3))
    for dx in offsets * 1_000:
        for dy in offsets * 1_000:
            places = centres + np.array([dx, dy])
            laws = np.stack([mechanism.distribution(place).ravel() for place in places])
            away = ((places[:, None] - reports[None]) ** 2).sum(axis=2)
            total += prior @ (laws * away).sum(axis=1) / 36
            joint = prior[:, None] * laws
            means += np.column_stack([joint.sum(axis=0), joint.T @ places])
    assert mechanism.mse(prior) == pytest.approx(total, rel=2e-3)
    y = int(mechanism.built.table.reported[0])
    moved = mechanism.posterior_mean(prior)(wh.Points(reports[y][None], mechanism.map.plane))
    np.testing.assert_allclose(moved.coordinates[0], means[y, 1:] / means[y, 0], rtol=5e-3)


@pytest.fixture
def forge(mechanism, forge_file) -> Callable[..., Path]:
    return partial(forge_file, mechanism)


def test_a_tighter_map_refuses_the_table(mechanism, tmp_path):
    """0.99 of the map is not kept."""
    levels = 0.99 * city().values
    forged = replace(mechanism, map=wh.PrivacyMap(levels, "1 km"))
    with pytest.raises(NotPrivate, match="times the promised metric"):
        forged.recertify()


def test_a_table_of_nodes_is_not_one_of_cells_nor_of_half_cells(forge):
    for places in ("cells", "halves", "continuous"):
        with pytest.raises((InvalidInput, NotPrivate)):
            wh.load(forge(places=places))


def test_lines_and_oblong_cells_with_visits_in_few_places():
    rng = np.random.default_rng(1)
    for shape, cell in (((1, 20), (1_000.0, 1_000.0)), ((9, 7), (1_000.0, 500.0))):
        levels = 3e-4 * (1 + rng.random(shape))
        prior = np.where(rng.random(shape) < 0.4, rng.gamma(0.5, size=shape), 0.0)
        asked = wh.PrivacyMap(levels, cell=cell)
        built = wh.EikonalMechanism.build(asked, prior=prior, frame=0)
        assert built.built.comparison.landmarks is not None
        assert built.recertify() == built.factor <= 1.0
        built.report(asked.raster.centres() + 10.0, padded=True)
