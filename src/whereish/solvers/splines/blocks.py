"""The compiled sums and maxima behind the slopes of a spline law, 64 reports at a time.

A block holds, for every cell c and 64 reports y, the logarithm a_y(c) of a mass up to what all
reports share (float32).  Within a cell F_y(u) = sum_c B_c(u) a_y(c) is biquadratic, and its
gradient G_y has, in the Bernstein basis of degree (2, 2) of the cell, the control points

    x-part: (p + p')/2, p', (p' + p'')/2 over the rows, of (d-, (d- + d+)/2, d+),

d-, d+ the differences of a_y to the neighbours in x, p, p', p'' those of the three rows; the
y-part likewise.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.lane_sums import exponentials, total

__all__ = [
    "Block",
    "add_sums",
    "around",
    "down_columns",
    "largest",
    "raise_fine_slopes",
    "raise_slopes",
]

Block: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
"""Logarithms a_y(c) and masses, (cells, 64) each, and the largest logarithm of each cell.

The last is -inf where the block's reports all have the same logarithm at all nine cells around,
and so no gradient; the others may then be anything."""


def _polar_weights(s: float, t: float) -> list[float]:
    """Weights of three control points in the polar form of their quadratic at (s, t)."""
    return [(1 - s) * (1 - t), s * (1 - t) + t * (1 - s), s * t]


_FOURTHS: NDArray[np.float32] = np.array(
    [
        [
            _polar_weights(q / 4, q / 4),
            _polar_weights(q / 4, (q + 1) / 4),
            _polar_weights((q + 1) / 4, (q + 1) / 4),
        ]
        for q in range(4)
    ],
    np.float32,
)
"""From control points along an axis to those on its q-th fourth: (4, 3, 3), exact in binary."""


@kernel
def around(i: int, j: int, shape: Any, cells: Any) -> None:
    """The nine cells around (i, j) into `cells`; beyond the rim they are those of the rim."""
    rows, cols = shape
    for r in range(3):
        row = min(max(i + r - 1, 0), rows - 1)
        for s in range(3):
            cells[3 * r + s] = row * cols + min(max(j + s - 1, 0), cols - 1)


@kernel
def down_columns(A: Any, here: int, cells: Any, spline: Any, a: Any, d: Any) -> None:
    """F less its value at a cell, and its slope down, along the three columns around it.

    `spline` has its weights and slopes at a point, and one over the height of a cell.
    """
    weights, slopes, ih = spline
    w0, w1, w2 = weights[0], weights[1], weights[2]
    g0, g1, g2 = slopes[0] * ih, slopes[1] * ih, slopes[2] * ih
    for s in range(3):
        south, middle, north = cells[s], cells[3 + s], cells[6 + s]
        for k in range(LANES):
            e = A[here, k]
            x, y, z = A[south, k] - e, A[middle, k] - e, A[north, k] - e
            a[s, k] = w0 * x + w1 * y + w2 * z
            d[s, k] = g0 * x + g1 * y + g2 * z


@kernel
def add_sums(
    block: Block,
    exponents: tuple[NDArray[np.float32], NDArray[np.int64]],
    mine: NDArray[np.int64],
    shape: tuple[int, int],
    cell: tuple[float, float],
    spline: tuple[NDArray[np.float32], NDArray[np.float32]],
    out: FloatArray,
    kept: FloatArray,
) -> None:
    """Add a block's masses and masses times G_x, G_y at points of the cells `mine` to `out`.

    `spline` has its weights and slopes, (n, 3) each, at the n points along an axis; `out` is
    (mine, n, n, 3), and `kept` gets the masses at the cells.  Cells whose largest logarithm is
    below a floor, the first of `exponents`, are left out; exponents are halved as often as the
    second says.
    """
    A, E, top = block
    floor, halvings = exponents
    weights, slopes = spline
    height, width = cell
    cells = np.empty(9, np.int64)
    a, d = np.empty((3, LANES), np.float32), np.empty((3, LANES), np.float32)
    w, gx, gy = (
        np.empty(LANES, np.float32),
        np.empty(LANES, np.float32),
        np.empty(LANES, np.float32),
    )
    q = np.empty(8, np.float32)
    ih, iw = np.float32(1.0 / height), np.float32(1.0 / width)
    for index in range(len(mine)):
        here = mine[index]
        if top[here] < floor[here]:
            continue
        around(here // shape[1], here % shape[1], shape, cells)
        kept[index] += total(E[here], q)
        scale = np.float32(1.0 / (1 << halvings[here]))
        for v in range(len(weights)):
            down_columns(A, here, cells, (weights[v], slopes[v], ih), a, d)
            for h in range(len(weights)):
                w0, w1, w2 = weights[h, 0], weights[h, 1], weights[h, 2]
                g0, g1, g2 = slopes[h, 0] * iw, slopes[h, 1] * iw, slopes[h, 2] * iw
                for k in range(LANES):
                    w[k] = (w0 * a[0, k] + w1 * a[1, k] + w2 * a[2, k]) * scale
                exponentials(w, halvings[here])
                for k in range(LANES):
                    w[k] = w[k] * E[here, k]
                    gx[k] = w[k] * (g0 * a[0, k] + g1 * a[1, k] + g2 * a[2, k])
                    gy[k] = w[k] * (w0 * d[0, k] + w1 * d[1, k] + w2 * d[2, k])
                o = out[index, v, h]
                o[0] += total(w, q)
                o[1] += total(gx, q)
                o[2] += total(gy, q)


@kernel
def largest(top: Any) -> float:
    """The largest of 64 numbers >= 0, which are overwritten; infinite where one is not a number."""
    wrong = 0
    for k in range(LANES):
        wrong += top[k] != top[k]
    half = LANES // 2
    while half:
        for k in range(half):
            top[k] = max(top[k], top[k + half])
        half //= 2
    return np.inf if wrong else np.float64(top[0])


@kernel
def _worst(V: Any, inverse: Any, top: Any) -> float:
    """The largest |V|^2 / e^2 over nine control points and 64 reports."""
    for k in range(LANES):
        top[k] = np.float32(0.0)
    for m in range(9):
        s = inverse[m]
        for k in range(LANES):
            top[k] = max(top[k], (V[0, m, k] * V[0, m, k] + V[1, m, k] * V[1, m, k]) * s)
    return largest(top)


@kernel
def _half(V: Any, out: Any, step: int, other: int, upper: bool) -> None:
    """Control points of one half of a biquadratic along an axis (de Casteljau)."""
    half, quarter = np.float32(0.5), np.float32(0.25)
    for r in range(3):
        first = r * other
        second, third = first + step, first + 2 * step
        for k in range(LANES):
            a, b, c = V[first, k], V[second, k], V[third, k]
            middle = quarter * a + half * b + quarter * c
            out[first, k] = middle if upper else a
            out[second, k] = half * (b + c) if upper else half * (a + b)
            out[third, k] = c if upper else middle


@kernel
def _quarter(V: Any, out: Any, scratch: Any, which: int) -> None:
    """Control points on a quarter of the square: south-west, south-east, north-west, north-east."""
    for part in range(2):
        _half(V[part], scratch, 3, 1, which >= 2)
        _half(scratch, out[part], 1, 3, which % 2 == 1)


@kernel
def _room() -> Any:
    """Nine cells; both parts of control points on a cell, a quarter and a sixteenth; scratch."""
    V = np.empty((2, 9, LANES), np.float32)
    scratch, top = np.empty((9, LANES), np.float32), np.empty(LANES, np.float32)
    return np.empty(9, np.int64), V, np.empty_like(V), np.empty_like(V), scratch, top


@kernel
def _gradients(A: Any, c: Any, cell: Any, mean: Any, VX: Any, VY: Any) -> None:
    """Control points of G - M on a cell, for each of 64 reports; `mean` has those of M."""
    ih, iw = np.float32(1.0 / cell[0]), np.float32(1.0 / cell[1])
    h = np.float32(0.5)
    for s in range(3):
        # x-part: row s of the control points lies between the rows of cells.
        low, high = (0, 1) if s == 0 else ((1, 1) if s == 1 else (1, 2))
        for k in range(LANES):
            west = h * (
                (A[c[3 * low + 1], k] - A[c[3 * low], k])
                + (A[c[3 * high + 1], k] - A[c[3 * high], k])
            )
            east = h * (
                (A[c[3 * low + 2], k] - A[c[3 * low + 1], k])
                + (A[c[3 * high + 2], k] - A[c[3 * high + 1], k])
            )
            west, east = west * iw, east * iw
            VX[3 * s, k] = west - mean[3 * s, 0]
            VX[3 * s + 1, k] = h * (west + east) - mean[3 * s + 1, 0]
            VX[3 * s + 2, k] = east - mean[3 * s + 2, 0]
            south = h * ((A[c[3 + low], k] - A[c[low], k]) + (A[c[3 + high], k] - A[c[high], k]))
            north = h * (
                (A[c[6 + low], k] - A[c[3 + low], k]) + (A[c[6 + high], k] - A[c[3 + high], k])
            )
            south, north = south * ih, north * ih
            VY[s, k] = south - mean[s, 1]
            VY[3 + s, k] = h * (south + north) - mean[3 + s, 1]
            VY[6 + s, k] = north - mean[6 + s, 1]


@kernel
def raise_slopes(
    block: Block,
    shape: tuple[int, int],
    cell: tuple[float, float],
    mean: NDArray[np.float32],
    levels: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    extra: FloatArray,
    known: NDArray[np.bool_],
    bar: float,
    best: FloatArray,
    flat: NDArray[np.bool_],
) -> None:
    """Raise `best`, per cell, to the largest bound of |G - m| / eps over a block's reports.

    `mean` (cells, 9, 2) has the control points of a biquadratic M with |m - M| / eps <= `extra`;
    `levels` 1/eps^2 at control points, of cells, their quarters and their sixteenths, that are
    nowhere above eps.  A square is cut into quarters, and these again, while its bound exceeds
    both `bar` and what the cell has already.  Cells that are `known` are left alone, and so are
    those around which the block is flat, which are marked in `flat`.
    """
    A, _, tops = block
    on_cells, on_quarters, on_sixteenths = levels
    cells, V, Q, S, scratch, top = _room()
    for here in range(len(best)):
        if known[here]:
            continue
        if tops[here] == -np.inf:
            flat[here] = True
            continue
        around(here // shape[1], here % shape[1], shape, cells)
        _gradients(A, cells, cell, mean[here], V[0], V[1])
        enough = max(max(bar, best[here]) - extra[here], 0.0) ** 2
        found = _worst(V, on_cells[here], top)
        if found > enough:
            found = 0.0
            for m in range(4):
                _quarter(V, Q, scratch, m)
                part = _worst(Q, on_quarters[here, m], top)
                if part > max(enough, found):
                    part = 0.0
                    for n in range(4):
                        _quarter(Q, S, scratch, n)
                        part = max(part, _worst(S, on_sixteenths[here, 4 * m + n], top))
                found = max(found, part)
        best[here] = max(best[here], np.sqrt(found) + extra[here])


@kernel
def _worst_across(strip: Any, fourth: Any, mean: Any, inverse: Any, top: Any) -> None:
    """|V - M|^2 / e^2 at its largest, per report, on a fourth of a strip of control points."""
    for k in range(LANES):
        top[k] = np.float32(0.0)
    for m in range(9):
        a, b, c = m - m % 3, m - m % 3 + 1, m - m % 3 + 2
        w0, w1, w2 = fourth[m % 3, 0], fourth[m % 3, 1], fourth[m % 3, 2]
        x, y, s = mean[m, 0], mean[m, 1], inverse[m]
        for k in range(LANES):
            vx = w0 * strip[0, a, k] + w1 * strip[0, b, k] + w2 * strip[0, c, k] - x
            vy = w0 * strip[1, a, k] + w1 * strip[1, b, k] + w2 * strip[1, c, k] - y
            top[k] = max(top[k], (vx * vx + vy * vy) * s)


@kernel
def _fourth_less_mean(strip: Any, fourth: Any, mean: Any, out: Any) -> None:
    """V - M on a fourth of a strip of control points."""
    for m in range(9):
        a, b, c = m - m % 3, m - m % 3 + 1, m - m % 3 + 2
        w0, w1, w2 = fourth[m % 3, 0], fourth[m % 3, 1], fourth[m % 3, 2]
        for p in range(2):
            for k in range(LANES):
                value = w0 * strip[p, a, k] + w1 * strip[p, b, k] + w2 * strip[p, c, k]
                out[p, m, k] = value - mean[m, p]


@kernel
def _quarter_levels(inverse: Any, which: int, out: Any) -> None:
    """1/eps^2 at the control points of a quarter of a square on which eps is bilinear.

    `inverse` are those of the square, all 0 where there is no place.
    """
    out[:] = np.float32(0.0)
    if inverse[0] == 0.0:
        return
    down, across = (which // 2) * 0.5, (which % 2) * 0.5
    a, b = 1.0 / np.sqrt(np.float64(inverse[0])), 1.0 / np.sqrt(np.float64(inverse[2]))
    c, d = 1.0 / np.sqrt(np.float64(inverse[6])), 1.0 / np.sqrt(np.float64(inverse[8]))
    for r in range(3):
        t = down + 0.25 * r
        for s in range(3):
            u = across + 0.25 * s
            e = (1.0 - t) * ((1.0 - u) * a + u * b) + t * ((1.0 - u) * c + u * d)
            out[3 * r + s] = np.float32(1.0 / (e * e))


@kernel
def raise_fine_slopes(
    block: Block,
    mine: NDArray[np.int64],
    shape: tuple[int, int],
    cell: tuple[float, float],
    whole: tuple[NDArray[np.float32], NDArray[np.float32], FloatArray],
    mean: NDArray[np.float32],
    on_sixteenths: NDArray[np.float32],
    extra: FloatArray,
    bar: float,
    best: FloatArray,
) -> None:
    """As :func:`raise_slopes` for the cells `mine`, with an M of its own on every sixteenth.

    `mean` is (mine, 16, 9, 2), `extra` (mine, 16), `best` over `mine`.  Sixteenths are cut into
    quarters again where that is not enough.  `whole` has mean, levels and extra of the cells, as
    for :func:`raise_slopes`: where their bound is no more than `best` already, nothing is raised.
    """
    A, _, tops = block
    on_cells, levels, off_cells = whole
    none = np.zeros((9, 2), np.float32)
    inverse = np.empty(9, np.float32)
    cells, V, strip, S, scratch, top = _room()
    piece = np.empty_like(S)
    for index in range(len(mine)):
        here = mine[index]
        if tops[here] == -np.inf:
            continue
        around(here // shape[1], here % shape[1], shape, cells)
        _gradients(A, cells, cell, on_cells[here], V[0], V[1])
        bound = np.sqrt(_worst(V, levels[here], top)) + off_cells[here]
        if bound <= max(bar, best[index]):
            best[index] = max(best[index], bound)
            continue
        _gradients(A, cells, cell, none, V[0], V[1])
        for i in range(4):
            for m in range(9):
                r, s = m // 3, m % 3
                w0, w1, w2 = _FOURTHS[i, r, 0], _FOURTHS[i, r, 1], _FOURTHS[i, r, 2]
                for p in range(2):
                    for k in range(LANES):
                        strip[p, m, k] = w0 * V[p, s, k] + w1 * V[p, s + 3, k] + w2 * V[p, s + 6, k]
            for j in range(4):
                part = 8 * (i // 2) + 4 * (j // 2) + 2 * (i % 2) + j % 2
                inverses, off = on_sixteenths[here, part], extra[index, part]
                _worst_across(strip, _FOURTHS[j], mean[index, part], inverses, top)
                found = np.sqrt(largest(top))
                if found + off > max(bar, best[index]):
                    _fourth_less_mean(strip, _FOURTHS[j], mean[index, part], S)
                    found = 0.0
                    for quarter in range(4):
                        _quarter(S, piece, scratch, quarter)
                        _quarter_levels(inverses, quarter, inverse)
                        found = max(found, np.sqrt(_worst(piece, inverse, top)))
                best[index] = max(best[index], found + off)
