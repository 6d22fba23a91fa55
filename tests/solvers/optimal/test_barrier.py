"""Rows with a barrier term: factors, directions and rows that enter, in any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.column import (
    Lapack,
    OneOutput,
    cheapest_column,
    corrected_move,
)
from whereish.solvers.optimal.barrier.coupling import Coupling
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    SharedRows,
    Steps,
    centre_targets,
    corrected_direction,
    draw_in_targets,
    products_after,
    pull_of_targets,
    row_moves,
    shares,
    vanish_targets,
)
from whereish.solvers.optimal.barrier.entering import ENTRY_SLACK, Entry, admit, near_active_pairs
from whereish.solvers.optimal.barrier.factors import OutputFactors, factor_regularised, pack
from whereish.solvers.optimal.barrier.rows import (
    RowLists,
    assemble_normal_matrix,
    feasible_multipliers,
)
from whereish.solvers.optimal.interior_point import InteriorPoint
from whereish.threads import one_blas_thread, workers

N = 12
RANGES = [(0, 2), (2, 3), (3, 5)]


@pytest.fixture
def rows():
    places = np.random.default_rng(1).uniform(0, 3, (N, 2))
    metric = np.linalg.norm(places[:, None] - places, axis=2)
    edges = np.argwhere(np.triu(metric < 1.5, 1))
    return RowLists(np.exp(-metric), edges, 5).rows(np.arange(5))


def normal_matrix(rows, weight, z):
    work = np.empty((N, N))
    assemble_normal_matrix(weight, rows.start[z], rows.start[z + 1], rows.pairs, work)
    return work


@pytest.mark.parametrize("threads", [1, 3])
def test_factors_and_solutions_are_those_of_one_output_after_the_other(rows, threads):
    random = np.random.default_rng(2)
    weight, right, mu = random.uniform(1, 2, rows.size), random.normal(size=(5, N)), np.arange(N)
    mu = mu.astype(float)
    inverses = [np.linalg.inv(normal_matrix(rows, weight, z)) for z in range(5)]
    expected = [inverse @ (q + mu) for inverse, q in zip(inverses, right, strict=True)]
    with one_blas_thread(), workers(threads=threads) as team:
        factors, coupling = OutputFactors(5, N), Coupling(len(RANGES), N)
        for _ in range(2):  # the memory of the first time is used again
            team.map(
                lambda at: factors.factor(rows, weight, RANGES[at], coupling.parts[at]),
                range(len(RANGES)),
            )
            coupling.factor(team)
        sums = team.map(lambda part: factors.solve(right, part), RANGES)
        np.testing.assert_allclose(sum(sums), right.sum(axis=0), rtol=1e-13)
        team.map(lambda part: factors.add_solutions(mu, right, part), RANGES)
        coupled = coupling.solve(mu)
    np.testing.assert_allclose(right, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.tril(coupling.parts[1]), np.tril(inverses[2]), rtol=1e-12)
    np.testing.assert_allclose(coupled, np.linalg.solve(sum(inverses), mu), rtol=1e-11)


def test_a_singular_matrix_is_regularised_as_one_alone_and_a_negative_one_refused(rows):
    weight = np.zeros(rows.size)
    with one_blas_thread(), workers(threads=1) as team:
        with pytest.raises(SolverError, match="no Cholesky factor"):
            OutputFactors(5, N).factor(rows, weight, (0, 5), np.empty((N, N)))
        coupling = Coupling(2, N)
        coupling.parts[:] = -np.eye(N)
        with pytest.raises(SolverError, match="no Cholesky factor"):
            coupling.factor(team)
        # One row only: a matrix of rank one, which has a factor once its zeros are not.
        weight = np.full(rows.size, 1e-14)
        weight[rows.start[:-1]] = 1.0
        factors = OutputFactors(5, N)
        factors.factor(rows, weight, (0, 5), np.empty((N, N)))
        right = np.ones((5, N))
        factors.solve(right, (0, 5))
        for z in range(5):
            coupling.parts[0], coupling.parts[1] = normal_matrix(rows, weight, z), 0.0
            coupling.factor(team)
            np.testing.assert_allclose(right[z], coupling.solve(np.ones(N)), rtol=1e-9)


def test_moves_of_a_range_are_those_of_numpy(rows):
    random = np.random.default_rng(3)
    at = AtRows(*random.uniform(0.5, 2, (3, rows.size)))
    target, dk = random.normal(size=rows.size), random.normal(size=(5, N))
    residual = random.normal(size=(5, N))
    pulled = rows.pull((target - at.y * at.residual) / at.slack, N) - residual
    ds = rows.slack(dk) + at.residual
    dy = (target - at.y * ds) / at.slack
    shared = SharedRows(rows, RANGES, None)
    found, moved = np.empty((5, N)), np.full((2, rows.size), np.nan)
    for part in RANGES:
        pull_of_targets(at, target, rows.start, rows.pairs, part, residual, found)
        falls = row_moves(at, target, rows.start, rows.pairs, part, dk, *moved)
        some = slice(*shared.rows_of(part))
        expected = (-ds / at.slack)[some].max(), (-dy / at.y)[some].max()
        assert falls == expected
    np.testing.assert_array_equal(found, pulled)
    np.testing.assert_array_equal(moved, [ds, dy])
    # The predictor's target, Mehrotra's, and Gondzio's, which pulls into [aim/10, 10 aim].
    trial = (at.slack + 0.3 * ds) * (at.y + 0.6 * dy)
    steps, aim = Steps(0.3, 0.6), float(trial.max()) / 25
    parts = [shared.rows_of(part) for part in RANGES]
    after = sum(products_after(at, ds, dy, steps, some) for some in parts)
    assert after == pytest.approx(trial.sum(), rel=1e-12)
    found = np.empty(rows.size)
    for some in parts:
        vanish_targets(at, some, found)
    np.testing.assert_array_equal(found, -at.slack * at.y)
    for some in parts:
        centre_targets(at, ds, dy, aim, some, found)
    centred = aim - at.slack * at.y - ds * dy
    np.testing.assert_allclose(found, centred, rtol=1e-12)
    for some in parts:
        draw_in_targets(at, ds, dy, steps, aim, some, found)
    pulled_in = centred + np.maximum(np.clip(trial, 0.1 * aim, 10 * aim) - trial, -10 * aim)
    np.testing.assert_allclose(found, pulled_in, rtol=1e-9, atol=1e-12)
    assert (trial < 0.1 * aim).any()
    assert (trial > 20 * aim).any()
    dk[4, 0] = np.nan
    assert np.isnan(row_moves(at, target, rows.start, rows.pairs, (3, 5), dk, ds, dy)[0])


class Dense:
    """H dk - A' dmu = q with sum_z dk_z given, all in one matrix."""

    def __init__(self, rows, at, missing):
        self.inverses = [np.linalg.inv(normal_matrix(rows, at.y / at.slack, z)) for z in range(5)]
        self.missing = missing

    def free(self, q, part):
        for z in range(*part):
            q[z] = self.inverses[z] @ q[z]
        return q[slice(*part)].sum(axis=0)

    def couple(self, sums):
        return np.linalg.solve(sum(self.inverses), self.missing - sums)

    def follow(self, dmu, dk, part):
        for z in range(*part):
            dk[z] += self.inverses[z] @ dmu


