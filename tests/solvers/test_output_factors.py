"""Factors of many outputs in one call are those that LAPACK gives one by one."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import SolverError
from whereish.solvers.lapack import cholesky_inverse, cholesky_solve
from whereish.solvers.optimal.barrier_rows import (
    AtRows,
    RowLists,
    SharedRows,
    Steps,
    assemble_normal_matrix,
)
from whereish.solvers.optimal.interior_point import cholesky_factor
from whereish.solvers.output_factors import OutputFactors
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
    work = np.empty((N, N), order="F")
    assemble_normal_matrix(weight, rows.start[z], rows.start[z + 1], rows.pairs, work)
    return work


@pytest.mark.parametrize("threads", [1, 3])
def test_factors_and_solutions_are_those_of_one_output_after_the_other(rows, threads):
    random = np.random.default_rng(2)
    weight, right, mu = random.uniform(1, 2, rows.size), random.normal(size=(5, N)), np.arange(N)
    expected, inverses = np.empty((5, N)), np.zeros((N, N))
    mu = mu.astype(float)
    with one_blas_thread():
        for z in range(5):
            factor = cholesky_factor(normal_matrix(rows, weight, z))
            expected[z] = cholesky_solve(factor, right[z])
            expected[z] += cholesky_solve(factor, mu)
            assert cholesky_inverse(factor) == 0
            inverses += factor
        with workers(RANGES, threads=threads) as ranges:
            factors = OutputFactors(5, N)
            total = factors.factor(rows, weight, ranges)
            factors.solve(right, ranges)
            factors.add_solutions(mu, right, ranges)
    np.testing.assert_array_equal(right, expected)
    np.testing.assert_allclose(np.tril(total), np.triu(inverses).T, rtol=1e-13)


def test_a_singular_matrix_is_regularised_as_one_alone_and_a_negative_one_refused(rows):
    weight = np.zeros(rows.size)
    with one_blas_thread(), workers(RANGES, threads=2) as ranges:
        with pytest.raises(SolverError, match="no Cholesky factor"):
            OutputFactors(5, N).factor(rows, weight, ranges)
        # One row only: a matrix of rank one, which has a factor once its zeros are not.
        weight = np.full(rows.size, 1e-14)
        weight[rows.start[:-1]] = 1.0
        factors = OutputFactors(5, N)
        factors.factor(rows, weight, ranges)
        right = np.ones((5, N))
        factors.solve(right, ranges)
        for z in range(5):
            alone = cholesky_factor(normal_matrix(rows, weight, z))
            np.testing.assert_array_equal(right[z], cholesky_solve(alone, np.ones(N)))


@pytest.mark.parametrize("threads", [1, 2])
def test_moves_in_threads_are_those_of_numpy(rows, threads):
    random = np.random.default_rng(3)
    at = AtRows(*random.uniform(0.5, 2, (3, rows.size)))
    target, dk = random.normal(size=rows.size), random.normal(size=(5, N))
    pulled = rows.pull((target - at.y * at.residual) / at.slack, N)
    ds = rows.slack(dk) + at.residual
    dy = (target - at.y * ds) / at.slack
    with workers(RANGES, threads=threads) as ranges:
        for some in (SharedRows.alone(rows), SharedRows(rows, ranges)):
            np.testing.assert_array_equal(some.pull_targets(at, target, N), pulled)
            moves = some.moves(at, target, dk)
            np.testing.assert_array_equal(moves.ds, ds)
            np.testing.assert_array_equal(moves.dy, dy)
            assert (moves.fall_s, moves.fall_y) == ((-ds / at.slack).max(), (-dy / at.y).max())
            # Mehrotra's target, and Gondzio's, which pulls products into [aim/10, 10 aim].
            trial = (at.slack + 0.3 * ds) * (at.y + 0.6 * dy)
            steps, aim = Steps(0.3, 0.6), float(trial.max()) / 25
            assert some.after(at, moves, steps) == pytest.approx(trial.sum(), rel=1e-12)
            centred = some.centred(at, moves, aim)
            np.testing.assert_allclose(centred, aim - at.slack * at.y - ds * dy, rtol=1e-12)
            inside = np.clip(trial, 0.1 * aim, 10 * aim)
            pulled_in = centred + np.maximum(inside - trial, -10 * aim)
            found = some.drawn_in(at, moves, steps, aim, centred)
            np.testing.assert_allclose(found, pulled_in, rtol=1e-9, atol=1e-12)
            assert (trial < 0.1 * aim).any()
            assert (trial > 20 * aim).any()
        dk[4, 0] = np.nan
        assert np.isnan(SharedRows(rows, ranges).moves(at, target, dk).fall_s)
