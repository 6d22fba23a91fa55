"""Bounds of a dual: transportation problems, payments by least detour, and bumps recombined."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from instances import distances
from whereish.solvers.optimal.local import transport
from whereish.solvers.optimal.local.solve import Neighbourhoods, solve_local
from whereish.solvers.optimal.local.transport import lowered_duals, shortfalls
from whereish.solvers.optimal.output_generation import solve_by_output_generation
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.start import passing
from whereish.solvers.optimal.start.bumps import recombined_bumps
from whereish.solvers.optimal.start.channels import simple_solution
from whereish.solvers.optimal.start.duals import tight_duals
from whereish.solvers.optimal.start.passing import early_duals, paid_duals
from whereish.threads import one_blas_thread


def scattered(n, level, *, loss, seed=3):
    """Places in the plane, most of which have next to no prior."""
    rng = np.random.default_rng(seed)
    d = distances(rng.uniform(0, math.sqrt(n), (n, 2)))
    prior = np.maximum(rng.dirichlet(np.full(n, 0.3)), 1e-12)
    losses = {"squared": d**2, "euclidean": d, "threshold": (d > 1.5).astype(float)}[loss]
    return ChannelProgramme(np.ascontiguousarray((prior[:, None] * losses).T), level * d)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


CASES = [(3.0, "threshold"), (1.0, "squared"), (1.0, "euclidean")]


@pytest.mark.parametrize(("level", "loss"), CASES)
def test_duals_from_anywhere_stay_below_the_optimum(level, loss):
    programme = scattered(70, level, loss=loss)
    exact = solve_by_output_generation(programme, Terms(1e-4))
    rng = np.random.default_rng(1)
    tight, best = tight_duals(programme), []
    for scale in (0.0, 0.1, 1.0):
        mu = tight * rng.lognormal(sigma=scale, size=programme.n)
        lowered = lowered_duals(programme.cost, mu, programme.closeness)
        assert lowered is not None
        for bound in (math.fsum(lowered), math.fsum(paid_duals(programme, mu))):
            assert bound <= exact.upper
            best.append(bound)
    early = math.fsum(early_duals(programme))
    assert early <= exact.upper
    assert best[0] >= best[1] - 1e-9 * exact.upper  # least in all, against a rule
    assert max(best) >= 0.6 * exact.lower
    assert early >= 0.5 * exact.lower


def proven(cost, mu, metric):
    """min (cost - mu) . k over private k, 0 <= k <= 1, by HiGHS on all pairs; 0 if mu is a dual."""
    n = cost.size
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.zeros((i.size, n))
    rows[np.arange(i.size), i] = np.exp(-metric[i, j])
    rows[np.arange(i.size), j] = -1.0
    found = linprog(cost - mu, rows, np.zeros(i.size), bounds=(0.0, 1.0), method="highs")
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("level", "loss"), CASES)
def test_what_is_lacking_is_what_private_columns_gain(level, loss, seed):
    """By duality the least sum of s is the most that a private column of entries <= 1 can gain."""
    programme = scattered(24, level, loss=loss, seed=seed)
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0, 1.5, 24) * programme.cost.mean(axis=0)
    some = False
    for cost in programme.cost[::5]:
        short = shortfalls(cost[None], mu, programme.closeness)[0]
        most = -proven(cost, mu, programme.metric)
        scale = float(np.abs(cost - mu).max())
        assert (short >= 0).all()
        assert float(short.sum()) == pytest.approx(most, abs=1e-6 * scale)
        assert proven(cost, mu - short, programme.metric) >= -1e-8 * scale
        some = some or most > 1e-3 * scale
    assert some


def test_payments_prove_what_they_say():
    programme = scattered(24, 1.0, loss="squared")
    mu = paid_duals(programme, 1.1 * tight_duals(programme))
    scale = float(programme.cost.max())
    for cost in programme.cost:
        assert proven(cost, mu, programme.metric) >= -1e-9 * scale


def test_roundings_of_payments_are_counted():
    """Against rationals, after payments between a few places in any order."""
    rng, n = np.random.default_rng(4), 6
    closeness = np.exp(-rng.uniform(0.1, 3.0, (n, n)))
    start = rng.uniform(-1.0, 1.0, n)
    rest, off = start.copy(), np.abs(start)
    results = off.copy()
    exact = [Fraction(float(one)) for one in start]
    for _ in range(200):
        giver, taker = (int(one) for one in rng.permutation(n)[:2])
        amount = float(rng.uniform(0.0, 1.0))
        passing._pay(rest, off, giver, taker, closeness, amount)
        results[giver] += abs(rest[giver])
        results[taker] += abs(rest[taker]) + 2.0 * closeness[taker, giver] * amount
        exact[giver] -= Fraction(amount)
        exact[taker] += Fraction(float(closeness[taker, giver])) * Fraction(amount)
    wrong = np.array([abs(float(e - Fraction(float(r)))) for e, r in zip(exact, rest, strict=True)])
    assert wrong.max() > 0
    eps = np.finfo(float).eps
    assert (wrong <= 2 * eps * off).all()
    np.testing.assert_allclose(off, results, rtol=1e-12)  # a product, its factor, and a sum


def test_shortfall_is_true_whatever_the_simplex_method_says(monkeypatch):
    """In rationals: with any flow, too much of it or negative, cost - mu + s - G' y >= 0."""
    programme = scattered(16, 1.0, loss="euclidean")
    rng = np.random.default_rng(5)

    used = {}

    def least_short(problems):
        (problem,) = problems
        most = float(problem.reduced.max())
        used.update(flow=rng.lognormal(size=problem.giver.size) * most)
        used.update(giver=problem.giver, taker=problem.taker)
        return [used["flow"]]

    monkeypatch.setattr(transport, "_least_short", least_short)
    for cost in programme.cost:
        mu = rng.uniform(0, 1.5, 16) * programme.cost.mean(axis=0)
        short = shortfalls(cost[None], mu, programme.closeness)[0]
        rest = [Fraction(float(c)) - Fraction(float(m)) for c, m in zip(cost, mu, strict=True)]
        for q, amount in enumerate(used["flow"]):
            i, j = used["giver"][q], used["taker"][q]
            rest[i] -= Fraction(float(amount))
            rest[j] += Fraction(float(programme.closeness[j, i])) * Fraction(float(amount))
        for one, s in zip(rest, short, strict=True):
            assert one + Fraction(float(s)) >= 0


