"""Interior points on cores, outputs that another one beats, and channels from near columns."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from instances import distances
from whereish.solvers.optimal import solve as solving
from whereish.solvers.optimal.local.cores import covering, flat_cores, links
from whereish.solvers.optimal.local.kernels import Pulled, price_of_tails
from whereish.solvers.optimal.local.point import LocalPoint
from whereish.solvers.optimal.local.solve import Neighbourhoods, _Local, solve_local
from whereish.solvers.optimal.output_generation import solve_by_output_generation
from whereish.solvers.optimal.polish import Polish
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.repair import complete
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.start.channels import simple_solution, strictly_private
from whereish.solvers.optimal.start.undominated import undominated
from whereish.threads import one_blas_thread


def road(n, level, *, loss="squared", zeros=0.0, seed=5):
    """Places along a winding road, many of prior zero."""
    rng = np.random.default_rng(seed)
    along = np.cumsum(rng.uniform(0.2, 1.8, n))
    d = distances(np.c_[along, 3 * np.sin(along / 15)])
    prior = np.where(rng.random(n) < zeros, 0.0, rng.gamma(0.5, size=n) + 1e-3)
    losses = {"squared": d**2, "euclidean": d, "threshold": (d > 1.5).astype(float)}[loss]
    return ChannelProgramme(
        np.ascontiguousarray((prior[:, None] / prior.sum() * losses).T), level * d
    )


def plane(n, level, *, loss, seed=6):
    rng = np.random.default_rng(seed)
    d = distances(rng.uniform(0, math.sqrt(n), (n, 2)))
    prior = rng.lognormal(sigma=1.5, size=n)
    losses = d if loss == "euclidean" else (d > 1.5).astype(float)
    return ChannelProgramme(
        np.ascontiguousarray((prior[:, None] / prior.sum() * losses).T), level * d
    )


def assert_private(matrix, metric):
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-11)
    for k in matrix.T[matrix.max(axis=0) > 1e-9]:
        assert (k[:, None] <= np.exp(np.minimum(metric, 500)) * k * (1 + 1e-9) + 1e-15).all()


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


@pytest.mark.parametrize(
    ("programme", "gap"),
    [
        (road(90, 1.0), 1e-2),
        (road(90, 1.0, zeros=0.7), 1e-2),
        (road(90, 0.5, loss="euclidean", seed=8), 1e-2),
        (plane(80, 3.0, loss="euclidean"), 1e-2),
        (road(80, 2.0, loss="threshold", seed=9), 0.1),
        (plane(80, 3.0, loss="threshold"), 0.5),
    ],
    ids=["road", "zeros", "flat", "plane", "threshold", "plane, threshold"],
)
def test_brackets_the_optimum_that_all_places_have(programme, gap):
    start = simple_solution(programme)
    found = solve_local(programme, Terms(1e-2), start.matrix, Neighbourhoods(programme))
    exact = solve_by_output_generation(programme, Terms(3e-4))
    assert exact.gap <= 3e-4
    assert found.lower <= exact.upper
    assert found.upper >= exact.lower * (1 - 1e-12)
    assert found.upper <= 1.01 * exact.upper
    assert found.gap <= gap
    assert_private(found.matrix, programme.metric)


@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_bound_is_true_for_any_multipliers(zeros):
    programme = road(90, 1.0, zeros=zeros)
    exact = solve_by_output_generation(programme, Terms(3e-4))
    run = _Local(programme, 1e-2, simple_solution(programme).matrix, Neighbourhoods(programme))
    run.round(Terms(1e-2))
    rng = np.random.default_rng(1)
    point, best = run.point, -np.inf
    y, mu = point.y, point.mu
    for scale in (0.0, 1e-4, 1e-2, 0.3):
        point.y = y * rng.lognormal(sigma=scale, size=y.size)
        point.mu = mu * rng.lognormal(sigma=scale, size=mu.size)
        bound = math.fsum(point.bound())
        assert bound <= exact.upper
        best = max(best, bound)
    assert best >= 0.98 * exact.lower


def least_over_private_columns(reduced, metric):
    """min reduced . k over d-private k >= 0 that sum to one, by HiGHS on all pairs."""
    n = len(reduced)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.zeros((i.size, n))
    rows[np.arange(i.size), i] = np.exp(-metric[i, j])
    rows[np.arange(i.size), j] = -1.0
    found = linprog(reduced, rows, np.zeros(i.size), np.ones((1, n)), [1.0], method="highs")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("radius", [0.6, 1.5])
def test_tails_alone_prove_what_they_say(radius, seed):
    """Of one output, whose core has no multipliers: c - mu is positive on all private columns.

    Columns that are tight wherever something is passed on make it zero, so more would be too much.
    """
    programme = road(20, 1.0, seed=seed, loss="euclidean")
    rng = np.random.default_rng(seed)
    near = np.argsort(programme.metric, axis=1, kind="stable")[:, 1:13]
    least = []
    for z in range(20):
        one = ChannelProgramme(programme.cost[z : z + 1], programme.metric)
        away = np.ascontiguousarray(programme.metric[z : z + 1])
        mu = rng.uniform(0, 1.6, 20) * programme.cost[z]
        linked = links(one, away, away <= radius, mu, near)
        cores = flat_cores(linked)
        nothing = Pulled(np.zeros(cores.place.size), np.zeros(cores.place.size))
        bound = price_of_tails(one.cost, mu, nothing, cores, linked, one.closeness, near, 1e-15)
        scale = float(np.abs(one.cost - bound).max())
        assert not np.allclose(bound, one.cost[0], rtol=1e-6)
        left = (one.cost[0] - bound) / scale
        least.append(least_over_private_columns(left, one.metric))
    assert min(least) >= -1e-8


def test_bound_of_cores_holds_in_exact_arithmetic():
    """Of cores that hold all places, in rationals; rounded to nearest, some bounds are too high."""
    programme = plane(12, 1.0, loss="euclidean")
    around = Neighbourhoods(programme)
    around.away = np.zeros((12, 12))
    run = _Local(programme, 1e-2, simple_solution(programme).matrix, around)
    point = LocalPoint(programme, run.links, run._keys(), run.start, run.near)
    rng, start = np.random.default_rng(3), point.y
    source, target, a = point.rows.pairs
    for _ in range(20):
        point.y = start * rng.lognormal(sigma=0.3, size=start.size)
        point.mu = rng.uniform(0, 0.1, 12) * programme.cost.mean(axis=0)
        rest = [Fraction(float(c)) for c in programme.cost[:, point.cores.place[:12]].ravel()]
        for i, j, factor, y in zip(source, target, a, point.y, strict=True):
            rest[j] -= Fraction(float(y))
            rest[i] += Fraction(float(factor)) * Fraction(float(y))
        proven = [min(rest[x::12]) for x in range(12)]
        for bound, exact in zip(point.bound(), proven, strict=True):
            assert Fraction(float(bound)) <= exact


def test_duals_begin_feasible_and_the_start_inside():
    programme = road(40, 1.0, zeros=0.5)
    around = Neighbourhoods(programme)
    inside = covering(around.away, around.away <= 4.0)
    near = np.argsort(programme.metric, axis=1)[:, 1:9]
    linked = links(programme, around.away, inside, np.zeros(programme.n), near)
    run = _Local(programme, 1e-2, simple_solution(programme).matrix, around)
    run.links = linked
    point = LocalPoint(programme, linked, run._keys(), run.start, near)
    assert (point.s > 0).all()
    assert (point.y > 0).all()
    rest = point.cost - point.cores.gather(point.mu) - point.rows.pull(point.y, point.k.size)[0]
    assert np.abs(rest).max() <= 1e-9 * np.abs(point.cost).max()


def test_a_place_far_from_all_others_has_a_core_with_rows():
    rng = np.random.default_rng(1)
    lonely = [[400.0, 400.0], [-300.0, 10.0], [10.0, 900.0]]
    d = distances(np.concatenate([rng.uniform(0, 30, (90, 2)), lonely]))
    prior = rng.dirichlet(np.ones(93))
    programme = ChannelProgramme(np.ascontiguousarray((prior[:, None] * d).T), np.minimum(d, 700.0))
    around = Neighbourhoods(programme)
    assert covering(around.away, around.away <= 8.0).sum(axis=1).min() >= 2
    found = solve_local(programme, Terms(1e-2), simple_solution(programme).matrix, around)
    exact = solve_by_output_generation(programme, Terms(1e-3))
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper


def test_cores_are_for_those_who_have_time(monkeypatch):
    """With less than LEAST_LEFT seconds left, sweeps come at once."""
    programme = road(260, 1.0)
    asked = []

    def local(programme, terms, start, around):
        asked.append(terms.limit_s)
        return solve_local(programme, terms, start, around)

    monkeypatch.setattr(solving, "solve_local", local)
    # A road's bound comes at once, and would leave nothing to solve.
    monkeypatch.setattr(solving, "early_bracket", lambda programme, terms, simple: simple)
    for limit, expected in ((solving.LEAST_LEFT - 1.0, 0), (solving.LEAST_LEFT + 20.0, 1)):
        asked.clear()
        found = solve_optimal(programme.cost, programme.metric, gap=1e-2, time_limit=limit)
        assert len(asked) == expected
        assert found.gap < 0.2
    assert asked[0] < limit  # and leave half of it to what follows
    asked.clear()
    solve_optimal(programme.cost, programme.metric, gap=1e-2)
    assert asked == [None]


def test_wide_cores_are_not_worth_it():
    assert Neighbourhoods(road(300, 1.0)).radius == 12.0
    assert Neighbourhoods(road(300, 0.05)).radius is None
    around = Neighbourhoods(road(300, 1.0))
    around.away = np.zeros((6000, 300))
    around.away[:, 80:] = 99.0
    assert around.radius is None  # a small share of the places, but too much in all


def test_start_is_strictly_private():
    metric = road(50, 1.0).metric
    matrix = strictly_private(metric)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    ratio = np.log(matrix[:, None, :] / matrix[None]).max(axis=2)
    apart = metric > 0
    assert (ratio[apart] / metric[apart]).max() < 1 - 1e-3


def test_beaten_outputs_change_nothing():
    rng = np.random.default_rng(3)
    cost = (rng.integers(0, 4, (40, 6))).astype(float)
    kept = undominated(cost)
    assert 0 < kept.size < 40
    for z in range(40):
        beaten_by = [t for t in kept if t != z and (cost[t] <= cost[z]).all()]
        assert (z in kept) == (not beaten_by)
    metric = 0.7 * distances(rng.uniform(0, 3, (6, 2)))
    whole = solve_by_output_generation(ChannelProgramme(cost + 1, metric), Terms(1e-6))
    found = solve_optimal(cost + 1, metric, gap=1e-6)
    assert found.upper == pytest.approx(whole.upper, rel=3e-6)
    assert found.matrix.shape == (6, 40)
    assert found.upper == pytest.approx(float(((cost + 1).T * found.matrix).sum()), rel=1e-12)
    unused = np.setdiff1d(np.arange(40), kept)
    assert not found.matrix[:, unused].any()


def test_near_places_are_polished_where_one_factor_ruins_the_channel():
    """Sums that are off by a hundredth between places a thousandth of a nat apart."""
    rng = np.random.default_rng(4)
    middles = np.repeat(rng.uniform(0, 4, (15, 2)), 2, axis=0)
    d = distances(middles + rng.normal(size=(30, 2)) * 5e-4)
    programme = ChannelProgramme(np.ascontiguousarray(d / 30), d)
    best = solve_by_output_generation(programme, Terms(1e-3))
    noisy = best.matrix * rng.uniform(0.99, 1.01, best.matrix.shape)
    mended = complete(programme, noisy)
    polished = Polish(programme, 1e-2).channel(noisy)
    assert_private(polished, programme.metric)
    assert programme.value(mended) > 1.2 * best.upper
    assert programme.value(polished) < 1.05 * best.upper


def test_places_over_many_decades_reach_the_gap():
    rng = np.random.default_rng(7)
    radius = 40 * 10 ** rng.uniform(-8, 0, 90)
    angle = rng.uniform(0, 2 * np.pi, 90)
    d = distances(np.c_[radius * np.cos(angle), radius * np.sin(angle)])
    result = solve_optimal(np.ascontiguousarray((d**2 / 90).T), d, gap=1e-2)
    assert result.status == "optimal"
    assert result.gap <= 1e-2
    assert_private(result.matrix, d)


def test_steps_do_not_depend_on_the_number_of_threads(monkeypatch):
    """Also where parts have unlike numbers of variables, and fewer outputs than parts."""
    for places in (5, 60):
        programme, found = road(places, 1.0, zeros=0.3), []
        for threads in ("1", "2", "5"):
            monkeypatch.setenv("WHEREISH_THREADS", threads)
            start = simple_solution(programme).matrix
            run = _Local(programme, 1e-2, start, Neighbourhoods(programme))
            point = LocalPoint(programme, run.links, run._keys(), run.start, run.near)
            steps = [point.step() for _ in range(4)]
            found.append(np.concatenate([point.k, point.s, point.y, point.mu, *steps]))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


def test_steps_solve_the_newton_system_of_all_outputs():
    """The sums come right by a full step, and slacks follow the columns."""
    programme = road(40, 1.0)
    start = simple_solution(programme).matrix
    run = _Local(programme, 1e-2, start, Neighbourhoods(programme))
    point = LocalPoint(programme, run.links, run._keys(), run.start, run.near)
    point.k = 0.9 * point.k
    missing = 1.0 - point.cores.sums(point.k, 40)
    apart = point.rows.slack(point.k[None]) - point.s
    primal, dual = point.step()
    assert 0.0 < primal <= 1.0
    assert 0.0 < dual <= 1.0
    left = 1.0 - point.cores.sums(point.k, 40)
    np.testing.assert_allclose(left, (1.0 - primal) * missing, atol=1e-9)
    now = point.rows.slack(point.k[None]) - point.s
    np.testing.assert_allclose(now, (1.0 - primal) * apart, atol=1e-9)
    rest = point.cost - point.cores.gather(point.mu) - point.rows.pull(point.y, point.k.size)[0]
    np.testing.assert_allclose(rest, 0.0, atol=1e-6 * np.abs(point.cost).max())
