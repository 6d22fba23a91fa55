from fractions import Fraction

import numpy as np
import pytest

from instances import distances, peaked
from whereish.solvers.optimal import output_generation
from whereish.solvers.optimal.barrier.rows import RowLists
from whereish.solvers.optimal.interior_point import InteriorPoint
from whereish.solvers.optimal.pricing import Pricer, _Proof
from whereish.solvers.optimal.programme import ChannelProgramme, Terms
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.repair import close_upward, complete, tight_matrix
from whereish.solvers.optimal.spanner import greedy_spanner

EPS = 1.07e-3


@pytest.fixture(scope="module")
def programme():
    places, prior = peaked(6, 6)
    d = distances(places)
    return ChannelProgramme(np.ascontiguousarray((prior[:, None] * d).T), EPS * d)


@pytest.fixture(scope="module")
def optimum(programme):
    return programme.value(solve_reference(programme))


@pytest.mark.parametrize("start", [[0], [0, 35], list(range(36))])
def test_pricing_finds_the_outputs_that_are_missing(programme, optimum, start, monkeypatch):
    monkeypatch.setattr(output_generation, "starting_outputs", lambda _: np.array(start))
    found = output_generation.solve_by_output_generation(programme, Terms(1e-6))
    assert found.status == "optimal"
    assert found.upper == pytest.approx(optimum, rel=2e-6)
    assert found.lower <= optimum * (1 + 1e-9)


def lists_of(programme):
    edges = greedy_spanner(programme.metric, 1.1).edges
    return RowLists(programme.closeness, edges, programme.cost.shape[0])


def test_pricing_excludes_nothing_that_helps(programme):
    """With mu = 0 no column has negative cost; with mu above all costs every one has."""
    pricer = Pricer(programme.cost, lists_of(programme), np.full(36, 1 / 36))
    everything = range(36)
    assert not pricer.price(np.zeros(36), everything, 1e-9).candidates
    dear = np.full(36, 2 * programme.cost.max())
    assert len(pricer.price(dear, everything, 1e-9).candidates) == 36


def test_every_iterate_bounds_the_optimum_from_below(programme, optimum):
    point = InteriorPoint(programme.cost, lists_of(programme), np.arange(36))
    for _ in range(25):
        at = point.measure()
        assert at.lower <= optimum * (1 + 1e-9)
        point.step(at)
        point.admit_rows(point.measure(), within=0.3, most=3)
    assert point.measure().lower > 0.99 * optimum


def exactly(rows, y, off):
    """G' y of one output's rows in rationals, every factor off by a part of an ulp."""
    out = [Fraction(0)] * 12
    for i, j, a, one in zip(*rows.pairs, y, strict=True):
        out[j] += Fraction(float(one))
        out[i] -= Fraction(float(a)) * (1 + off) * Fraction(float(one))
    return out


@pytest.mark.parametrize("off", [-Fraction(1, 2**53), Fraction(0), Fraction(1, 2**53)])
def test_bounds_hold_in_exact_arithmetic(off):
    """Rounding to nearest would put about half of the bounds above what the multipliers prove."""
    rng = np.random.default_rng(2)
    d = distances(rng.uniform(0, 1, (12, 2)))
    small = ChannelProgramme(np.ascontiguousarray(d * rng.dirichlet(np.ones(12))), d)
    point = InteriorPoint(small.cost, lists_of(small), np.arange(12))
    pricer = Pricer(small.cost, lists_of(small), np.full(12, 1 / 12))
    for _ in range(20):
        point.y = point.y * rng.lognormal(sigma=0.3, size=point.y.size)
        parts = [point.rows.only(z) for z in range(12)]
        cut = np.split(point.y, point.rows.start[1:-1])
        pulls = [exactly(rows, y, off) for rows, y in zip(parts, cut, strict=True)]
        rest = [
            [Fraction(float(c)) - g for c, g in zip(*both, strict=True)]
            for both in zip(small.cost, pulls, strict=True)
        ]
        proven = [min(column) for column in zip(*rest, strict=True)]
        at = point.measure()
        assert all(Fraction(float(m)) <= p for m, p in zip(at.bound_duals, proven, strict=True))
        assert Fraction(at.lower) <= sum(proven)
        proof = _Proof(parts[3].pull(cut[3], 12)[0], parts[3].rounding(cut[3], 12)[0])
        mu = small.cost[3] - proof.pulled  # of which nothing but roundings is left
        shown = pricer._shown(3, mu, proof)
        least = min(r - Fraction(float(m)) for r, m in zip(rest[3], mu, strict=True))
        assert Fraction(shown) <= least / Fraction(float(pricer.weight[0]))


def test_closure_is_the_least_private_majorant(programme):
    rng = np.random.default_rng(0)
    columns = rng.uniform(size=(36, 5))
    closed = close_upward(columns, programme.closeness)
    assert (closed >= columns).all()
    again = close_upward(closed, programme.closeness)
    np.testing.assert_allclose(again, closed, rtol=1e-14)
    below = programme.closeness[:, :, None] * closed[None]
    assert (closed[:, None] >= below * (1 - 1e-14)).all()


def test_completion_makes_any_columns_a_private_channel(programme, optimum):
    rng = np.random.default_rng(1)
    matrix = complete(programme, rng.uniform(size=(36, 36)) ** 8)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    used = matrix[:, matrix.max(axis=0) > 0]
    assert (used[:, None] <= np.exp(programme.metric)[:, :, None] * used * (1 + 1e-9)).all()
    assert programme.value(matrix) >= optimum * (1 - 1e-9)


def test_what_fills_the_rows_up_is_private_too(programme):
    """One steep column: filled up to its largest sum, the rest would be zero for one secret."""
    column = np.zeros((36, 36))
    column[:, 0] = programme.closeness[0]
    matrix = complete(programme, column)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    used = matrix[:, matrix.max(axis=0) > 0]
    assert used.shape[1] > 1
    assert (used[:, None] <= np.exp(programme.metric)[:, :, None] * used * (1 + 1e-9)).all()


def test_tight_matrix_is_tight(programme):
    matrix = tight_matrix(programme.closeness)
    assert matrix is not None
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-10)
    ratios = np.log(matrix[:, None] / matrix[None]).max(axis=2)
    np.testing.assert_allclose(ratios, programme.metric, rtol=1e-9, atol=1e-12)
