"""From the corners of a square to all of it: |grad P(x)| <= t·eps(x)·P(x).

In the square between four centres P and eps are bilinear, with weights l_c(x) of the
corners c, and |grad P| is convex along either axis, hence at most its bilinear
interpolant.  With slopes s_c >= |grad P|/P at the corners it suffices that

    sum_c l_c P_c s_c  <=  t · (sum_c l_c P_c) · (sum_c l_c eps_c)

everywhere.  Both sides are polynomials of degree 2 in each coordinate, and one is below the
other if its Bernstein coefficients are: those of the square's four quarters are compared
(de Casteljau).  Each comparison reads sum_c P_c A_c <= t·sum_c P_c B_c, and P is known up
to its ratios, 1/(1 + s_a·w) <= P_a/P_c <= 1 + s_c·w between corners a distance w apart;
the largest quotient over such a box of ratios is at one of its vertices.
"""

from __future__ import annotations

import itertools

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput

__all__ = ["corner_levels", "square_factors"]


_HALVES: FloatArray = np.array([[4, 0, 0], [2, 2, 0], [1, 2, 1], [0, 2, 2], [0, 0, 4]]) / 4
_LINEAR: FloatArray = np.array([[2, 0], [1, 1], [0, 2]]) / 2
_BILINEAR: FloatArray = np.array([[[2, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 2]]]) / 2
_RAISED: FloatArray = _HALVES @ _LINEAR
_PRODUCT: FloatArray = np.tensordot(_HALVES, _BILINEAR, 1)
_GUARD = 1e-12  # relative: rounding of a few dozen products and sums


def corner_levels(levels: FloatArray) -> FloatArray:
    """(squares, squares, 2, 2): the levels at the corners of every square (interval in 1-D)."""
    i, j = (min(count - 1, 1) for count in levels.shape)
    rows, cols = levels.shape
    return np.stack(
        [
            np.stack([levels[a : rows - i + a, b : cols - j + b] for b in range(j + 1)], axis=-1)
            for a in range(i + 1)
        ],
        axis=-2,
    )


def square_factors(slopes: FloatArray, levels: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """The least t that these comparisons prove for every square.

    Parameters
    ----------
    slopes : (..., 2, 2) bounds of |grad P|/P at the corners (up, right); an axis of length
        1 where the map has only one row or column.
    levels : eps at the same corners.
    cell : height and width of a square.
    """
    if slopes.shape != levels.shape:
        raise InvalidInput(
            f"slopes and levels must have the same shape; got {slopes.shape} and {levels.shape}"
        )
    down, across = slopes.shape[-2:]
    one, single = np.ones((1, 1)), np.ones((1, 1, 1))
    a, b = (_RAISED, _PRODUCT) if down > 1 else (one, single)
    c, d = (_RAISED, _PRODUCT) if across > 1 else (one, single)
    above = np.einsum("iu,jr,...ur->...ijur", a, c, slopes)
    below = np.einsum("iuv,jrs,...vs->...ijur", b, d, levels)
    worst = np.zeros(slopes.shape[:-2])
    for ratios in _ratio_boxes(slopes, cell):
        weighed = ratios[..., None, None, :, :]
        with np.errstate(invalid="ignore"):
            quotients = (weighed * above).sum(axis=(-2, -1)) / (weighed * below).sum(axis=(-2, -1))
        worst = np.maximum(worst, quotients.max(axis=(-2, -1)))
    return worst * (1.0 + _GUARD)


def _ratio_boxes(slopes: FloatArray, cell: tuple[float, float]) -> list[FloatArray]:
    """Vertices of a box that holds P_c / P_00 for all corners, (..., 2, 2) each."""
    height, width = cell
    down, across = slopes.shape[-2:]
    low, high = np.ones_like(slopes), np.ones_like(slopes)
    if down > 1:
        low[..., 1, 0] = 1 / (1 + slopes[..., 1, 0] * height)
        high[..., 1, 0] = 1 + slopes[..., 0, 0] * height
    if across > 1:
        low[..., 0, 1] = 1 / (1 + slopes[..., 0, 1] * width)
        high[..., 0, 1] = 1 + slopes[..., 0, 0] * width
    if down > 1 and across > 1:
        back = 1 + slopes[..., 1, 1] * width, 1 + slopes[..., 1, 1] * height
        low[..., 1, 1] = np.maximum(low[..., 1, 0] / back[0], low[..., 0, 1] / back[1])
        high[..., 1, 1] = np.minimum(
            high[..., 1, 0] * (1 + slopes[..., 1, 0] * width),
            high[..., 0, 1] * (1 + slopes[..., 0, 1] * height),
        )
    free = [corner for corner in np.ndindex(down, across) if corner != (0, 0)]
    boxes = []
    for ends in itertools.product((low, high), repeat=len(free)):
        box = np.ones_like(slopes)
        for (up, right), end in zip(free, ends, strict=True):
            box[..., up, right] = end[..., up, right]
        boxes.append(box)
    return boxes
