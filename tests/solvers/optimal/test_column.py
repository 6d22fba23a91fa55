"""One output alone: its compiled direction, and its cheapest column."""

from __future__ import annotations

import numpy as np
import pytest
from tests.solvers.optimal.dense_newton import N, dense, normal_matrix, reference, rows_of_outputs

from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.column import (
    Lapack,
    OneOutput,
    cheapest_column,
    corrected_move,
)
from whereish.solvers.optimal.barrier.directions import AtRows
from whereish.solvers.optimal.barrier.factors import factor_regularised, pack
from whereish.solvers.optimal.barrier.rows import feasible_multipliers
from whereish.threads import one_blas_thread


@pytest.fixture
def rows():
    return rows_of_outputs()


def lapack():
    return Lapack(address("dpotrf"), address("dtpsv"), address("dgesv"))


def test_the_compiled_direction_of_one_output_is_that_of_one_dense_matrix(rows):
    random = np.random.default_rng(8)
    mine = rows.only(1)
    weight, residual = random.uniform(0.5, 1, N), random.normal(size=(1, N))
    at = AtRows(*random.uniform(0.5, 2, (2, mine.size)), random.normal(size=mine.size))
    G = dense(mine, N)
    dk, dmu, _, dy, steps = reference(G, weight[None], at, residual[0], np.array([0.3]), 3)
    expected = dk, dy, [dmu[0], *steps]
    work, factor = normal_matrix(mine, at.y / at.slack, 0), np.empty(N * (N + 1) // 2)
    along = np.linalg.solve(work, weight)
    with one_blas_thread():
        assert factor_regularised(address("dpotrf"), work)
        pack(work, factor)
        system = OneOutput(factor, weight, along, 0.3)
        dk, dy, dtau, steps = corrected_move(address("dtpsv"), system, at, *mine, residual, 3)
    np.testing.assert_allclose(dk[0], expected[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(dy, expected[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose([dtau, *steps], expected[2], rtol=1e-9)
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
