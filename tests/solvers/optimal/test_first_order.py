"""The first-order method's groups, and the recombination of its columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.instances import distances, peaked
from tests.solvers.optimal.test_start import near_duplicates, programme, worst_excess

from whereish.solvers.optimal.first_order.groups import LANES, near_groups
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.recombination import free_rows, recombine
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.repair import complete
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import simple_solution


def test_groups_are_near_and_of_a_width_that_suits():
    metric = distances(peaked(13, 13)[0])
    groups = near_groups(metric, np.arange(169), 48)
    assert sorted(np.concatenate(groups)) == list(range(169))
    assert all(group.size <= 48 for group in groups)
    assert sum(group.size % LANES != 0 for group in groups) <= 1
    within = np.mean([metric[np.ix_(group, group)].mean() for group in groups])
    assert within < 0.6 * metric.mean()
    assert len(near_groups(np.zeros((40, 40)), np.zeros(40, int), 16)) == 3  # all in one place


@pytest.mark.parametrize(("places", "prior"), [peaked(5, 5), near_duplicates(24)])
def test_free_columns_complete_what_the_others_leave(places, prior):
    """With no column but the free one the constant channel; with the optimum's, the optimum."""
    given = programme(places, prior, 1e-3)
    spanner = greedy_spanner(given.metric, 1.05)
    rows = free_rows(given.closeness, spanner.edges, spanner.dilation)
    constant = given.cost.sum(axis=1)
    free = np.array([constant.argmin()])
    optimum = solve_reference(given)
    columns = optimum[:, optimum.max(axis=0) > 1e-6].T

    def value(columns):
        found = recombine(given, columns, rows=rows, free=free, tolerance=1e-6)
        channel = complete(given, np.maximum(found.matrix, 0.0))
        assert worst_excess(channel, given.metric) <= 1e-9
        return given.value(channel)

    assert value(np.ones((1, given.n))) == pytest.approx(constant.min(), rel=1e-5)
    best = given.value(optimum)
    assert value(columns) == pytest.approx(best, rel=1e-4)
    assert best < value(columns[1:]) < constant.min()  # one is missing: the free one stands in


def test_free_rows_are_private_on_all_pairs():
    places, _ = peaked(6, 6)
    metric = 1e-3 * distances(places)
    spanner = greedy_spanner(metric, 1.05)
    rows = free_rows(np.exp(-metric), spanner.edges, spanner.dilation)
    lengths = np.full(metric.shape, np.inf)
    np.fill_diagonal(lengths, 0.0)
    lengths[rows.pairs.source, rows.pairs.target] = -np.log(rows.pairs.factor)
    for via in range(36):
        lengths = np.minimum(lengths, lengths[:, via : via + 1] + lengths[via])
    assert (lengths <= metric * (1 + 1e-12)).all()
    assert (lengths >= metric / 1.05 * (1 - 1e-12)).all()


def test_places_of_prior_zero_leave_a_bound_and_the_first_call_has_it():
    """Steep levels and a threshold: the sweeps have no bound for long, the likely places have."""
    places, prior = peaked(9, 9)
    prior = np.where(np.arange(81) % 6 == 0, prior, 0.0) / prior[::6].sum()
    d = distances(places)
    cost = np.ascontiguousarray((prior[:, None] * (d > 1000.0)).T)
    told = []
    result = solve_optimal(cost, 4e-3 * d, gap=1e-3, progress=told.append)
    assert result.status == "optimal"
    assert all(later.gap <= before.gap for before, later in itertools.pairwise(told))
    assert max(at.lower for at in told) <= result.upper * (1 + 1e-12)
    alone = np.flatnonzero(prior)
    of_likely = solve_optimal(cost[:, alone], 4e-3 * d[np.ix_(alone, alone)], gap=1e-3)
    assert 0.9 * of_likely.lower <= told[0].lower <= result.upper
    assert of_likely.lower <= result.upper


def test_the_first_call_has_a_channel_and_a_bound_also_for_merged_places():
    places, prior = near_duplicates(60)
    given = programme(places, prior, 1e-3)
    told = []
    result = solve_optimal(given.cost, given.metric, gap=0.05, progress=told.append)
    assert result.status == "optimal"
    assert simple_solution(given).upper * 1.05 >= told[0].upper > told[0].lower > 0
    assert all(later.gap <= before.gap for before, later in itertools.pairwise(told))
    assert told[-1].gap <= 0.05


def test_places_that_are_all_far_from_each_other_have_costs():
    """12 nats between neighbours: a cap by near outputs would leave no cost at all."""
    places, prior = peaked(6, 6)
    metric = distances(places)
    level = 12.0 / metric[metric > 0].min()
    given = programme(places, prior, level)
    method = FirstOrder(given, greedy_spanner(given.metric, 1.05).edges)
    assert method.penalty > 0
    np.testing.assert_array_equal(method._cost, given.cost)
