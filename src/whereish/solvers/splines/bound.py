"""The largest slope |grad ln P(y | u)| of a spline law over all places u and reports y, proven.

A law between cells is the geometric mean of those of the nine cells around a place,

    P(y | u) = prod_c P(y | c)^{B_c(u)} / Z(u),

B biquadratic B-spline weights (:mod:`~whereish.solvers.splines.weights`).  With a_y(c) =
ln P(y | c) up to what all reports share, F_y = sum_c B_c a_y(c) and G_y = grad F_y,

    grad ln P(y | u) = G_y(u) - m(u),      m(u) = E_u[G_Y(u)],  Y ~ P(. | u).

**Reports.**  Within a cell G_y is a polynomial of degree (2, 2) and eps(u), bilinear between
centres, one of degree (1, 1) on each quarter.  If M is of degree (2, 2), too, and |m - M| <= r,
then |G_y - m| <= t·eps follows from |V_k| + r <= t·e_k for the Bernstein coefficients V of G_y - M
and e of (a lower bound of) eps: a norm is convex, and the basis is >= 0 and sums to 1
(:mod:`~whereish.solvers.splines.blocks` cuts cells into 4 and 16 squares where that helps).

**The mean.**  m is evaluated at the nodes of a lattice through every cell and interpolated
biquadratically between 3 x 3 of them, a distance d apart.  Along x the error is at most
d^3/(9 sqrt 3)·sup |m_xxx|; with K = ln sum_y e^{F_y} and centred X = G_x - m_x, T = theta·(G - m),
|theta| = 1, the derivative theta·m_xxx = K_{xxx theta} is by the moment-cumulant formula

    3 Cov(F_xx theta, X) + 3 Cov(F_xx, F_x theta) + 3 E[F_xx X T]° + 3 E[F_x theta X X]°
    + E[X^3 T] - 3 E[X^2] E[X T]

(° with the first factor centred; F_xxx = 0), hence at most, with |X| <= s, deviations x and n of X
and G, H^2 = E[F_xx^2 + F_xy^2] and C = E|F_xxy|,

    3 s C + 3 H^2 + 3 s H (n + x) + s^2 x n + 3 x^3 n.

The moments are computed at the nodes; from the nearest node, at most half a diagonal D of the
lattice away, they grow by at most e^{2 g D} (|G| <= g, so that ln P changes by at most 2 g D), and
x by D·H.  Two axes: the second interpolation is one of interpolated values, at most 5/4 times as
large.  Reports of little mass are left out of the mean, and what they could change is added, with
all roundings of the single precision (`_ROUNDING` relative, several times what they can reach).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.splines.blocks import MOMENTS, add_moments, raise_slopes
from whereish.solvers.splines.weights import spline_slopes, spline_weights

__all__ = ["Block", "CellLaws", "SplineSlopes", "largest_slopes"]

Block: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
"""Logarithms a_y(c) and masses, (cells, 64) each, and the largest logarithm of each cell."""

_CUBIC = 1.0 / (9.0 * math.sqrt(3.0))
_LEBESGUE = 1.25  # of quadratic interpolation at three equidistant nodes
_ROUNDING = 2.0**-18
_STEP = 0.14  # nats per pair of nodes: the interpolated mean is then within about 0.3% of eps
_FINEST = 24
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, _FINEST)
_FAR = 14.0  # nats: what lies farther has about 1e-5 of the mass
_SERIES = 0.25  # largest argument of the exponential's series
_BERNSTEIN: FloatArray = np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, -0.5], [0.0, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class CellLaws:
    """The laws of the cells of a grid, as the bound needs them.

    Attributes
    ----------
    blocks : makes the blocks of 64 reports, anew for every pass.
    log_sums : (rows, cols) ln of the sum of a cell's masses over all reports.
    across, along : (rows, cols - 1) and (rows - 1, cols): bounds of |a_y(c) - a_y(c')| over all
        reports, between neighbours in a row and in a column.
    deepest : bound of |a_y(c)|.
    """

    blocks: Callable[[], Iterator[Block]]
    log_sums: FloatArray
    across: FloatArray
    along: FloatArray
    deepest: float


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
    laws: CellLaws, levels: FloatArray, cell: tuple[float, float], *, bar: float = 0.0
) -> SplineSlopes:
    """Bounds of |grad ln P| / eps on every cell; below `bar` they need not be sharp.

    `levels` are eps at the centres, `cell` the height and width of a cell.
    """
    unit = max(cell)  # single precision has no room for squares of metres and their inverses
    cell, levels = (cell[0] / unit, cell[1] / unit), levels * unit
    mean = _mean(laws, cell)
    e1, e2, e4 = _level_controls(levels)
    least = e4.min(axis=(1, 2))
    extra = mean.radius.ravel() / least
    # What nothing finer needs to look at: both G and m are at most g.
    crude = 2.0 * mean.steepest.ravel() / least
    known = crude <= 0.5
    best = np.where(known, crude, 0.0)
    if not known.all():
        i1, i2, i4 = ((1.0 / e**2).astype(np.float32) for e in (e1, e2, e4))
        shape = (levels.shape[0], levels.shape[1])
        controls = mean.controls.astype(np.float32)
        for A, _, _ in laws.blocks():
            raise_slopes(A, shape, *cell, controls, i1, i2, i4, extra, known, bar, best)
    factors = (best * (1.0 + _ROUNDING)).reshape(levels.shape)
    return SplineSlopes(np.where(np.isfinite(factors), factors, np.inf), mean.acceptance)


@dataclass(frozen=True, eq=False)
class _Mean:
    """An enclosure of m on every cell: control points (cells, 9, 2), a radius, |G| <= steepest."""

    controls: FloatArray
    radius: FloatArray
    steepest: FloatArray
    acceptance: float


def _mean(laws: CellLaws, cell: tuple[float, float]) -> _Mean:
    shape = laws.log_sums.shape
    rows, cols = shape
    change = _largest_changes(laws)
    counts = _node_counts(np.maximum(*change))
    controls, radius = np.empty((*shape, 9, 2)), np.empty(shape)
    acceptance = 1.0
    for half in np.unique(counts):
        mine = counts == half
        active = np.zeros((rows + 1, cols + 1), np.bool_)
        for i in (0, 1):
            for j in (0, 1):
                active[i : i + rows, j : j + cols] |= mine
        sums, absent = _moments(laws, cell, change, active, int(half))
        found = _enclosed(laws, cell, change, sums, absent, int(half), mine)
        controls[mine], radius[mine] = found[0], found[1]
        acceptance = min(acceptance, found[2])
    steepest = np.hypot(change[0] / cell[0], change[1] / cell[1])
    return _Mean(controls.reshape(-1, 9, 2), radius, steepest, acceptance)


def _largest_changes(laws: CellLaws) -> tuple[FloatArray, FloatArray]:
    """Bounds of the differences of a_y along y and x among the nine cells around each."""
    rows, cols = laws.log_sums.shape
    out = []
    for edges, axis in ((laws.along, 0), (laws.across, 1)):
        first = [(0, 0), (0, 0)]
        first[axis] = (1, 1)
        wide = np.pad(edges, first)
        either = (
            np.maximum(wide[:-1], wide[1:]) if axis == 0 else np.maximum(wide[:, :-1], wide[:, 1:])
        )
        side = np.pad(either, [(0, 0), (1, 1)] if axis == 0 else [(1, 1), (0, 0)], mode="edge")
        if axis == 0:
            either = np.maximum(np.maximum(side[:, :-2], side[:, 1:-1]), side[:, 2:])
        else:
            either = np.maximum(np.maximum(side[:-2], side[1:-1]), side[2:])
        out.append(np.asarray(either, np.float64).reshape(rows, cols))
    return out[0], out[1]


def _node_counts(change: FloatArray) -> NDArray[np.int64]:
    """Pairs of nodes along each axis of every cell."""
    wanted = np.ceil(change / _STEP)
    index = np.searchsorted(np.array(_COUNTS), np.minimum(wanted, _FINEST))
    return np.asarray(np.array(_COUNTS)[index], np.int64)


def _halvings(change: tuple[FloatArray, FloatArray]) -> NDArray[np.int64]:
    """How often the exponent of a cell is halved before its series."""
    ratio = np.maximum((change[0] + change[1]) / _SERIES, 1.0)
    return np.ceil(np.log2(ratio)).astype(np.int64)


def _moments(
    laws: CellLaws,
    cell: tuple[float, float],
    change: tuple[FloatArray, FloatArray],
    active: NDArray[np.bool_],
    half: int,
) -> tuple[FloatArray, FloatArray]:
    """The sums at the nodes of the active cells, and the share of each cell's mass left out.

    The sums are (2 half rows + 1, 2 half cols + 1, moments).
    """
    n = 2 * half
    rows, cols = laws.log_sums.shape
    offsets = np.arange(n) / n - 0.5
    weights, slopes = (f(offsets).astype(np.float32) for f in (spline_weights, spline_slopes))
    floor = (-(_FAR + change[0] + change[1])).astype(np.float32).ravel()
    out = np.zeros((n * rows + 1, n * cols + 1, MOMENTS))
    kept = np.zeros(rows * cols)
    halvings = _halvings(change).ravel()
    for A, E, top in laws.blocks():
        add_moments(A, E, top, floor, halvings, active, *cell, weights, slopes, out, kept)
    # Nodes at the ends of a cell were summed over what its neighbours left in.
    share = kept.reshape(rows, cols) / np.exp(laws.log_sums)
    wide = np.pad(np.where(active[:-1, :-1], share, 1.0), ((0, 1), (0, 1)), mode="edge")
    least = np.minimum(
        np.minimum(wide[:-1, :-1], wide[1:, :-1]), np.minimum(wide[:-1, 1:], wide[1:, 1:])
    )
    return out, np.maximum(1.0 - least, 0.0)


def _enclosed(
    laws: CellLaws,
    cell: tuple[float, float],
    change: tuple[FloatArray, FloatArray],
    sums: FloatArray,
    left_out: FloatArray,
    half: int,
    mine: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray, float]:
    """Control points (cells, 9, 2) and radii of m on the cells `mine`, and the least Z there."""
    n = 2 * half
    height, width = cell
    view = np.lib.stride_tricks.sliding_window_view(sums, (n + 1, n + 1), axis=(0, 1))
    # (cells, moments, nodes, nodes)
    nodes = view[::n, ::n][mine]
    mass = nodes[:, 0]
    moments = nodes / mass[:, None]
    gy, gx = change[0][mine] / height, change[1][mine] / width
    steep = np.hypot(gx, gy)
    span = (change[0] + change[1])[mine]
    halvings = _halvings(change)[mine]
    # Left out, as a share of the mass at any node: there a mass is at most e^span times that at
    # the centre.
    whole = np.exp(laws.log_sums[mine])
    absent = (left_out[mine] + _ROUNDING) * np.exp(span)
    absent = absent * (whole[:, None, None] / mass).max(axis=(1, 2))
    rounding = _ROUNDING * (1.0 + 2.0**halvings + laws.deepest)
    noise = 2.0 * steep * (absent + rounding)
    slope_noise = _ROUNDING * (laws.deepest * 0.25 * (1.0 / height + 1.0 / width) + steep)

    mean_x, mean_y = moments[:, 1], moments[:, 2]
    step_x, step_y = width / n, height / n
    far = math.hypot(step_x, step_y) / 2.0
    lift = np.exp(2.0 * steep * far) * (1.0 + rounding)
    over = np.max(moments[:, 5:], axis=(2, 3)) * lift[:, None]
    mixed = np.minimum(2 * gx / height, 2 * gy / width)
    hx = np.sqrt(over[:, 0] + absent * ((2 * gx / width) ** 2 + mixed**2))
    hy = np.sqrt(over[:, 1] + absent * ((2 * gy / height) ** 2 + mixed**2))
    tx = over[:, 2] + absent * 4 * gx / (width * height)
    ty = over[:, 3] + absent * 4 * gy / (width * height)

    def deviation(
        second: FloatArray, first: FloatArray, bend: FloatArray, g: FloatArray
    ) -> FloatArray:
        variance = np.maximum(second - first**2, 0.0).max(axis=(1, 2)) + 4 * g**2 * (
            absent + rounding
        )
        return np.asarray(np.sqrt(variance * lift) + far * bend)

    dx = deviation(moments[:, 3], mean_x, hx, gx)
    dy = deviation(moments[:, 4], mean_y, hy, gy)
    both = np.hypot(dx, dy)

    def cubic(s: FloatArray, d: FloatArray, h: FloatArray, t: FloatArray) -> FloatArray:
        return 3 * s * t + 3 * h**2 + 3 * s * h * (both + d) + s**2 * d * both + 3 * d**3 * both

    ax, ay = 2 * gx, 2 * gy
    radius = np.zeros_like(gx)
    for _ in range(3):
        radius = (
            _CUBIC
            * _LEBESGUE
            * (step_x**3 * cubic(ax, dx, hx, tx) + step_y**3 * cubic(ay, dy, hy, ty))
        )
        # |m| between the nodes, now that the interpolant is known to be near.
        near = _LEBESGUE**2 * (np.hypot(mean_x, mean_y).max(axis=(1, 2)) + noise) + radius
        ax, ay = gx + np.minimum(gx, near), gy + np.minimum(gy, near)
    controls, apart = _biquadratic(mean_x, mean_y, half)
    radius = radius + apart + _LEBESGUE**2 * noise + slope_noise
    acceptance = _least_normaliser(laws, mass, half, mine, steep * far * 2.0)
    return controls, radius, acceptance


def _biquadratic(
    mean_x: FloatArray, mean_y: FloatArray, half: int
) -> tuple[FloatArray, FloatArray]:
    """Control points through the nodes at ends and middle, and how far the fine pieces are off."""

    def pieces(values: FloatArray, i: int, j: int, step: int) -> FloatArray:
        nodes = values[:, i : i + 2 * step + 1 : step, j : j + 2 * step + 1 : step]
        return np.asarray(np.einsum("ia,jb,cab->cij", _BERNSTEIN, _BERNSTEIN, nodes))

    whole = [pieces(values, 0, 0, half) for values in (mean_x, mean_y)]
    apart = np.zeros(len(mean_x))
    for i in range(half):
        for j in range(half):
            along, across = _cut(i / half, (i + 1) / half), _cut(j / half, (j + 1) / half)
            off = [
                pieces(values, 2 * i, 2 * j, 1) - np.einsum("ia,jb,cab->cij", along, across, coarse)
                for values, coarse in zip((mean_x, mean_y), whole, strict=True)
            ]
            apart = np.maximum(apart, np.hypot(*off).max(axis=(1, 2)))
    controls = np.stack([part.reshape(-1, 9) for part in whole], axis=-1)
    return controls, apart


def _cut(a: float, b: float) -> FloatArray:
    """Bernstein coefficients on [a, b] from those on [0, 1], degree 2 (blossom)."""
    return np.array(
        [
            [(1 - a) ** 2, 2 * a * (1 - a), a * a],
            [(1 - a) * (1 - b), a + b - 2 * a * b, a * b],
            [(1 - b) ** 2, 2 * b * (1 - b), b * b],
        ]
    )


def _least_normaliser(
    laws: CellLaws, mass: FloatArray, half: int, mine: NDArray[np.bool_], room: FloatArray
) -> float:
    """A lower bound of Z(u) = sum_y prod_c P(y | c)^{B_c(u)} over the cells `mine`.

    At a node: the sum of its masses over the geometric mean of the cells' sums.  ln Z changes by
    at most `room` from there, the slope of the mean and of ln of the cells' sums.
    """
    logs = np.pad(laws.log_sums, 1, mode="edge")
    weights = spline_weights(np.arange(2 * half + 1) / (2 * half) - 0.5)
    around = np.lib.stride_tricks.sliding_window_view(logs, (3, 3))[mine]
    shared = np.einsum("ia,jb,cab->cij", weights, weights, around)
    found = np.log(mass) - shared - room[:, None, None]
    return float(min(1.0, math.exp(float(found.min()))))


def _level_controls(levels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bernstein coefficients (cells, 9), (cells, 4, 9), (cells, 16, 9) of at most eps.

    On quarters of a cell, and on theirs, eps is bilinear and they are its values at corners and
    middles.  Across a whole cell eps is broken at the centre: see `_below`.
    """
    wide = np.pad(levels, 1, mode="edge")
    rows, cols = levels.shape
    ends = np.linspace(-0.5, 0.5, 9)
    fine = np.empty((9, 9, rows, cols))
    for a, t in enumerate(ends):
        for b, s in enumerate(ends):
            i, j = (2 if t > 0 else 0), (2 if s > 0 else 0)
            up, right = abs(t), abs(s)
            own = (1 - right) * levels + right * wide[1:-1, j : j + cols]
            beyond = wide[i : i + rows]
            other = (1 - right) * beyond[:, 1:-1] + right * beyond[:, j : j + cols]
            fine[a, b] = (1 - up) * own + up * other
    coarse = _below(np.moveaxis(_below(fine[::4, ::4]), 1, 0))
    whole = np.moveaxis(coarse, 1, 0).reshape(9, rows, cols)
    quarters = np.empty((4, 9, rows, cols))
    sixteenths = np.empty((16, 9, rows, cols))
    for m in range(4):
        a, b = 4 * (m // 2), 4 * (m % 2)
        quarters[m] = fine[a : a + 5 : 2, b : b + 5 : 2].reshape(9, rows, cols)
        for n in range(4):
            p, q = a + 2 * (n // 2), b + 2 * (n % 2)
            sixteenths[4 * m + n] = fine[p : p + 3, q : q + 3].reshape(9, rows, cols)
    return tuple(  # type: ignore[return-value]
        np.ascontiguousarray(np.moveaxis(e.reshape(*e.shape[:-2], -1), -1, 0))
        for e in (whole, quarters, sixteenths)
    )


def _below(values: FloatArray) -> FloatArray:
    """Quadratic coefficients below the broken line through three values (first axis).

    With b the ends and e the middle value: b_1 = min(e, 2e - (b_0 + b_2)/2).  A concave line is
    its own control polygon, above the curve; below a convex one the curve is convex, too, and at
    most the line at both ends and in the middle.  (Where that is not positive, nothing follows
    from the whole cell: the tiny value makes its bound large.)
    """
    low, middle, high = values
    below = np.minimum(middle, 2 * middle - (low + high) / 2)
    return np.stack([low, np.maximum(below, 1e-6 * middle), high])