@pytest.mark.parametrize("threads", [1, 3])
def test_directions_solve_the_newton_equations_in_any_parts(rows, threads):
    """G' dy + dmu = residual, sum dk = missing, G dk - ds = -(G k - s), s dy + y ds = target."""
    random = np.random.default_rng(4)
    at = AtRows(*random.uniform(0.5, 2, (2, rows.size)), random.normal(size=rows.size))
    residual, missing = random.normal(size=(5, N)), random.normal(size=N)
    with workers(threads=threads) as team:
        shared = SharedRows(rows, RANGES, team)
        found = corrected_direction(
            shared, at, system=Dense(rows, at, missing), dual_residual=residual, corrections=3
        )
    ds, dy = found.moves.ds, found.moves.dy
    np.testing.assert_allclose(rows.pull(dy, N) + found.dmu, residual, atol=1e-9)
    np.testing.assert_allclose(found.dk.sum(axis=0), missing, atol=1e-9)
    np.testing.assert_allclose(rows.slack(found.dk) - ds, -at.residual, atol=1e-9)
    assert 0 < min(found.steps) <= max(found.steps) <= 1
    assert (at.slack + found.steps.primal * ds).min() > -1e-12
    assert (at.y + found.steps.dual * dy).min() > -1e-12


def lapack():
    return Lapack(address("dpotrf"), address("dtpsv"), address("dgesv"))


