"""The first-order method's groups, and the recombination of its columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.instances import distances, peaked
from tests.solvers.optimal.test_start import near_duplicates, programme, worst_excess

from whereish.solvers.optimal.first_order import method
from whereish.solvers.optimal.first_order.groups import LANES, near_groups
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.recombination import free_rows, recombine
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.repair import complete
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import simple_solution
from whereish.threads import one_blas_thread


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


def naive_sweeps(groups, coupling, times):
    """X and V of every group after some sweeps, by whole matrices in double precision."""
    n, relaxation = len(coupling), 1.9
    state = []
    for where, proximal, one in groups:
        source, target, weight, factor = (np.asarray(each, float) for each in one.rows)
        rows = np.zeros((len(source), len(where)))
        at = np.arange(len(source))
        np.add.at(rows, (at, target.astype(int)), weight)
        np.add.at(rows, (at, source.astype(int)), -factor)
        x, v, pulled, cost = (
            np.array(each, float) for each in (one.x, one.v, one.pulled, one.cost)
        )
        state.append([where, proximal, np.array(one.inverse, float), rows, x, v, pulled, cost])
    moved = np.zeros(n)
    for _ in range(times):
        sums = np.zeros(n)
        for group in state:
            where, proximal, inverse, _, x, _, pulled, cost = group
            group[4] = inverse @ (pulled - cost + proximal * x)
            np.add.at(sums, where, group[4].sum(axis=1))
        missing = coupling @ (1.0 - sums)
        moved += missing
        for group in state:
            where, _, inverse, rows, x, v, _, _ = group
            group[4] = x + (inverse @ missing[where])[:, None]
            s = np.maximum(v, 0.0)
            group[5] = relaxation * (rows @ group[4]) + (1.0 - relaxation) * s + (v - s)
            group[6] = rows.T @ np.abs(group[5])
    return [(group[4], group[5]) for group in state], moved


@pytest.mark.parametrize("reach", [np.inf, 0.8])
def test_sweeps_are_those_of_whole_matrices_and_the_same_in_any_number_of_threads(
    monkeypatch, reach
):
    monkeypatch.setattr(method, "_WORTH_THREADS", 0)
    places, prior = peaked(8, 8)
    given = programme(places, prior, 1e-3)
    edges = greedy_spanner(given.metric, 1.02).edges
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("WHEREISH_THREADS", threads)
        one = FirstOrder(given, edges, reach)
        laid = one._laid
        assert len(laid.size) == 2
        begun = [
            (
                laid.places[laid.place[g] : laid.place[g + 1]],
                float(laid.proximal[g]),
                copied(laid.group(g)),
            )
            for g in range(2)
        ]
        with one_blas_thread():
            one.iterate(3)
        found.append((one.x.copy(), one._summed / one.penalty))
        expected, moved = naive_sweeps(begun, one._coupling, 3)
        for g, (x, v) in enumerate(expected):
            now = laid.group(g)
            np.testing.assert_allclose(now.x, x, atol=2e-4 * np.abs(x).max())
            np.testing.assert_allclose(now.v, v, atol=2e-4 * np.abs(v).max())
        np.testing.assert_allclose(found[-1][1], moved, atol=1e-3 * np.abs(moved).max())
    for other in found[1:]:
        np.testing.assert_array_equal(found[0][0], other[0])
        np.testing.assert_array_equal(found[0][1], other[1])


def copied(one):
    """The same arrays in other memory."""
    return one._replace(
        x=one.x.copy(), v=one.v.copy(), pulled=one.pulled.copy(), cost=one.cost.copy()
    )
