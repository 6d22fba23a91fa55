"""The largest slope |grad ln P(y | u)| of a spline law over all places u and reports y, proven.

A law between cells is the geometric mean of those of the nine cells around a place,

    P(y | u) = prod_c P(y | c)^{B_c(u)} / Z(u),

B biquadratic B-spline weights (:mod:`~whereish.solvers.splines.weights`).  With a_y(c) =
ln P(y | c) up to what all reports share, F_y = sum_c B_c a_y(c) and G_y = grad F_y,

    grad ln P(y | u) = G_y(u) - m(u),      m(u) = E_u[G_Y(u)],  Y ~ P(. | u).

**Reports.**  Within a cell G_y is a polynomial of degree (2, 2) and eps(u), bilinear between the
cell's corners, one of degree (1, 1).  If M is of degree (2, 2), too, and |m - M| <= r,
then |G_y - m| <= t·eps follows from |V_k| + r <= t·e_k for the Bernstein coefficients V of G_y - M
and e of eps: a norm is convex, and the basis is >= 0 and sums to 1
(:mod:`~whereish.solvers.splines.blocks` cuts cells into 4 and 16 squares where that helps; where it
does not suffice, each sixteenth has an M of its own).

**The mean.** m is a ratio of sums of exponentials, analytic around the cell, so that few points
tell it. Take x in units of the cell's width, the cell at [-1/2, 1/2], and an ellipse around it
with foci at its ends and half axes a = (r + 1/r)/4, b = (r - 1/r)/4, r > 1. For complex x = t +
iv

    Im F_y = v F_x(t, .),     |F_x(t, .)| <= c·max(1, 2|t|),

c the largest change of a_y between neighbours in a row, since F is quadratic in x. Inside the
ellipse |Im F_y| <= f = c·max(b, a b). If f < pi/2, then |sum_y e^{F_y}| >= cos f·sum_y |e^{F_y}|,
so that m is analytic there and |m| at most the largest |G_y| over cos f. G_x is linear in x
between values of at most g_x, hence at most (|1/2 - x| + |1/2 + x|) g_x = 2 a g_x; G_y a sum of
values of at most g_y with the spline's weights, the moduli of which add up to at most S = 7/8 +
a^2 + (a^2 + b^2)/2. A function that is analytic and at most M in the ellipse is interpolated at n
+ 1 Chebyshev points to

    4 M r^{-n} / (r - 1)

(Trefethen, Approximation Theory and Approximation Practice, theorem 8.2); r is chosen to make
that small, and n until it is. Along y likewise, and that error times the Lebesgue constant of the
points, at most 1 + (2/pi) ln(n + 1). M is the part of degree (2, 2) of the interpolant's Chebyshev
series on the square, and how far the interpolant is from it at most the sum of its other
coefficients (:mod:`~whereish.solvers.splines.interpolation`). Reports of little mass are left out
of the mean, and what they could change is added, with all roundings of the single precision
(`_ROUNDING` relative, several times what they can reach).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.blocks import Block, add_sums, raise_fine_slopes, raise_slopes
from whereish.solvers.splines.interpolation import (
    chebyshev_points,
    lebesgue,
    quadratic_near,
    quadratics_near,
)
from whereish.solvers.splines.levels import level_controls, outer_quarters
from whereish.solvers.splines.passes import Shares, over_blocks
from whereish.solvers.splines.weights import spline_slopes, spline_weights

__all__ = ["Block", "CellLaws", "SplineSlopes", "exponents", "largest_slopes", "mean_slopes"]

_ROUNDING = 2.0**-18
_PROVEN = 1e-4  # of eps: how well the mean is interpolated
_DEGREES = (2, 4, 6, 8, 10, 12, 16, 20, 24, 32)
_RADII: FloatArray = np.concatenate([np.geomspace(1.05, 8.0, 60), np.geomspace(9.0, 1e4, 20)])
_FAR = 14.0  # nats: what lies farther has about 1e-5 of the mass
_SERIES = 0.25  # largest argument of the exponential's series
_FOURTHS: FloatArray = (np.arange(4) - 1.5) / 4  # middles of the fourths of a cell along an axis
_PIECES = np.arange(16)  # quarters of quarters, as the compiled loops count them
_DOWN = 2 * (_PIECES // 8) + _PIECES // 2 % 2
_ACROSS = 2 * (_PIECES // 4 % 2) + _PIECES % 2


@dataclass(frozen=True, eq=False)
class CellLaws:
    """The laws of the cells of a grid, as the bound needs them.

    Attributes
    ----------
    shares : makes the blocks of 64 reports, anew for every pass, with their masses or without.
    log_sums : (rows, cols) ln of the sum of a cell's masses over all reports.
    across, along : (rows, cols - 1) and (rows - 1, cols): bounds of |a_y(c) - a_y(c')| over all
        reports, between neighbours in a row and in a column.
    deepest : bound of |a_y(c)|.
    """

    shares: Callable[[bool], Shares]
    log_sums: FloatArray
    across: FloatArray
    along: FloatArray
    deepest: float

    @cached_property
    def change(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the differences of a_y along y and x among the nine cells around each."""
        rows, cols = self.log_sums.shape
        out = []
        for edges, axis in ((self.along, 0), (self.across, 1)):
            first = [(0, 0), (0, 0)]
            first[axis] = (1, 1)
            wide = np.pad(edges, first)
            if axis == 0:
                either = np.maximum(wide[:-1], wide[1:])
                side = np.pad(either, [(0, 0), (1, 1)], mode="edge")
                either = np.maximum(np.maximum(side[:, :-2], side[:, 1:-1]), side[:, 2:])
            else:
                either = np.maximum(wide[:, :-1], wide[:, 1:])
                side = np.pad(either, [(1, 1), (0, 0)], mode="edge")
                either = np.maximum(np.maximum(side[:-2], side[1:-1]), side[2:])
            out.append(np.asarray(either, np.float64).reshape(rows, cols))
        return out[0], out[1]


@dataclass(frozen=True, eq=False)
class SplineSlopes:
    """What was proven of a spline law.

    Attributes
    ----------
    factors : (rows, cols) bound of |grad ln P(y | u)| / eps(u) over each cell and all reports.
    acceptance : lower bound of the normaliser Z(u), the chance that a draw is accepted.
    """

    factors: FloatArray
    acceptance: float


def largest_slopes(
    laws: CellLaws,
    levels: FloatArray,
    cell: tuple[float, float],
    *,
    bar: float = 0.0,
    half_rim: bool = False,
) -> SplineSlopes:
    """Bounds of |grad ln P| / eps on every cell; below `bar` they need not be sharp.

    `levels` are eps at the corners of the cells, one row and column more than these; within a
    cell eps is bilinear.  `cell` is the height and width of a cell.  With `half_rim` there are
    no places in the outer halves of the outermost cells, along an axis with more than one.
    """
    bar /= 1.0 + 2.0 * _ROUNDING  # what is below it must be so with its roundings, too
    unit = max(cell)  # single precision has no room for squares of metres and their inverses
    cell, levels = (cell[0] / unit, cell[1] / unit), levels * unit
    e1, e2, e4 = level_controls(levels)
    least = e4.min(axis=(1, 2))
    mean = _mean(laws, cell, least * _PROVEN)
    shape = (levels.shape[0] - 1, levels.shape[1] - 1)
    extra = mean.radius.ravel() / least
    # What nothing finer needs to look at: both G and m are at most g.
    crude = 2.0 * mean.steepest.ravel() / least
    known = crude <= 0.5
    best = np.where(known, crude, 0.0)
    if not known.all():
        i1, i2, i4 = ((1.0 / e**2).astype(np.float32) for e in (e1, e2, e4))
        if half_rim:
            outside = outer_quarters(shape)
            i2[outside], i4[np.repeat(outside, 4, axis=1)] = 0.0, 0.0
        inverse = (i1, i2, i4)
        controls, start = mean.controls.astype(np.float32), best

        def look(block: Block, own: tuple[FloatArray, NDArray[np.bool_]]) -> None:
            raise_slopes(block, shape, cell, controls, inverse, extra, known, bar, *own)

        found = over_blocks(laws.shares(False), lambda: (start.copy(), np.zeros_like(known)), look)
        best, flat = (np.maximum.reduce(part) for part in zip(*found, strict=True))
        none = _flat_block(flat)
        raise_slopes(none, shape, cell, controls, inverse, extra, known, bar, best, flat.copy())
        # Where that does not suffice, the mean is not quadratic enough: in sixteenths it is.
        failing = np.flatnonzero(best > bar)
        pieces, off = mean.pieces(failing)
        margin = off / e4[failing].min(axis=2)
        whole, fine = (controls, i1, extra), pieces.astype(np.float32)

        def look_again(block: Block, own: FloatArray) -> None:
            raise_fine_slopes(block, failing, shape, cell, whole, fine, i4, margin, bar, own)

        if len(failing):
            shares = chain(laws.shares(False), [iter([none])])
            sharper = over_blocks(shares, lambda: np.zeros(len(failing)), look_again)
            best[failing] = np.minimum(best[failing], np.maximum.reduce(sharper))
    factors = (best * (1.0 + _ROUNDING)).reshape(shape)
    return SplineSlopes(np.where(np.isfinite(factors), factors, np.inf), mean.acceptance)


def _flat_block(flat: NDArray[np.bool_]) -> Block:
    """Reports without gradient, at the cells around which a block has been `flat`."""
    zeros = np.zeros((len(flat), LANES), np.float32)
    return zeros, zeros, np.where(flat, 0.0, -np.inf).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Mean:
    """An enclosure of m on every cell: control points (cells, 9, 2), a radius, |G| <= steepest.

    Behind it are interpolants: of each degree the cells, their values at Chebyshev points, and a
    bound of all that m may be off from these.
    """

    controls: FloatArray
    radius: FloatArray
    steepest: FloatArray
    acceptance: float
    interpolants: list[tuple[int, NDArray[np.intp], FloatArray, FloatArray]]

    def pieces(self, cells: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Control points (cells, 16, 9, 2) on the sixteenths of some cells, and radii there."""
        controls, radii = np.empty((len(cells), 16, 9, 2)), np.zeros((len(cells), 16))
        for degree, mine, means, off in self.interpolants:
            here = np.flatnonzero(np.isin(cells, mine))
            chosen = np.searchsorted(mine, cells[here])
            pieces, apart = quadratics_near(means[:, chosen], degree, _FOURTHS, 0.25)
            controls[here] = pieces[:, _DOWN, _ACROSS]
            radii[here] = apart[:, _DOWN, _ACROSS] + off[chosen][:, None]
        return controls, radii


def _mean(laws: CellLaws, cell: tuple[float, float], wanted: FloatArray) -> _Mean:
    shape = laws.log_sums.shape
    change = laws.change
    degrees, missed = _degrees(change, cell, wanted)
    controls, radius = np.empty((degrees.size, 9, 2)), np.empty(degrees.size)
    acceptance = 1.0
    interpolants = []
    found = [int(degree) for degree in np.unique(degrees)]
    groups = [(np.flatnonzero(degrees == degree), chebyshev_points(degree)) for degree in found]
    of_groups = _sums(laws, cell, groups)
    for degree, (mine, _), (sums, absent) in zip(found, groups, of_groups, strict=True):
        means = np.ascontiguousarray(np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0))
        off = missed[mine] + _left_out(laws, cell, sums[..., 0], absent, degree, mine)
        interpolants.append((degree, mine, means, off))
        controls[mine], apart = quadratic_near(means, degree)
        radius[mine] = apart + off
        largest = np.hypot(*np.moveaxis(controls[mine], -1, 0)).max(axis=1) + radius[mine]
        least = _least_normaliser(laws, cell, sums[..., 0], degree, mine, largest)
        acceptance = min(acceptance, least)
    steepest = np.hypot(change[0] / cell[0], change[1] / cell[1])
    return _Mean(controls, radius.reshape(shape), steepest, acceptance, interpolants)


def _degrees(
    change: tuple[FloatArray, FloatArray], cell: tuple[float, float], wanted: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Degree along each axis with which the mean is interpolated, and the error of that."""
    a, b = (_RADII + 1 / _RADII) / 4, (_RADII - 1 / _RADII) / 4
    weights = 0.875 + a**2 + (a**2 + b**2) / 2
    steep = [part.ravel() / side for part, side in zip(change, cell, strict=True)]
    bounds = []
    for axis in (0, 1):
        phase = change[axis].ravel()[:, None] * np.maximum(b, a * b)
        largest = np.hypot(2 * a * steep[axis][:, None], weights * steep[1 - axis][:, None])
        bound = 4 * largest / np.cos(np.minimum(phase, 1.55)) / (_RADII - 1)
        bounds.append(np.where(phase < 1.55, bound, np.inf))
    degrees = np.full(wanted.size, _DEGREES[-1], np.int64)
    missed = np.full(wanted.size, np.inf)
    for degree in reversed(_DEGREES):
        shrunk = _RADII**-degree
        along, across = ((bound * shrunk).min(axis=1) for bound in bounds)
        error = across + lebesgue(degree) * along
        better = (error <= wanted) | ~np.isfinite(missed)
        degrees[better], missed[better] = degree, error[better]
    return degrees, missed


def _halvings(change: tuple[FloatArray, FloatArray]) -> NDArray[np.int64]:
    """How often the exponent of a cell is halved before its series."""
    ratio = np.maximum((change[0] + change[1]) / _SERIES, 1.0)
    return np.ceil(np.log2(ratio)).astype(np.int64)


def exponents(laws: CellLaws, far: float = _FAR) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logarithms below which a cell's masses are left out of sums, and halvings of exponents.

    Masses that are so `far` all around, in nats, are left out.
    """
    change = laws.change
    floor = (-(far + change[0] + change[1])).astype(np.float32).ravel()
    return floor, _halvings(change).ravel()


def mean_slopes(laws: CellLaws, cell: tuple[float, float], points: FloatArray) -> FloatArray:
    """(cells, n, n, 2) the mean m at n points along each axis of every cell, across and down."""
    [(sums, _)] = _sums(laws, cell, [(np.arange(laws.log_sums.size), points)])
    return np.asarray(sums[..., 1:] / sums[..., :1])


def _sums(
    laws: CellLaws,
    cell: tuple[float, float],
    groups: list[tuple[NDArray[np.intp], FloatArray]],
) -> list[tuple[FloatArray, FloatArray]]:
    """Sums (mine, n, n, 3) at n points along each axis of cells, and the share of mass left out.

    For each of the groups of cells and their points.
    """
    shape, limits = (laws.log_sums.shape[0], laws.log_sums.shape[1]), exponents(laws)
    splines = [
        [f(x).astype(np.float32) for f in (spline_weights, spline_slopes)] for _, x in groups
    ]

    def nothing() -> list[tuple[FloatArray, FloatArray]]:
        return [
            (np.zeros((len(mine), len(x), len(x), 3)), np.zeros(len(mine))) for mine, x in groups
        ]

    def add(block: Block, own: list[tuple[FloatArray, FloatArray]]) -> None:
        for (mine, _), (weights, slopes), sums in zip(groups, splines, own, strict=True):
            add_sums(block, limits, mine, shape, cell, (weights, slopes), *sums)

    found = over_blocks(laws.shares(True), nothing, add)
    out = []
    for (mine, _), shares in zip(groups, zip(*found, strict=True), strict=True):
        sums, kept = (np.add.reduce(part) for part in zip(*shares, strict=True))
        share = kept / np.exp(laws.log_sums.ravel()[mine])
        out.append((sums, np.maximum(1.0 - share, 0.0)))
    return out


def _left_out(
    laws: CellLaws,
    cell: tuple[float, float],
    mass: FloatArray,
    left_out: FloatArray,
    degree: int,
    mine: NDArray[np.intp],
) -> FloatArray:
    """How far reports that were left out, and roundings, move an interpolated mean at most."""
    height, width = cell
    along, across = (part.ravel()[mine] for part in laws.change)
    steep = np.hypot(across / width, along / height)
    halvings = _halvings(laws.change).ravel()[mine]
    # As a share of the mass at any point: there a mass is at most e^span times that at the centre.
    whole = np.exp(laws.log_sums.ravel()[mine])
    absent = (left_out + _ROUNDING) * np.exp(along + across)
    absent = absent * (whole[:, None, None] / mass).max(axis=(1, 2))
    # Of a mass, in units of 2^-24: logarithms are off by their size at most, their mean less one of
    # them by twice that; sums of nine by 8 for every nat between these; the series by 10, doubled
    # with every square; products and partial sums by 8.  All of that twice.
    inexact = 8.0 + 2.0 * laws.deepest + 8.0 * (along + across) + 10.0 * 2.0**halvings
    rounding = 2.0**-23 * inexact
    slope_noise = _ROUNDING * (laws.deepest * 0.25 * (1.0 / height + 1.0 / width) + steep)
    noise = 2.0 * steep * (absent + lebesgue(degree) ** 2 * rounding)
    return np.asarray(noise + slope_noise)


def _least_normaliser(
    laws: CellLaws,
    cell: tuple[float, float],
    mass: FloatArray,
    degree: int,
    mine: NDArray[np.intp],
    largest: FloatArray,
) -> float:
    """A lower bound of Z(u) = sum_y prod_c P(y | c)^{B_c(u)} over the cells `mine`.

    At a point: the sum of its masses over the geometric mean of the cells' sums.  From there ln Z
    changes by no more than its slope, that of m (at most `largest`) and of the mean of the sums.
    """
    logs = np.pad(laws.log_sums, 1, mode="edge")
    weights = spline_weights(chebyshev_points(degree))
    windows = np.lib.stride_tricks.sliding_window_view(logs, (3, 3))
    around = windows.reshape(-1, 3, 3)[mine]
    shared = np.einsum("ia,jb,cab->cij", weights, weights, around)
    along = np.abs(np.diff(around, axis=1)).max(axis=(1, 2)) / cell[0]
    across = np.abs(np.diff(around, axis=2)).max(axis=(1, 2)) / cell[1]
    gap = float(np.diff(chebyshev_points(degree)).max()) / 2
    room = gap * math.hypot(*cell) * (largest + np.hypot(along, across))
    found = np.log(mass) - shared - room[:, None, None]
    return float(min(1.0, math.exp(float(found.min()))))
