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

__all__ = ["chebyshev_points", "lebesgue", "quadratic_near", "quadratics_near"]

# Bernstein coefficients of 1, x and 2 x^2 - 1 on [-1, 1], a column each; along both axes at once.
_BERNSTEIN: FloatArray = np.array([[1.0, -1.0, 1.0], [1.0, 0.0, -3.0], [1.0, 1.0, 1.0]])
_BERNSTEIN_BOTH: FloatArray = np.asarray(np.kron(_BERNSTEIN, _BERNSTEIN).T, np.float64)


def chebyshev_points(degree: int) -> FloatArray:
    """Chebyshev points of the second kind on [-1/2, 1/2], in increasing order."""
    return np.asarray(-0.5 * np.cos(np.pi * np.arange(degree + 1) / degree))


def lebesgue(degree: int) -> float:
    """Bound of the Lebesgue constant of the Chebyshev points."""
    return 1.0 + 2.0 / math.pi * math.log(degree + 1)


def quadratic_near(means: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """As :func:`quadratics_near` on the whole cell: (cells, 9, 2), (cells,)."""
    controls, apart = quadratics_near(means, degree, np.zeros(1), 1.0)
    return controls[:, 0, 0], apart[:, 0, 0]


def quadratics_near(
    means: FloatArray, degree: int, middles: FloatArray, side: float
) -> tuple[FloatArray, FloatArray]:
    """Control points (cells, m, m, 9, 2) of the biquadratics near interpolants on m x m squares.

    And how far the interpolants are off from these at most, (cells, m, m).  `means` are
    (2, cells, n, n) values at Chebyshev points of the cell; the squares have their `middles` (along
    both axes) and `side` in units of the cell.
    """
    count, n = len(middles), degree + 1
    along = np.concatenate([_series(degree, float(middle), side) for middle in middles])
    # As two products of large matrices: thousands of small ones take several times as long.
    lines = means.reshape(-1, n) @ along.T
    columns = lines.reshape(-1, n, count, n).transpose(0, 2, 3, 1)
    both = (columns.reshape(-1, n) @ along.T).reshape(2, -1, count, n, count, n)
    others = np.sqrt(both[0] ** 2 + both[1] ** 2)  # hypot takes several times as long
    others[:, :, :3, :, :3] = 0.0
    low = both[:, :, :, :3, :, :3].transpose(0, 1, 4, 2, 5, 3).reshape(2, -1, count, count, 9)
    return np.moveaxis(low @ _BERNSTEIN_BOTH, 0, -1), others.sum(axis=(2, 4)).swapaxes(1, 2)


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