class OneSum:
    """H dk - dtau w = q with w . dk given, for one output."""

    def __init__(self, rows, at, weight, missing):
        self.inverse = np.linalg.inv(normal_matrix(rows, at.y / at.slack, 0))
        self.weight, self.missing = weight, missing

    def free(self, q, part):
        q[0] = self.inverse @ q[0]
        return q[0].copy()

    def couple(self, sums):
        along = self.weight @ self.inverse @ self.weight
        return np.array([(self.missing - self.weight @ sums) / along])

    def follow(self, dmu, dk, part):
        dk[0] += dmu[0] * self.inverse @ self.weight


def test_the_compiled_direction_of_one_output_is_that_of_all(rows):
    random = np.random.default_rng(8)
    mine = rows.only(1)
    weight, residual = random.uniform(0.5, 1, N), random.normal(size=(1, N))
    at = AtRows(*random.uniform(0.5, 2, (2, mine.size)), random.normal(size=mine.size))
    found = corrected_direction(
        SharedRows.alone(mine),
        at,
        system=OneSum(mine, at, weight, 0.3),
        dual_residual=residual,
        corrections=3,
    )
    work, factor = normal_matrix(mine, at.y / at.slack, 0), np.empty(N * (N + 1) // 2)
    along = np.linalg.solve(work, weight)
    with one_blas_thread():
        assert factor_regularised(address("dpotrf"), work)
        pack(work, factor)
        system = OneOutput(factor, weight, along, 0.3)
        dk, dy, dtau, steps = corrected_move(address("dtpsv"), system, at, *mine, residual, 3)
    np.testing.assert_allclose(dk, found.dk, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(dy, found.moves.dy, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose([dtau, *steps], [found.dmu[0], *found.steps], rtol=1e-9)
    # Where the first direction is long enough nothing is corrected: they are not always the same.
    first = corrected_move(address("dtpsv"), system, at, *mine, residual, 0)
    assert not np.allclose(first[1], dy)


@pytest.mark.parametrize("below", [0.0, 0.8])
def test_the_cheapest_column_is_that_of_a_linear_programme(rows, below):
    """Above zero the bound alone decides; below, half of the optimum's size is enough."""
    from scipy.optimize import linprog

    random = np.random.default_rng(9)
    mine, weight = rows.only(0), random.uniform(0.5, 1, N)
    reduced = random.uniform(0.1, 1, N) - below
    source, target, a = mine.pairs
    matrix = np.zeros((mine.size, N))
    matrix[np.arange(mine.size), source] += a
    matrix[np.arange(mine.size), target] -= 1.0
    best = linprog(reduced, matrix, np.zeros(mine.size), weight[None], [1.0], method="highs").fun
    tau = min((reduced / weight).min(), 0.0) - 1.0
    y = feasible_multipliers(reduced - tau * weight, mine)
    with one_blas_thread():
        found, lower, k, multipliers = cheapest_column(
            lapack(), reduced, weight, *mine, y, tau, 1e-9
        )
    assert found
    assert multipliers.min() > 0
    np.testing.assert_allclose(weight @ k, 1.0, rtol=1e-9)
    assert mine.slack(k[None]).min() > -1e-12
    proven = ((reduced - mine.pull(multipliers, N)[0]) / weight).min()
    assert lower == pytest.approx(proven, rel=1e-12)
    assert lower <= best * (1 + np.sign(best) * 1e-9) <= reduced @ k + 1e-9
    if below:
        assert best < 0
        assert reduced @ k - lower <= 0.5 * abs(reduced @ k)
    else:
        assert lower >= 0


@pytest.mark.parametrize(("count", "parts"), [(1, 8), (7, 8), (8, 8), (30, 8)])
def test_shares_are_all_of_it_in_parts_that_differ_by_one(count, parts):
    found = shares(count, parts)
    assert [begin for begin, _ in found[1:]] == [end for _, end in found[:-1]]
    assert (found[0][0], found[-1][1], len(found)) == (0, count, min(count, parts))
    sizes = {end - begin for begin, end in found}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_that_enter_are_those_near_equality_with_what_their_targets_give(threads):
    random = np.random.default_rng(5)
    places = random.uniform(0, 3, (N, 2))
    closeness = np.exp(-np.linalg.norm(places[:, None] - places, axis=2))
    rows = RowLists(closeness, np.column_stack([np.arange(N - 1), np.arange(1, N)]), 5).rows(
        np.arange(5)
    )
    k, y = random.uniform(0.2, 1, (5, N)), random.uniform(1, 2, rows.size)
    s = random.uniform(1, 2, rows.size)
    entry = Entry(0.3, 3, 0.02, 0.01)
    with workers(threads=threads) as team:
        found = admit(SharedRows(rows, RANGES, team), k, closeness, s=s, y=y, entry=entry)
        nothing = Entry(-10.0, 3, 0.02, 0.01)
        shared = SharedRows(rows, RANGES, team)
        assert admit(shared, k, closeness, s=s, y=y, entry=nothing) is None
    old = rows.pairs.source.astype(int) * N + rows.pairs.target
    entered = 0
    for z in range(5):
        near, _ = near_active_pairs(k[z][None], closeness, 0.3, 3)
        part, after = slice(*rows.start[z : z + 2]), slice(*found.rows.start[z : z + 2])
        new = np.setdiff1d(near, old[part])
        entered += new.size
        np.testing.assert_array_equal(found.keys[after], np.union1d(old[part], near))
        pairs = [one[after] for one in found.rows.pairs]
        np.testing.assert_array_equal(pairs[0] * N + pairs[1], found.keys[after])
        np.testing.assert_array_equal(pairs[2], closeness[pairs[0], pairs[1]])
        is_new = np.isin(found.keys[after], new)
        np.testing.assert_array_equal(found.s[after][~is_new], s[part])
        i, j = np.divmod(new, N)
        slack = np.maximum(k[z, j] - closeness[i, j] * k[z, i], ENTRY_SLACK * k[z, j])
        np.testing.assert_array_equal(found.s[after][is_new], slack)
        inflow = np.bincount(rows.pairs.target[part], y[part], minlength=N)
        np.testing.assert_allclose(
            found.y[after][is_new], np.minimum(0.1 * 0.02 / slack, 0.01 * inflow[j])
        )
        # What a new row has its target's others have lost.
        total = np.bincount(pairs[1], found.y[after], minlength=N)
        np.testing.assert_allclose(total, inflow, rtol=1e-12)
    assert entered > 10


def test_multipliers_are_positive_and_pull_to_what_was_asked(rows):
    total = np.random.default_rng(6).uniform(0.1, 1, N)
    y = feasible_multipliers(total, rows.only(2))
    assert y.min() > 0
    np.testing.assert_allclose(rows.only(2).pull(y, N)[0], total, rtol=1e-12)


@pytest.mark.parametrize("threads", [2, 3])
def test_an_interior_point_moves_the_same_in_any_number_of_threads(rows, threads):
    places = np.random.default_rng(7).uniform(0, 3, (N, 2))
    metric = np.linalg.norm(places[:, None] - places, axis=2)
    edges = np.argwhere(np.triu(metric < 1.5, 1))
    found = []
    for count in (1, threads):
        with workers(threads=count) as team:
            lists = RowLists(np.exp(-metric), edges, N)
            point = InteriorPoint(metric / N, lists, np.arange(N), team)
            for _ in range(6):
                standing = point.step(point.measure())
                point.admit_rows(standing, within=0.3, most=3)
            found.append((point.k, point.s, point.y, point.mu, point.measure().bound_duals))
            keys = point.rows.pairs.source.astype(int) * N + point.rows.pairs.target
            np.testing.assert_array_equal(keys, np.concatenate(lists.keys))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
