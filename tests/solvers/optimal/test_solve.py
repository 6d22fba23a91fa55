from itertools import pairwise

import numpy as np
import pytest

from instances import distances, peaked
from whereish.errors import InvalidInput
from whereish.solvers.optimal.large_scale import solve_large
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner

EPS = 1.07e-3


def instance(columns, rows, loss, prior, **kwargs):
    places, peaks = peaked(columns, rows, **kwargs)
    d = distances(places)
    p = peaks if prior == "peaked" else np.full(len(d), 1 / len(d))
    return (p[:, None] * (d if loss == "euclidean" else d**2)).T, EPS * d


def assert_private(matrix, metric):
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    for k in matrix.T[matrix.max(axis=0) > 1e-9]:
        assert (k[:, None] <= np.exp(metric) * k * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize("loss", ["euclidean", "squared"])
@pytest.mark.parametrize("prior", ["peaked", "uniform"])
@pytest.mark.parametrize(
    ("shape", "solver"), [((5, 5), "simplex"), ((5, 5), "piqp"), ((7, 7), "piqp")]
)
def test_same_optimum_as_general_solvers(loss, prior, shape, solver):
    cost, metric = instance(*shape, loss, prior)
    result = solve_optimal(cost, metric, gap=2e-7)
    reference = float(
        (cost.T * solve_reference(ChannelProgramme(cost, metric), solver=solver)).sum()
    )
    assert result.status == "optimal"
    assert result.upper == pytest.approx(reference, rel=1e-6)
    assert result.lower <= reference * (1 + 1e-9)
    assert_private(result.matrix, metric)


def test_seven_by_seven_with_ln_2_per_cell():
    places = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    d = distances(places)
    result = solve_optimal(d / 49, np.log(2) * d, gap=1e-6)
    assert result.upper == pytest.approx(1.7657, abs=5e-5)


def test_two_places_in_closed_form():
    """Of two places at distance D, randomised response with odds e^D loses 1/(1 + e^D)."""
    metric = np.array([[0.0, 1.5], [1.5, 0.0]])
    result = solve_optimal(np.array([[0.0, 0.5], [0.5, 0.0]]), metric, gap=1e-8)
    assert result.upper == pytest.approx(1 / (1 + np.exp(1.5)), rel=1e-7)


def test_discrete_metric_in_closed_form():
    """With equal distances D, n-ary randomised response is optimal: loss (n-1)/(n-1+e^D)."""
    n, level = 12, 1.3
    off = 1.0 - np.eye(n)
    result = solve_optimal(off / n, level * off, gap=1e-7)
    assert result.upper == pytest.approx((n - 1) / (n - 1 + np.exp(level)), rel=1e-6)


def test_matrix_that_breaks_the_triangle_inequality_means_its_shortest_paths():
    cost, metric = instance(4, 4, "euclidean", "peaked")
    broken = metric.copy()
    broken[0, 15] = broken[15, 0] = 50.0
    tight = solve_optimal(cost, metric, gap=1e-7)
    loose = solve_optimal(cost, broken, gap=1e-7)
    assert loose.upper == pytest.approx(tight.upper, rel=1e-6)


def test_spanner_loses_at_least_the_optimum():
    cost, metric = instance(6, 6, "euclidean", "peaked")
    exact = solve_optimal(cost, metric, gap=1e-6)
    losses = [exact.upper]
    for dilation in (1.05, 1.3, 2.0):
        approximate = greedy_spanner(metric, dilation).graph_distances / dilation
        losses.append(solve_optimal(cost, approximate, gap=1e-6).upper)
    assert losses == sorted(losses)
    assert losses[1] < 1.08 * losses[0] < losses[3]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bounds_enclose_on_scattered_places(seed):
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 6000, (40, 2))
    d = distances(places)
    prior = rng.dirichlet(np.full(40, 0.4))
    result = solve_optimal((prior[:, None] * d).T, EPS * d, gap=1e-6)
    assert result.status == "optimal"
    assert 0 <= result.gap <= 1e-6
    assert_private(result.matrix, EPS * d)


def test_rough_solver_is_private_and_its_bounds_enclose_the_optimum():
    cost, metric = instance(9, 9, "euclidean", "peaked")
    exact = solve_optimal(cost, metric, gap=1e-6)
    rough = solve_large(ChannelProgramme(cost, metric), Terms(1e-2), most_sweeps=3000)
    assert_private(rough.matrix, metric)
    assert rough.lower <= exact.lower * (1 + 1e-6)
    assert exact.upper <= rough.upper * (1 + 1e-6)
    assert rough.gap < 0.02


def test_time_limit_returns_an_honest_gap():
    cost, metric = instance(8, 8, "euclidean", "peaked")
    stopped = solve_optimal(cost, metric, gap=1e-9, time_limit=0.0)
    assert stopped.status == "time limit"
    assert_private(stopped.matrix, metric)
    exact = solve_optimal(cost, metric, gap=1e-6)
    assert stopped.lower <= exact.upper <= stopped.upper
    assert stopped.gap < 0.4  # a bound that means something, whatever the limit


def test_progress_is_monotone():
    seen = []
    cost, metric = instance(6, 6, "euclidean", "peaked")
    solve_optimal(cost, metric, gap=1e-6, progress=seen.append)
    assert all(b.upper <= a.upper and b.lower >= a.lower for a, b in pairwise(seen))
    assert seen[-1].gap <= 1e-6


@pytest.mark.parametrize("change", ["negative cost", "asymmetric", "nan", "diagonal", "shape"])
def test_bad_input(change):
    cost, metric = (a.copy() for a in instance(3, 3, "euclidean", "peaked"))
    if change == "negative cost":
        cost[0, 0] = -1
    elif change == "asymmetric":
        metric[0, 1] += 1
    elif change == "nan":
        metric[0, 1] = metric[1, 0] = np.nan
    elif change == "diagonal":
        metric[2, 2] = 1
    else:
        metric = metric[:-1]
    with pytest.raises(InvalidInput):
        solve_optimal(cost, metric)
