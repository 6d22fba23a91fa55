"""People and places that stand in for data that is not here: what is said of them holds."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.reference import solve_reference
from whereish.studies.bordenabe.glpk import glpk_value
from whereish.studies.bordenabe.people import GRID, made_up_users
from whereish.studies.bordenabe.spanners import constraints
from whereish.studies.bordenabe.zones import CELLS, ZONES, priors, retrieval_epsilon
from whereish.studies.cai.attacks import resampled_channel
from whereish.studies.eg import users as eg_users
from whereish.studies.kp.laws import hard_maps, plain_weights
from whereish.studies.kp.wealth import profiles, spreads


def test_made_up_users_follow_the_seed_and_have_fifty_regions():
    one, two = (made_up_users(30, np.random.default_rng(5)) for _ in range(2))
    assert len(one.sites) == 50
    assert set(one.priors) == {"all day", "morning", "afternoon", "night"}
    np.testing.assert_array_equal(one.cells, two.cells)
    assert one.cells.max() < len(GRID)
    for name, rows in one.priors.items():
        np.testing.assert_array_equal(rows, two.priors[name])
        np.testing.assert_allclose(rows.sum(axis=1), 1)


def test_constraints_are_those_of_the_thesis():
    assert constraints(872, 50) == 87_250
    assert constraints(255, 50) == 25_550


def test_users_without_the_real_check_ins(monkeypatch):
    monkeypatch.setattr(eg_users, "real_data", lambda name: None)
    found = eg_users.users_with((300, 40), np.random.default_rng(1))
    assert [len(places) for places in found.places] == [300, 40]
    raster = found.raster(5000.0)
    assert raster.shape == (6, 8)
    for places in found.places:
        assert raster.box.contains(places).all()


def test_the_nearest_numbers_of_check_ins_each_user_once():
    users = np.repeat([7, 8, 9, 10], [5, 5, 9, 30])
    assert eg_users._nearest_counts(users, (5, 5, 100)) == [7, 8, 10]


def test_zones_and_priors_are_the_declared_ones():
    assert np.bincount(ZONES).tolist() == [9] * 9
    known = priors()
    assert {name: int((p > 0).sum()) for name, p in known.items()} == {
        "uniform": 81,
        "disk": 21,
        "row": 9,
        "zone": 9,
    }
    assert len(set(ZONES[known["zone"] > 0])) == 1
    assert CELLS.cell == (100.0, 100.0)
    assert retrieval_epsilon() == pytest.approx(0.0313, abs=5e-5)


def test_resampling_breaks_the_channel_and_only_its_normaliser():
    matrix = resampled_channel()
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert matrix[0, 0] > matrix[12, 12], "a corner has fewer neighbours"


def test_plain_weights_solve_the_system_and_turn_negative_on_a_step():
    levels = hard_maps(14)["step"]
    assert (plain_weights(levels)[3:-3, 3:-3] < 0).any()
    assert (plain_weights(hard_maps(14)["smooth bump"])[3:-3, 3:-3] > 0).all()


def test_wealth_is_symmetric_where_levels_are():
    _, falling = spreads(profiles(30)["falls with wealth"])
    _, rising = spreads(profiles(30)["rises with wealth"])
    np.testing.assert_allclose(falling, rising[::-1], rtol=0.02)
    assert falling[:10].mean() < falling[-10:].mean()


def test_glpk_and_highs_find_the_same_optimum():
    pytest.importorskip("swiglpk")
    centres = CELLS.centres()[[0, 1, 2, 9, 10, 11]]
    distances = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1))
    prior = np.array([0.3, 0.2, 0.1, 0.2, 0.1, 0.1])
    programme = ChannelProgramme(
        np.ascontiguousarray((prior[:, None] * distances).T), 0.01 * distances
    )
    by_highs = programme.value(solve_reference(programme, solver="simplex"))
    assert glpk_value(programme) == pytest.approx(by_highs, rel=1e-7)
