"""Narrow maps with a prior: reports from a table, through every door of the mechanism."""

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

from laws import chi_square

N = 12


def coast() -> wh.PrivacyMap:
    i, j = (np.indices((N, N)) + 0.5) / N
    return wh.PrivacyMap(np.where(j + 0.1 * i > 0.6, 3e-4, 3e-4 * 8**i), "1 km")


@pytest.fixture(scope="module")
def mechanism() -> wh.EikonalMechanism:
    built = wh.EikonalMechanism.build(coast(), places="cells", prior=np.ones((N, N)))
    assert built.built.table is not None
    return built


def test_it_says_what_it_is_and_what_it_is_worth(mechanism):
    plain = wh.EikonalMechanism.build(coast(), places="cells")
    assert plain.built.table is None  # nobody said where people are
    told = mechanism.account()
    assert "the law of landmarks" in told
    moved, before = (one.mse(remap=one.posterior_mean()) for one in (mechanism, plain))
    assert moved < 0.95 * before
    assert moved <= mechanism.mse() < 1.03 * moved  # reports are called by cells near their means
    assert mechanism.lowered.min() > 0.98
    assert mechanism.recertify() == mechanism.factor <= 1.0
    assert f"{mechanism.factor:.6f}" in str(mechanism.guarantee)


def test_reports_follow_the_distribution_and_that_of_no_other_cell(mechanism, rng):
    place, elsewhere = [3_500.0, 3_500.0], [4_500.0, 3_500.0]
    drawn = mechanism.report(np.tile(place, (60_000, 1)), rng=rng)
    cells = mechanism.reports.locate(drawn.coordinates)
    counts = np.bincount(cells, minlength=N * N + 1)
    assert chi_square(counts, mechanism.distribution(place).ravel()) > 1e-3
    assert chi_square(counts, mechanism.distribution(elsewhere).ravel()) < 1e-6
    assert set(cells) <= set(mechanism.built.table.reported.tolist())


def test_one_report_and_a_padded_one_take_the_words_of_a_batch(mechanism):
    places = mechanism.map.raster.centres()[::17]
    alone, padded = SeededRandomness(8), SeededRandomness(8)
    for place in places:
        one = mechanism.report(place[None], rng=alone).coordinates
        other = mechanism.report(np.tile(place, (1, 1)), rng=padded, padded=True).coordinates
        np.testing.assert_array_equal(one, other)


def test_the_error_is_that_of_the_laws(mechanism):
    prior = np.random.default_rng(3).gamma(1.0, size=N * N)
    prior /= prior.sum()
    centres = mechanism.reports.centres()
    laws = mechanism.centre_laws(np.arange(N * N))
    away = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
    assert mechanism.mse(prior) == pytest.approx(prior @ (laws * away).sum(axis=1))
    for y in mechanism.built.table.reported[:5]:
        share = prior * laws[:, y]
        moved = mechanism.posterior_mean(prior)(wh.Points(centres[y][None], mechanism.map.plane))
        np.testing.assert_allclose(moved.coordinates[0], share @ centres / share.sum())


def test_a_frame_or_bilinear_places_have_no_table():
    prior = np.ones((N, N))
    framed = wh.EikonalMechanism.build(coast(), places="cells", prior=prior, frame=2)
    assert framed.built.table is None
    rounded = wh.EikonalMechanism.build(coast(), places="bilinear", prior=prior)
    assert rounded.built.table is None


@pytest.fixture
def forge(mechanism, forge_file) -> Callable[..., Path]:
    return partial(forge_file, mechanism)


def test_reports_are_called_by_different_cells(mechanism, forge):
    reported = mechanism.built.table.reported.astype(np.uint32)
    for other in (reported[0], np.uint32(N * N)):
        wrong = reported.copy()
        wrong[1] = other
        with pytest.raises(InvalidInput, match="different cells"):
            wh.load(forge({"table_reports": wrong}))


def test_a_table_is_of_cells(mechanism, tmp_path):
    other = wh.EikonalMechanism.build(coast(), places="bilinear", frame=0)
    forged = replace(other, built=replace(other.built, table=mechanism.built.table))
    path = tmp_path / "bilinear.npz"
    forged.save(path)
    with pytest.raises((InvalidInput, NotPrivate)):
        wh.load(path)


@pytest.mark.parametrize("places", ["cells", "continuous"])
def test_a_prior_in_one_cell_is_no_reason_to_fail(places):
    """Moved reports have no error at all there: nothing is left to gain, or to divide by."""
    prior = np.zeros((N, N))
    prior[4, 7] = 1.0
    built = wh.EikonalMechanism.build(coast(), places=places, prior=prior)
    moved = built.mse(prior, remap=built.posterior_mean(prior))
    within = 0.0 if places == "cells" else 1e6 / 6  # square metres: of a place in its cell
    assert 0.99 * within <= moved <= within + 1e-3
    assert built.factor <= 1.0
