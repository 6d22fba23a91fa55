"""The norm that randomised rounding to four centres leaves of a level eps.

Between four centres a rounded law P is bilinear, and |grad P| <= eps·P at a centre
reads, with log-slopes p along the width w and q along the height h of a cell,

    ((e^{|p| w} - 1) / w)^2 + ((e^{|q| h} - 1) / h)^2 <= eps^2.

These slopes form a convex set C, and a law may fall by at most the support function
H(v) = max over (p, q) in C of p·v_x + q·v_y along a step v: ln(1 + eps·w) along the
width, 2·ln(1 + eps·h / sqrt 2) along the diagonal of a square, which is less than
eps·|v| by a factor of 1.82 and 1.60 at eps·h = 2 and by 1.10 and 1.07 at 0.2.  No law
rounded this way can do better.

On a stencil a distance has the gradients of its cones, the corners of a polygon with
the stencil's steps as normals.  The prices H(s) of the steps s give the polygon around
C; all are taken `share` times, the largest with which its corners lie in C.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS

__all__ = ["axis_levels", "directed_levels", "longest_side"]


_ANGLES = np.linspace(0.0, np.pi / 2, 721)
_HALVINGS = 40
# Prices of a cell between which the norm is interpolated, in single precision: they and
# what follows from them are the same on every machine.
_KNOTS = np.geomspace(2.0**-8, 8.0, 67).astype(np.float32).astype(np.float64)


def longest_side(cell: tuple[float, float], shape: tuple[int, ...]) -> float:
    """The longer side of a cell, of those along which a map of `shape` has neighbours."""
    alone = max(shape) == 1
    return max(side for side, count in zip(cell, shape, strict=True) if count > 1 or alone)


def axis_levels(eps: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """ln(1 + eps·a)/a along the longer side a of a cell: the least log-slope of all directions."""
    side = longest_side(cell, eps.shape)
    return np.asarray(np.log1p(eps * side) / side)


def directed_levels(levels: FloatArray, cell: tuple[float, float], neighbours: int) -> FloatArray:
    """Prices per length along each step of the half stencil, from those along an axis.

    Parameters
    ----------
    levels : (rows, cols) as :func:`axis_levels` gives them.
    cell : height and width of a cell.
    neighbours : 8, 16 or 32.
    """
    if 1 in levels.shape:
        return np.repeat(levels[..., None], neighbours // 2, axis=-1)
    shares = _shares(cell, neighbours)
    price = np.clip(levels * longest_side(cell, levels.shape), _KNOTS[0], _KNOTS[-1])
    knot = np.clip(np.searchsorted(_KNOTS, price, side="right") - 1, 0, len(_KNOTS) - 2)
    part = ((price - _KNOTS[knot]) / (_KNOTS[knot + 1] - _KNOTS[knot]))[..., None]
    share = (1.0 - part) * shares[knot] + part * shares[knot + 1]
    return np.asarray(levels[..., None] * share)


@lru_cache(maxsize=8)
def _shares(cell: tuple[float, float], neighbours: int) -> FloatArray:
    """Prices along the half stencil over that along an axis, per knot."""
    side = max(cell)
    levels = _KNOTS / side
    eps = np.expm1(_KNOTS) / side
    prices = np.array([_prices(float(e), cell, neighbours) for e in eps])
    return np.asarray((prices / levels[:, None]).astype(np.float32).astype(np.float64))


def _prices(eps: float, cell: tuple[float, float], neighbours: int) -> FloatArray:
    """The prices per length along the half stencil at one level."""
    height, width = cell
    border = np.stack(
        [
            np.log1p(eps * width * np.cos(_ANGLES)) / width,
            np.log1p(eps * height * np.sin(_ANGLES)) / height,
        ]
    )
    steps = np.array([(dj * width, di * height) for di, dj in STENCILS[neighbours]])
    lengths = np.hypot(*steps.T)
    support = (np.abs(steps) @ border).max(axis=1) / lengths
    # Corners of the polygon in the first quadrant, between neighbouring directions.
    first = np.flatnonzero(steps[:, 0] >= 0)
    first = first[np.argsort(np.arctan2(steps[first, 1], steps[first, 0]))]
    normals = steps[first] / lengths[first, None]
    corners = np.array(
        [
            np.linalg.solve(normals[i : i + 2], support[first[i : i + 2]])
            for i in range(len(first) - 1)
        ]
    )
    low, high = np.zeros(len(corners)), np.ones(len(corners))
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        p, q = share * corners[:, 0], share * corners[:, 1]
        slope = np.hypot(np.expm1(p * width) / width, np.expm1(q * height) / height)
        low, high = np.where(slope <= eps, share, low), np.where(slope <= eps, high, share)
    return np.asarray(support * low.min())
