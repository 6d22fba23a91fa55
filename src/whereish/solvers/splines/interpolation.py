"""Interpolation at Chebyshev points of a cell, and the biquadratic near an interpolant."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["chebyshev_points", "lebesgue", "quadratic_near"]

_BERNSTEIN: FloatArray = np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, -0.5], [0.0, 0.0, 1.0]])


def chebyshev_points(degree: int) -> FloatArray:
    """Chebyshev points of the second kind on [-1/2, 1/2], in increasing order."""
    return np.asarray(-0.5 * np.cos(np.pi * np.arange(degree + 1) / degree))


def lebesgue(degree: int) -> float:
    """Bound of the Lebesgue constant of the Chebyshev points."""
    return 1.0 + 2.0 / math.pi * math.log(degree + 1)


def quadratic_near(
    means: FloatArray, degree: int, middle: FloatArray, side: float
) -> tuple[FloatArray, FloatArray]:
    """Control points of the biquadratic through nine values of interpolants on a square.

    And how far the interpolants are off from it at most.  `means` are (2, cells, n, n) values at
    Chebyshev points of the cell; the square has its `middle` (down, across) and `side` in units of
    the cell.
    """
    coarse, fine = (_resampled(means, degree, middle, side, to) for to in (2, 3 * degree))
    quadratic = _operator(2, 0.0, 1.0, 3 * degree)
    off = fine - quadratic @ coarse @ quadratic.T
    off *= off
    return _controls(coarse), 4 / 3 * np.sqrt((off[0] + off[1]).max(axis=(1, 2), initial=0.0))


def _controls(values: FloatArray) -> FloatArray:
    return np.moveaxis(_BERNSTEIN @ values @ _BERNSTEIN.T, 0, -1).reshape(-1, 9, 2)


def _resampled(
    means: FloatArray, degree: int, middle: FloatArray, side: float, to: int
) -> FloatArray:
    """Interpolants at the `to` + 1 Chebyshev points, either way, of a square."""
    down, across = (_operator(degree, float(centre), side, to) for centre in middle)
    return np.asarray(down @ means @ across.T)


@lru_cache(maxsize=512)
def _operator(degree: int, middle: float, side: float, to: int) -> FloatArray:
    """From values at the Chebyshev points of a cell to those of an interval in it."""
    return _lagrange(degree, middle + side * chebyshev_points(to))


def _lagrange(degree: int, at: FloatArray) -> FloatArray:
    """(points, degree + 1) values of the interpolant through Chebyshev points, one for each."""
    from numpy.polynomial import chebyshev

    values = chebyshev.chebvander(2.0 * chebyshev_points(degree), degree)
    return np.asarray(chebyshev.chebvander(2.0 * at, degree) @ np.linalg.inv(values))
