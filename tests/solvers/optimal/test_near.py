"""Sweeps near outputs: what they prove is true, and worth having."""

import math

import numpy as np
import pytest

from whereish.solvers.optimal.first_order.groups import both_ways, groups_within
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.first_order.near import NearSweeps
from whereish.solvers.optimal.local.solve import Neighbourhoods
from whereish.solvers.optimal.output_generation import solve_by_output_generation
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start import early
from whereish.solvers.optimal.start.channels import simple_solution
from whereish.solvers.optimal.start.duals import anchors
from whereish.solvers.optimal.start.passing import early_duals, paid_duals
from whereish.threads import one_blas_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


def steep(n, level, seed, *, zeros=0.5, power=2):
    """Scattered places, one on average in a unit square, of which many have no prior."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0.0, math.sqrt(n), (n, 2))
    d = np.hypot(*np.moveaxis(places[:, None] - places[None], -1, 0))
    prior = np.where(rng.uniform(size=n) < zeros, 0.0, rng.gamma(1.0, size=n))
    prior /= prior.sum()
    return ChannelProgramme(np.ascontiguousarray((prior[:, None] * d**power).T), level * d)


def edges_of(programme):
    return greedy_spanner(programme.metric, 1.03).edges


@pytest.mark.parametrize("reach", [4.0, 8.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_true_and_worth_it(seed, reach):
    programme = steep(100, 2.0, seed)
    exact = solve_by_output_generation(programme, Terms(1e-3))
    sweeps = NearSweeps(FirstOrder(programme, edges_of(programme), reach), 600)
    found = list(sweeps.bounds())
    assert len(found) == 2
    assert max(found) <= exact.upper
    if reach >= 8.0:
        assert found[-1] >= 0.8 * exact.lower
        assert found[-1] > math.fsum(early_duals(programme))


def test_reduced_costs_are_those_of_the_multipliers():
    """With all places in reach, the least of them are the Lagrangian bound's duals."""
    programme = steep(80, 1.5, 4)
    method = FirstOrder(programme, edges_of(programme))
    method.round(200)
    lagrangian = method.reduced_costs().min(axis=0)
    exact = solve_by_output_generation(programme, Terms(1e-3))
    assert 0.3 * exact.lower < math.fsum(lagrangian) <= math.fsum(method.duals)
    paid = paid_duals(programme, method.sums_duals, method.reduced_costs())
    assert math.fsum(lagrangian) < math.fsum(paid) <= exact.upper


def test_groups_have_what_is_within_reach():
    programme = steep(150, 2.0, 5)
    middles = anchors(programme)
    rows = both_ways(edges_of(programme), programme.closeness)
    seen = np.zeros(programme.n, bool)
    smaller = 0
    for outputs, near in groups_within(programme.metric, middles, rows, 3.0):
        away = programme.metric[middles[outputs]].min(axis=0)
        assert set(np.flatnonzero(away <= 3.0)) <= set(near.places)
        seen[near.places] = True
        np.testing.assert_array_equal(near.places[near.pairs.source], rows.source[near.rows])
        np.testing.assert_array_equal(near.places[near.pairs.target], rows.target[near.rows])
        np.testing.assert_array_equal(near.pairs.factor, rows.factor[near.rows])
        inside = np.isin(rows.source, near.places) & np.isin(rows.target, near.places)
        np.testing.assert_array_equal(near.rows, np.flatnonzero(inside))
        smaller += near.places.size < programme.n
    assert seen.all()
    assert smaller
    for _, near in groups_within(programme.metric, middles, rows, np.inf):
        assert near.places.size == programme.n
        assert near.rows.size == rows.source.size


def test_columns_are_private():
    programme = steep(90, 1.5, 6)
    sweeps = NearSweeps(FirstOrder(programme, edges_of(programme), 6.0), 300)
    list(sweeps.bounds())
    columns = sweeps.columns()
    assert columns.max(axis=1).min() > 0
    for k in columns:
        assert (programme.closeness * k).max(axis=1) == pytest.approx(k, rel=1e-12)


def test_no_sweeps_where_they_would_take_long(monkeypatch):
    programme = steep(60, 1.0, 7)
    found = NearSweeps.of(programme)
    assert found is not None
    assert found.method.reach == np.inf
    for name in ("CHEAP", "MOST"):
        monkeypatch.setattr(f"whereish.solvers.optimal.first_order.near.{name}", 1.0)
    assert NearSweeps.of(programme) is None


def test_what_is_over_still_has_a_bound():
    programme = steep(80, 2.0, 8)
    sweeps = NearSweeps(FirstOrder(programme, edges_of(programme)), 400)
    (only,) = sweeps.bounds(over=lambda: True)
    assert only <= solve_by_output_generation(programme, Terms(1e-3)).upper


def test_many_places_have_a_useful_gap_before_a_solver(monkeypatch):
    monkeypatch.setattr(early, "MANY", 200)
    programme = steep(300, 1.5, 9, zeros=0.75)
    told = []
    simple = simple_solution(programme)
    terms = Terms(1e-2, None, told.append)
    terms.take(simple.upper, simple.lower)
    found = early.early_bracket(programme, terms, simple)
    stages = list(dict.fromkeys(one.stage for one in told))
    assert stages == ["passing on", "near sweeps", "bumps"]
    first = next(one for one in told if one.stage == "passing on")
    assert first.gap > 0.2 > found.gap


def test_a_road_is_solved_on_cores_at_once(monkeypatch):
    monkeypatch.setattr(early, "MANY", 200)
    rng = np.random.default_rng(11)
    along = np.cumsum(rng.uniform(0.2, 1.8, 300))
    d = np.abs(np.subtract.outer(along, along))
    prior = np.where(rng.uniform(size=300) < 0.75, 0.0, rng.gamma(1.0, size=300))
    programme = ChannelProgramme(np.ascontiguousarray((prior[:, None] * d**2).T), 2.9 * d)
    told = []
    found = solve_optimal(programme.cost, programme.metric, gap=1e-2, progress=told.append)
    assert found.gap <= 1e-2
    assert "near sweeps" not in {one.stage for one in told}
    assert Neighbourhoods(programme).are_small
    assert not Neighbourhoods(steep(300, 1.5, 9)).are_small


@pytest.mark.parametrize("limit", [0.0, 0.5, 2.0])
def test_a_time_limit_leaves_a_bound_that_means_something(limit):
    programme = steep(700, 1.6, 10, zeros=0.75)
    found = solve_optimal(programme.cost, programme.metric, gap=1e-2, closed=True, time_limit=limit)
    assert found.status == "time limit"
    assert 0.3 * found.upper < found.lower < found.upper
