"""Interpolation at Chebyshev points of a cell, and the biquadratic near an interpolant.

On a square inside its cell an interpolant is a finite sum of c_ij T_i(x) T_j(y), T the Chebyshev
polynomials of the square's sides.  Its biquadratic keeps the terms with i, j <= 2; as |T_i| <= 1,
the interpolant is nowhere farther from that than the sum of all other |c_ij|.  On small squares
the coefficients fall so fast that hardly a bound is smaller.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["chebyshev_points", "lebesgue", "quadratic_near"]

# Bernstein coefficients of 1, x and 2 x^2 - 1 on [-1, 1], a column each; along both axes at once.
_BERNSTEIN: FloatArray = np.array([[1.0, -1.0, 1.0], [1.0, 0.0, -3.0], [1.0, 1.0, 1.0]])
_BERNSTEIN_BOTH: FloatArray = np.asarray(np.kron(_BERNSTEIN, _BERNSTEIN).T, np.float64)


def chebyshev_points(degree: int) -> FloatArray:
    """Chebyshev points of the second kind on [-1/2, 1/2], in increasing order."""
    return np.asarray(-0.5 * np.cos(np.pi * np.arange(degree + 1) / degree))


def lebesgue(degree: int) -> float:
    """Bound of the Lebesgue constant of the Chebyshev points."""
    return 1.0 + 2.0 / math.pi * math.log(degree + 1)


def quadratic_near(
    means: FloatArray, degree: int, middle: FloatArray, side: float
) -> tuple[FloatArray, FloatArray]:
    """Control points (cells, 9, 2) of the biquadratics near interpolants on a square.

    And how far the interpolants are off from these at most.  `means` are (2, cells, n, n) values at
    Chebyshev points of the cell; the square has its `middle` (down, across) and `side` in units of
    the cell.
    """
    down, across = (_series(degree, float(centre), side) for centre in middle)
    series = _along_both(down, means, across)
    others = np.hypot(series[0], series[1])
    others[:, :3, :3] = 0.0
    return _controls(series[:, :, :3, :3]), others.sum(axis=(1, 2))


def _controls(series: FloatArray) -> FloatArray:
    """Control points of sums of c_ij T_i T_j, i, j <= 2."""
    return np.moveaxis(series.reshape(2, -1, 9) @ _BERNSTEIN_BOTH, 0, -1)


def _along_both(down: FloatArray, values: FloatArray, across: FloatArray) -> FloatArray:
    """down·V·across' for each square V of values (2, cells, n, n).

    As two products of large matrices: thousands of small ones take several times as long.
    """
    lines = values.reshape(-1, values.shape[3]) @ across.T
    columns = lines.reshape(-1, values.shape[2], len(across)).swapaxes(1, 2)
    both = columns.reshape(-1, values.shape[2]) @ down.T
    return both.reshape(*values.shape[:2], len(across), len(down)).swapaxes(2, 3)


@lru_cache(maxsize=512)
def _series(degree: int, middle: float, side: float) -> FloatArray:
    """From values at the Chebyshev points of a cell to the coefficients on an interval in it."""
    return _coefficients(degree) @ _lagrange(degree, middle + side * chebyshev_points(degree))


def _lagrange(degree: int, at: FloatArray) -> FloatArray:
    """(points, degree + 1) values of the interpolant through Chebyshev points, one for each."""
    return _chebyshev(degree, 2.0 * at) @ _coefficients(degree)


@lru_cache(maxsize=64)
def _coefficients(degree: int) -> FloatArray:
    """From values at the Chebyshev points of an interval to the coefficients there."""
    return np.asarray(np.linalg.inv(_chebyshev(degree, 2.0 * chebyshev_points(degree))), np.float64)


def _chebyshev(degree: int, x: FloatArray) -> FloatArray:
    """(points, degree + 1) values of the Chebyshev polynomials, |x| <= 1."""
    angles = np.arccos(np.clip(x, -1.0, 1.0))
    return np.cos(np.arange(degree + 1) * angles[:, None])
