"""Recombine private columns into the cheapest stochastic channel: a small master programme.

Given d-private columns q with outputs z_q, find weights lambda >= 0 with
sum_q lambda_q q = 1 that minimise the expected loss.  Any such combination is
private, since private columns form a cone.  The columns e^{-d(., z)} of the tight
mechanism are always among them, so that a solution exists where it does.

The programme is dense with few rows, so it is solved by a dense primal-dual
interior point (Mehrotra 1992).  What its tolerance leaves of the equations is
mended by `repair.complete`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.optimal.programme import ChannelProgramme

__all__ = ["dense_programme", "recombine"]

_MOST_ITERATIONS = 60


def recombine(programme: ChannelProgramme, columns: FloatArray) -> FloatArray:
    """Cheapest combination of private `columns`, (count, n), as an (n, outputs) matrix.

    Every column is first sent to the output that serves it best.
    """
    scaled = columns / columns.max(axis=1, keepdims=True)
    losses = programme.cost @ scaled.T
    outputs = losses.argmin(axis=0)
    weights = dense_programme(scaled.T, np.ones(programme.n), losses.min(axis=0))
    combined = np.zeros(programme.cost.shape)
    np.add.at(combined, outputs, weights[:, None] * scaled)
    return np.ascontiguousarray(combined.T)


def dense_programme(
    A: FloatArray, b: FloatArray, c: FloatArray, *, tolerance: float = 1e-8
) -> FloatArray:
    """Minimise c . x subject to A x = b, x >= 0, for dense A with few rows."""
    x, y, s = _starting_point(A, b, c)
    for _ in range(_MOST_ITERATIONS):
        primal, dual = b - A @ x, c - A.T @ y - s
        value = float(c @ x)
        if np.abs(primal).max() < 1e-10 and abs(value - b @ y) <= tolerance * abs(value):
            break
        ratio = x / s
        factor = _factored((A * ratio) @ A.T)

        def direction(
            product: FloatArray,
            primal: FloatArray = primal,
            dual: FloatArray = dual,
            ratio: FloatArray = ratio,
            factor: tuple[FloatArray, bool] = factor,
            s: FloatArray = s,
        ) -> tuple[FloatArray, FloatArray, FloatArray]:
            dy = cho_solve(factor, primal + A @ (ratio * dual - product / s), check_finite=False)
            ds = dual - A.T @ dy
            return product / s - ratio * ds, dy, ds

        dx, dy, ds = direction(-x * s)
        after = (x + _longest(x, dx) * dx) @ (s + _longest(s, ds) * ds)
        before = float(x @ s)
        centring = (after / before) ** 3
        dx, dy, ds = direction(centring * before / x.size - x * s - dx * ds)
        step_x, step_s = 0.995 * _longest(x, dx), 0.995 * _longest(s, ds)
        x, y, s = x + step_x * dx, y + step_s * dy, s + step_s * ds
    return x


def _starting_point(
    A: FloatArray, b: FloatArray, c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mehrotra's: least-squares solutions, moved into the interior."""
    factor = _factored(A @ A.T)
    x = A.T @ cho_solve(factor, b)
    y = cho_solve(factor, A @ c)
    s = c - A.T @ y
    x = x + max(-1.5 * float(x.min()), 0.0) + 1e-3
    s = s + max(-1.5 * float(s.min()), 0.0) + 1e-3 * float(np.abs(c).max())
    product = float(x @ s)
    return x + 0.5 * product / float(s.sum()), y, s + 0.5 * product / float(x.sum())


def _factored(matrix: FloatArray) -> tuple[FloatArray, bool]:
    diagonal = np.diag_indices_from(matrix)
    regularisation = 1e-14
    while regularisation < 1e-4:
        matrix[diagonal] *= 1.0 + regularisation
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            regularisation *= 100.0
    raise SolverError("the recombination of columns met a singular matrix")


def _longest(value: FloatArray, change: FloatArray) -> float:
    """The longest step in [0, 1] that keeps value + step * change >= 0."""
    return min(1.0, 1.0 / max(1e-30, float((-change / value).max())))
