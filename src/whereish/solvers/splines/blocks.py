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
from whereish.solvers.splines.lanes.controls import gradients, halves, quarter, room, steepest
from whereish.solvers.splines.lanes.operations import (
    add_at_point,
    columns,
    largest,
    total,
    worst,
)
from whereish.solvers.splines.levels import quarter_levels

__all__ = [
    "Block",
    "add_sums",
    "around",
    "at_point",
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
def at_point(spline: Any, k: int, per_side: Any) -> Any:
    """A spline's weights and slopes at the k-th point of an axis, the latter by a cell's side."""
    w, g = spline
    return w[k, 0], w[k, 1], w[k, 2], g[k, 0] * per_side, g[k, 1] * per_side, g[k, 2] * per_side


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
    height, width = cell
    cells, sides = np.empty(9, np.int64), np.empty((6, LANES), np.float32)
    ih, iw = np.float32(1.0 / height), np.float32(1.0 / width)
    count, sums = out.shape[1], out.reshape(-1, 3)
    for index in range(len(mine)):
        here = mine[index]
        if top[here] < floor[here]:
            continue
        around(here // shape[1], here % shape[1], shape, cells)
        kept[index] += total(E, here)
        fall = np.float32(1.0 / (1 << halvings[here])), halvings[here]
        at = index * count * count
        for v in range(count):
            columns(A, here, cells, at_point(spline, v, ih), sides)
            for h in range(count):
                add_at_point(sides, E, here, at_point(spline, h, iw), fall, sums, at)
                at += 1


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
    nine, V, Q, S, scratch = room()
    each, steps = np.empty(LANES, np.float32), halves(cell)
    for here in range(len(best)):
        if known[here]:
            continue
        if tops[here] == -np.inf:
            flat[here] = True
            continue
        around(here // shape[1], here % shape[1], shape, nine[0])
        enough = max(max(bar, best[here]) - extra[here], 0.0) ** 2
        steepest(A, nine, steps, mean[here], on_cells[here], each)
        found = largest(each)
        if found > enough:
            gradients(A, nine, steps, mean[here], V)
            found = 0.0
            for m in range(4):
                quarter(V, Q, scratch, m)
                part = worst(Q, on_quarters[here, m])
                if part > max(enough, found):
                    part = 0.0
                    for n in range(4):
                        quarter(Q, S, scratch, n)
                        part = max(part, worst(S, on_sixteenths[here, 4 * m + n]))
                found = max(found, part)
        best[here] = max(best[here], np.sqrt(found) + extra[here])


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
    nine, V, strip, S, scratch = room()
    each, steps = np.empty(LANES, np.float32), halves(cell)
    piece = np.empty_like(S)
    for index in range(len(mine)):
        here = mine[index]
        if tops[here] == -np.inf:
            continue
        around(here // shape[1], here % shape[1], shape, nine[0])
        steepest(A, nine, steps, on_cells[here], levels[here], each)
        bound = np.sqrt(largest(each)) + off_cells[here]
        if bound <= max(bar, best[index]):
            best[index] = max(best[index], bound)
            continue
        gradients(A, nine, steps, none, V)
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
                _fourth_less_mean(strip, _FOURTHS[j], mean[index, part], S)
                found = np.sqrt(worst(S, inverses))
                if found + off > max(bar, best[index]):
                    found = 0.0
                    for which in range(4):
                        quarter(S, piece, scratch, which)
                        quarter_levels(inverses, which, inverse)
                        found = max(found, np.sqrt(worst(piece, inverse)))
                best[index] = max(best[index], found + off)
