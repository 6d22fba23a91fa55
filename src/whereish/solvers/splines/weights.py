"""Quadratic B-spline weights of the three cells around a place, along one axis.

At the offset t in [-1/2, 1/2] from the middle of its cell a place has the weights

    (1/2 - t)^2 / 2,    3/4 - t^2,    (1/2 + t)^2 / 2

of the cell before, its own and the cell after.  They are >= 0, sum to 1, and are continuous with
their derivatives from cell to cell.  At the rim the outermost cell is repeated.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray

__all__ = ["around", "spline_slopes", "spline_weights"]

_Number = TypeVar("_Number")


def spline_weights(t: FloatArray) -> FloatArray:
    """(..., 3) weights at offsets t."""
    t = np.asarray(t, np.float64)
    return np.stack([0.5 * (0.5 - t) ** 2, 0.75 - t * t, 0.5 * (0.5 + t) ** 2], axis=-1)


def spline_slopes(t: FloatArray) -> FloatArray:
    """(..., 3) derivatives of the weights, per cell."""
    t = np.asarray(t, np.float64)
    return np.stack([t - 0.5, -2.0 * t, t + 0.5], axis=-1)


def around(index: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """(..., 3) the cells before, at and after `index`, the outermost repeated at the rim."""
    wide = np.asarray(index)[..., None] + np.array([-1, 0, 1])
    return np.asarray(np.clip(wide, 0, count - 1), np.intp)
