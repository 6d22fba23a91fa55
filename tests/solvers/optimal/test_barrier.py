"""Rows with a barrier term: factors, directions and rows that enter, in any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.solvers.optimal.dense_newton import N, dense, normal_matrix, reference, rows_of_outputs

from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.coupling import BLOCKS, Coupling, add_block, factor_sum
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    SharedRows,
    Steps,
    centre_targets,
    draw_in_targets,
    products_after,
    pull_of_targets,
    row_moves,
    shares,
    vanish_targets,
)
from whereish.solvers.optimal.barrier.entering import ENTRY_SLACK, Entry, admit, near_active_pairs
from whereish.solvers.optimal.barrier.factors import (
    NO_FACTOR,
    add_solutions,
    factor_outputs,
    solve_outputs,
    solve_packed,
)
from whereish.solvers.optimal.barrier.newton import Rules, newton_step
from whereish.solvers.optimal.barrier.rows import (
    Pairs,
    RowLists,
    Rows,
    feasible_multipliers,
)
from whereish.solvers.optimal.barrier.systems import NewtonSystem, OfCores, Weighed
from whereish.solvers.optimal.interior_point import InteriorPoint
from whereish.threads import one_blas_thread, workers

RANGES = [(0, 2), (2, 3), (3, 5)]


@pytest.fixture
def rows():
    return rows_of_outputs()


def factored(rows, weight, part, factors, inverses):
    addresses = address("dpotrf"), address("dpotri")
    return factor_outputs(*addresses, weight, *rows, part, factors, inverses)


def summed(coupling):
    for block in range(BLOCKS):
        add_block(coupling, block)
    return factor_sum(address("dpotrf"), coupling)


def coupled(coupling, right):
    solution = right.copy()
    solve_packed(address("dtpsv"), coupling.packed, solution)
    return solution


def test_factors_and_solutions_are_those_of_one_output_after_the_other(rows):
    random, tpsv = np.random.default_rng(2), address("dtpsv")
    weight, right = random.uniform(1, 2, rows.size), random.normal(size=(5, N + 2))
    mu, beyond = np.arange(N).astype(float), right[:, N:].copy()
    inverses = [np.linalg.inv(normal_matrix(rows, weight, z)) for z in range(5)]
    expected = [inverse @ (q + mu) for inverse, q in zip(inverses, right[:, :N], strict=True)]
    factors, coupling = np.empty((5, N * (N + 1) // 2)), Coupling.of(len(RANGES), N)
    sums = np.zeros(N)
    with one_blas_thread():
        for _ in range(2):  # the memory of the first time is used again
            for at, part in enumerate(RANGES):
                assert factored(rows, weight, part, factors, coupling.parts[at])
            assert summed(coupling)
        for part in RANGES:
            solve_outputs(tpsv, factors, part, right, sums)
        np.testing.assert_allclose(sums, right[:, :N].sum(axis=0), rtol=1e-13)
        for part in RANGES:
            add_solutions(tpsv, factors, part, mu, right)
    np.testing.assert_allclose(right[:, :N], expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(right[:, N:], beyond)
    np.testing.assert_allclose(np.tril(coupling.parts[1]), np.tril(inverses[2]), rtol=1e-12)
    np.testing.assert_allclose(
        coupled(coupling, mu), np.linalg.solve(sum(inverses), mu), rtol=1e-11
    )


def test_a_singular_matrix_is_regularised_as_one_alone_and_a_negative_one_refused(rows):
    weight, factors = np.zeros(rows.size), np.empty((5, N * (N + 1) // 2))
    with one_blas_thread():
        assert not factored(rows, weight, (0, 5), factors, np.empty((N, N)))
        coupling = Coupling.of(2, N)
        coupling.parts[:] = -np.eye(N)
        assert not summed(coupling)
        # One row only: a matrix of rank one, which has a factor once its zeros are not.
        weight = np.full(rows.size, 1e-14)
        weight[rows.start[:-1]] = 1.0
        assert factored(rows, weight, (0, 5), factors, np.empty((N, N)))
        right = np.ones((5, N))
        solve_outputs(address("dtpsv"), factors, (0, 5), right, np.zeros(N))
        for z in range(5):
            coupling.parts[0], coupling.parts[1] = normal_matrix(rows, weight, z), 0.0
            assert summed(coupling)
            np.testing.assert_allclose(right[z], coupled(coupling, np.ones(N)), rtol=1e-9)


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


def steps_in_threads(rows, k, s, y, mu, system, residual, rules):
    """The same step by 1, 2 and 3 threads, again and again: the same in every bit."""
    found, parts = [], system.cores.outputs if len(system.cores.outputs) else None
    parts = [(z, z + 1) for z in range(len(k))] if parts is None else parts
    with one_blas_thread():
        for threads in (1, 2, 3, 3, 3):
            with workers(threads=threads) as team:
                found.append(
                    newton_step(
                        SharedRows(rows, parts, team),
                        k,
                        s,
                        y,
                        mu,
                        system=system,
                        dual_residual=residual,
                        rules=rules,
                    )
                )
    for other in found[1:]:
        for name in ("k", "s", "y", "mu"):
            np.testing.assert_array_equal(getattr(found[0], name), getattr(other, name))
        assert (found[0].products, found[0].steps) == (other.products, other.steps)
    return found[0]


def assert_is_the_reference(moved, expected, k, s, y, mu, used, share):
    dk, dmu, ds, dy, steps = expected
    assert moved.steps == pytest.approx([share * step for step in steps], rel=1e-9)
    primal, dual = moved.steps
    np.testing.assert_allclose(moved.k[used], (k + primal * dk.reshape(k.shape))[used], rtol=1e-8)
    np.testing.assert_allclose(moved.s, s + primal * ds, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(moved.y, y + dual * dy, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(moved.mu, mu + dual * dmu, rtol=1e-7, atol=1e-9)
    assert moved.products == pytest.approx(float(moved.s @ moved.y), rel=1e-12)


@pytest.mark.parametrize("corrections", [0, 3])
def test_a_step_is_that_of_one_dense_matrix_in_any_threads(rows, corrections):
    """G' dy + dmu = residual, sum dk = missing, G dk - ds = -(G k - s), s dy + y ds = target."""
    random = np.random.default_rng(4)
    k, (s, y) = random.uniform(0.5, 2, (5, N)), random.uniform(0.5, 2, (2, rows.size))
    residual, missing, mu = random.normal(size=(5, N)), random.normal(size=N), random.normal(size=N)
    factors = np.empty((5, N * (N + 1) // 2))
    system = NewtonSystem(Coupling.of(5, N), missing, factors, Weighed.none(), OfCores.none())
    rules = Rules(corrections, 0.9)
    moved = steps_in_threads(rows, k, s, y, mu, system, residual, rules)
    at = AtRows(s, y, rows.slack(k) - s)
    sums = np.tile(np.eye(N), 5)
    expected = reference(dense(rows, N), sums, at, residual.ravel(), missing, corrections)
    assert_is_the_reference(moved, expected, k, s, y, mu, np.ones(k.shape, bool), 0.9)


def test_a_step_of_weighed_columns_and_outputs_is_that_of_one_dense_matrix(rows):
    """Seven columns in two chunks before three outputs, in rows of k that are wider than both."""
    random, width = np.random.default_rng(5), N + 2
    columns = random.uniform(size=(7, N))
    own, outputs = np.array([0, 1, 2, 0, 1, 2, 3], np.int32), rows.start[3]
    pairs = Pairs(*(np.append(own, one[:outputs]) for one in rows.pairs[:2]), None)
    factor = np.append(np.zeros(7), rows.pairs.factor[:outputs])
    both = Rows(np.append([0, 3], 7 + rows.start[:4]), pairs._replace(factor=factor))
    k, used = np.zeros((5, width)), np.zeros((5, width), bool)
    used[0, :3] = used[1, :4] = used[2:, :N] = True
    k[used] = random.uniform(0.5, 2, used.sum())
    s, y = random.uniform(0.5, 2, (2, both.size))
    residual = np.where(used, random.normal(size=k.shape), 0.0)
    missing, mu = random.normal(size=(2, N))
    weighed = Weighed(np.array([0, 3, 7]), columns)
    factors = np.empty((3, N * (N + 1) // 2))
    system = NewtonSystem(Coupling.of(5, N), missing, factors, weighed, OfCores.none())
    moved = steps_in_threads(both, k, s, y, mu, system, residual, Rules(3, 0.9, 40.0))
    sums = np.zeros((N, 5, width))
    sums[:, 0, :3], sums[:, 1, :4] = columns[:3].T, columns[3:].T
    sums[:, 2:, :N] = np.eye(N)[:, None]
    at, G = AtRows(s, y, both.slack(k) - s), dense(both, width)
    expected = reference(G, sums.reshape(N, -1), at, residual.ravel(), missing, 3, 40.0)
    assert_is_the_reference(moved, expected, k, s, y, mu, used, 0.9)
    point = k, s, -y, mu
    with workers(threads=2) as team:
        shared = SharedRows(both, [(z, z + 1) for z in range(5)], team)
        with pytest.raises(SolverError, match=NO_FACTOR):
            newton_step(shared, *point, system=system, dual_residual=residual, rules=Rules(3, 0.9))


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
