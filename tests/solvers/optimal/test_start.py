"""What the solvers begin from: channels, duals, and places made one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.instances import distances, peaked

from whereish.solvers.optimal.barrier.rows import Pairs
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.large_scale import solve_large
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.repair import tight_matrix
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import best_start, normalised_matrix, simple_solution
from whereish.solvers.optimal.start.duals import anchors, inward_flows, tight_duals
from whereish.solvers.optimal.start.merging import merge


def worst_excess(matrix, metric):
    """The largest ln K_xz - ln K_x'z - d(x, x')."""
    logs = np.log(matrix[:, matrix.max(axis=0) > 0])
    return max(float((logs - row - d[:, None]).max()) for row, d in zip(logs, metric, strict=True))


def programme(places, prior, level, power=1):
    d = distances(places)
    return ChannelProgramme(np.ascontiguousarray((prior[:, None] * d**power).T), level * d)


def near_duplicates(n=36, seed=5):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 3000, (n // 3, 2))
    places = np.concatenate([centres + rng.normal(size=centres.shape) * 10 for _ in range(3)])
    return places, rng.dirichlet(np.ones(n))


@pytest.mark.parametrize("level", [1e-4, 7e-4, 4e-3])
def test_normalised_channel_keeps_the_metric_and_little_less(level):
    metric = level * distances(peaked(7, 7)[0])
    matrix = normalised_matrix(metric)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert worst_excess(matrix, metric) <= 1e-12
    apart = metric > 0
    logs = np.log(matrix)
    kept = np.abs(logs[:, None] - logs[None]).max(axis=2)[apart] / metric[apart]
    assert kept.max() > 0.97  # bisection in steps of 1/256, and the rest of the slope


def test_tight_channel_is_the_normalised_one_of_exponent_one():
    metric = 3e-3 * distances(peaked(6, 6)[0])
    tight = tight_matrix(np.exp(-metric))
    assert tight is not None
    np.testing.assert_allclose(normalised_matrix(metric), tight, atol=0.02)


def test_best_start_is_private_and_takes_what_is_offered():
    places, prior = near_duplicates()
    given = programme(places, prior, 1e-3)
    start = best_start(given)
    assert worst_excess(start, given.metric) <= 1e-9
    exact = solve_optimal(given.cost, given.metric, gap=1e-4)
    assert given.value(start) > exact.upper * 1.001
    assert given.value(best_start(given, exact.matrix)) <= exact.upper * (1 + 1e-9)
    assert simple_solution(given, exact.matrix).upper <= exact.upper * (1 + 1e-9)


def test_flows_go_inwards_along_a_line():
    """0 - 1 - 2 with a = 1/2: what 2 has too much reaches 0 as a quarter."""
    metric = np.log(2.0) * np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    source, target = np.array([1, 0, 2, 1]), np.array([0, 1, 1, 2])
    rows = Pairs(source, target, np.full(4, 0.5))
    flow = inward_flows(np.array([-3.0, 4.0, 8.0]), metric, 0, np.array([0, 1, 3, 4]), rows)
    assert flow.tolist() == [0.0, 8.0, 0.0, 8.0]  # 8 into 1 makes it 4 + 4, into 0 half of that


def test_duals_of_the_tight_mechanism_are_optimal_on_a_road():
    """On a line the tight mechanism is optimal, so its duals bound all channels by its own cost."""
    along = np.cumsum(np.random.default_rng(3).uniform(200, 1800, 40))
    places = np.c_[along, np.zeros(40)]
    given = programme(places, np.full(40, 1 / 40), 1e-3)
    assert tight_duals(given).sum() == pytest.approx(given.value(best_start(given)), rel=1e-2)
    assert (anchors(given) == np.arange(40)).mean() > 0.9
    result = solve_large(given, Terms(5e-3))
    assert result.status == "optimal"


@pytest.mark.parametrize("power", [1, 2])
def test_first_bounds_are_useful_and_valid(power):
    places, prior = peaked(9, 9)
    given = programme(places, prior, 1e-3, power)
    exact = solve_optimal(given.cost, given.metric, gap=1e-5)
    method = FirstOrder(given, greedy_spanner(given.metric, 1.01).edges)
    first = method.round(25, over=lambda: True)
    assert 0.5 * exact.upper < first <= exact.upper
    later = method.round(250)
    assert 0.9 * exact.upper < later <= exact.upper


def test_merged_programmes_enclose_the_optimum():
    places, prior = near_duplicates()
    given = programme(places, prior, 1e-3)
    merged = merge(given, 0.05)
    assert merged is not None
    assert merged.first.size < given.n
    optimum = given.value(solve_reference(given))
    above = merged.above.value(solve_reference(merged.above))
    below = merged.below.value(solve_reference(merged.below, solver="ipx"))
    assert below < optimum < above
    assert above - below < 0.1 * optimum
    lifted = merged.lift(solve_optimal(merged.above.cost, merged.above.metric).matrix)
    assert worst_excess(lifted, given.metric) <= 1e-9
    assert merge(given, 1e-9) is None


def test_places_at_ten_decades_are_solved():
    rng = np.random.default_rng(2)
    radius, angle = 3000 * 10 ** rng.uniform(-10, 0, 40), rng.uniform(0, 2 * np.pi, 40)
    places = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    given = programme(places, rng.dirichlet(np.ones(40)), 2e-3, 2)
    result = solve_optimal(given.cost, given.metric, gap=1e-3)
    assert result.status == "optimal"
    assert result.gap <= 1e-3
    assert worst_excess(result.matrix, given.metric) <= 1e-9


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_a_time_limit_never_leaves_a_meaningless_bound(limit):
    places, prior = near_duplicates(60, seed=6)
    given = programme(places, prior, 2e-3, 2)
    result = solve_optimal(given.cost, given.metric, gap=1e-9, time_limit=limit)
    assert result.gap < 0.5
    assert worst_excess(result.matrix, given.metric) <= 1e-9