def test_without_a_solution_everything_is_lacking(monkeypatch):
    class Nothing:
        x = None

    monkeypatch.setattr(transport, "linprog", lambda *args, **kwargs: Nothing())
    programme = scattered(16, 1.0, loss="euclidean")
    mu = 0.5 * programme.cost.mean(axis=0)
    short = shortfalls(programme.cost[3:4], mu, programme.closeness)[0]
    np.testing.assert_allclose(short, np.maximum(mu - programme.cost[3], 0.0), atol=1e-12)


@pytest.mark.parametrize("looks", [0, 1, 4])
def test_a_bound_is_not_half_done(looks):
    """Neither while threads look for outputs that lack nothing, nor while mu is lowered."""
    programme = scattered(16, 1.0, loss="euclidean")
    left = iter([False] * looks + [True])
    mu = tight_duals(programme)
    found = lowered_duals(programme.cost, mu, programme.closeness, over=lambda: next(left, True))
    assert found is None


@pytest.mark.parametrize("threads", ["2", "3"])
def test_duals_are_lowered_alike_in_any_number_of_threads(monkeypatch, threads):
    programme = scattered(70, 3.0, loss="threshold")
    mu = tight_duals(programme)
    found = []
    for count in ("1", threads):
        monkeypatch.setenv("WHEREISH_THREADS", count)
        found.append(lowered_duals(programme.cost, mu, programme.closeness))
    np.testing.assert_array_equal(*found)


def test_outputs_of_one_call_have_nothing_to_do_with_each_other():
    programme = scattered(40, 1.0, loss="squared")
    mu = 0.5 * programme.cost.mean(axis=0)
    found = shortfalls(programme.cost[:4], mu, programme.closeness)
    alone = [shortfalls(one[None], mu, programme.closeness)[0] for one in programme.cost[:4]]
    scale = float(programme.cost.max())
    np.testing.assert_allclose(found.sum(axis=1), np.sum(alone, axis=1), atol=1e-7 * scale)
    assert (found.sum(axis=1) > 1e-3 * scale).any()


def test_steep_thresholds_in_the_plane_are_solved_on_cores():
    """Places of next to no prior carry much of the dual; the rule for tails proves nothing here."""
    programme = scattered(120, 3.0, loss="threshold")
    start = simple_solution(programme)
    found = solve_local(programme, Terms(1e-2), start.matrix, Neighbourhoods(programme))
    assert found.gap <= 1e-2


def test_lowering_together_is_cheaper_than_alone():
    programme = scattered(120, 1.0, loss="squared")
    alone = math.fsum(paid_duals(programme, tight_duals(programme)))
    assert math.fsum(early_duals(programme)) > 1.02 * alone
    lacks = np.random.default_rng(2).uniform(1.0, 2.0, 120)
    delta = passing._together(lacks, programme.closeness)
    assert (delta >= 0).all()
    assert delta.sum() < 0.5 * lacks.sum()
    np.testing.assert_allclose(programme.closeness @ delta, lacks, rtol=0.7)


def test_bumps_make_a_private_channel_where_there_is_no_tight_one():
    programme = scattered(80, 1.0, loss="squared")
    matrix = recombined_bumps(programme)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-11)
    a = programme.closeness
    for k in matrix.T[matrix.max(axis=0) > 1e-9]:
        assert (a * k).max(axis=1) == pytest.approx(k, rel=1e-9, abs=1e-15)
    exact = solve_by_output_generation(programme, Terms(1e-3))
    assert programme.value(matrix) <= 1.3 * exact.upper


def test_a_bound_comes_before_any_solver():
    programme = scattered(260, 1.0, loss="squared")
    told = []
    found = solve_optimal(
        programme.cost, programme.metric, gap=0.3, closed=True, progress=told.append
    )
    stages = list(dict.fromkeys(one.stage for one in told))
    assert stages == ["few places", "passing on", "bumps"]
    assert found.method == "closed form"
    assert told[-1].gap == pytest.approx(found.gap)
    assert found.status == "optimal"
    assert 0.05 < found.gap <= 0.3
