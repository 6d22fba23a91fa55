"""Means over circles: R(r), the mean of F over directions, and expectations from it.

For a loss L of the distance alone

    ∫ L(|v|) F(v) dv = ∫ L(r) 2 pi r R(r) dr,   R(r) = mean of F(r e) over directions e,

so the circular noise R has the same expected loss (ElSalamouny and Gambs 2018, Theorem 5).

A circle crosses the lines of a lattice at known angles, between which F is constant (cells) or
the exponential of a trigonometric function (linear).  As a function of r the mean has a root
where a circle first touches a line and kinks at the lattice's corners.  Between the lines
x_k < x_{k+1} the variable t with r = x_k + (x_{k+1} - x_k) t^2 removes the root; the roots of
earlier lines are then at |t| >= 1 off the axis, so Gauss-Legendre between corners converges to
rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.solvers.noise.lattice import LatticeLogs, Whole
from whereish.solvers.radial.loss import Loss

__all__ = ["cell_arcs", "cell_circle_moments", "circle_mean", "radial_rule"]

_ARC, _ARC_WEIGHTS = np.polynomial.legendre.leggauss(8)
_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(10)
_MOST_LINES = 400


@lru_cache(maxsize=4096)
def cell_arcs(radius: float) -> tuple[FloatArray, Whole, Whole]:
    """Shares of a circle (radius in steps) and the cells (i, j) in which they lie."""
    angles = _crossings(radius, 0.5)
    middle = (angles[1:] + angles[:-1]) / 2
    inside = radius * (1 - 2.0**-50)  # a circle that touches a line stays on this side of it
    i = np.rint(inside * np.cos(middle)).astype(np.int64)
    j = np.rint(inside * np.sin(middle)).astype(np.int64)
    return np.diff(angles) / (2 * math.pi), i, j


@lru_cache(maxsize=8)
def cell_circle_moments(lines: int, step: float, loss: Loss) -> FloatArray:
    """∫ L(|v|) dv over each cell |i|, |j| <= lines, circle by circle, v in steps.

    Cells further out than the last circle count for nothing.
    """
    size = 2 * lines + 1
    moments = np.zeros((size, size))
    cuts = [cut / step for cut in loss.cuts]
    for r, weight in radial_rule(lines, linear=False, cuts=cuts):
        shares, i, j = cell_arcs(r)
        worth = float(loss.value(np.array([r * step]))[0])
        np.add.at(moments, (i + lines, j + lines), 2 * math.pi * r * weight * worth * shares)
    return moments


def circle_mean(table: LatticeLogs, radius: float, *, linear: bool) -> float:
    """The mean of F over the circle, radius in steps, in the table's scale."""
    if not linear:
        shares, i, j = cell_arcs(radius)
        return float(shares @ np.exp(table.at(i, j)))
    if radius == 0:
        return math.exp(float(table.at(0, 0)))
    angles = np.union1d(_crossings(radius, 0.0), _diagonals(radius))
    half, middle = np.diff(angles) / 2, (angles[1:] + angles[:-1]) / 2
    theta = middle[:, None] + half[:, None] * _ARC
    values = np.exp(table.interpolated(radius * np.cos(theta), radius * np.sin(theta)))
    return float((half[:, None] * _ARC_WEIGHTS * values).sum() / (2 * math.pi))


def _crossings(radius: float, offset: float) -> FloatArray:
    """Angles in [-pi, pi] at which a circle crosses the lines x or y = k + offset."""
    lines = np.arange(offset, radius, 1.0)
    lines = lines[lines < radius]
    # atan2 of the exact half chord: an arc cosine would lose half the digits near a tangent.
    near = np.arctan2(np.sqrt((radius - lines) * (radius + lines)), lines)
    vertical = np.concatenate([near, math.pi - near])
    right = math.pi / 2 - near
    horizontal = np.concatenate([right, math.pi - right])
    upper = np.concatenate([vertical, horizontal])
    return np.unique(np.concatenate([[-math.pi, math.pi], upper, -upper]))


def _diagonals(radius: float) -> FloatArray:
    """Angles at which a circle crosses the lines x - y = k."""
    lines = np.arange(0.0, radius * math.sqrt(2), 1.0) / math.sqrt(2)
    lines = lines[lines < radius]
    near = np.arctan2(np.sqrt((radius - lines) * (radius + lines)), lines)
    found = np.concatenate([-math.pi / 4 + near, -math.pi / 4 - near])
    found = np.concatenate([found, found + math.pi])
    return np.asarray((found + math.pi) % (2 * math.pi) - math.pi)


def radial_rule(
    lines: float, *, linear: bool, cuts: Sequence[float] = ()
) -> Iterator[tuple[float, float]]:
    """Radii and weights, in steps, that integrate functions of circle means up to `lines`.

    `cuts` are radii at which the loss jumps or bends.
    """
    if lines > _MOST_LINES:
        raise InvalidInput(
            f"the noise must fall to nothing within {_MOST_LINES} steps of its table; it reaches"
            f" {lines:.0f}: take a larger step"
        )
    offset = 0.0 if linear else 0.5
    at = np.arange(offset, lines + 1.0, 1.0)
    corners = np.hypot(*np.meshgrid(at, at)).ravel()
    bands = [0.0, *at[at > 0].tolist()]
    if linear:
        bands = sorted({*bands, *(np.arange(1.0, lines * math.sqrt(2)) / math.sqrt(2)).tolist()})
    marks = np.unique(np.concatenate([corners, np.asarray(cuts, float)]))
    for low, high in itertools.pairwise(bands):
        inner = marks[(marks > low) & (marks < high)]
        t = np.concatenate([[0.0], np.sqrt((inner - low) / (high - low)), [1.0]])
        t = t[np.append(True, np.diff(t) > 1e-13)]
        half, middle = np.diff(t) / 2, (t[1:] + t[:-1]) / 2
        points = (middle[:, None] + half[:, None] * _GAUSS).ravel()
        weights = (half[:, None] * _GAUSS_WEIGHTS).ravel() * 2 * points * (high - low)
        radii = low + (high - low) * points**2
        yield from zip(radii.tolist(), weights.tolist(), strict=True)
