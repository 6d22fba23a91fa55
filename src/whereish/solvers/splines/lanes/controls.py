"""Bernstein control points of 64 biquadratic gradients on a square, and on its quarters.

They lie side by side in single precision, (2, 9, 64): the parts across and down, the control
points row by row.  Loops over the 64 read and write one array each, at distances that do not
change, so that they compile to vector instructions; a loop over control points whose distances
are variables takes six times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.lanes.operations import side_by_side

__all__ = ["gradients", "halves", "quarter", "room", "steepest"]

_1, _2, _3, _4, _5, _6, _7, _8 = (LANES * m for m in range(1, 9))
_DOWN = 9 * LANES
"""Where control points stand in a flat array, and where the parts down begin."""


@kernel
def room() -> Any:
    """Nine cells and their rows; control points on a cell, a quarter and a sixteenth; scratch."""
    V = np.empty((2, 9, LANES), np.float32)
    scratch = np.empty((9, LANES), np.float32)
    nine = np.empty(9, np.int64), np.empty(9 * LANES, np.float32)
    return nine, V, np.empty_like(V), np.empty_like(V), scratch


@kernel
def halves(cell: Any) -> Any:
    """Of differences between neighbours, per height and width of a cell."""
    return np.float32(0.5 / cell[0]), np.float32(0.5 / cell[1])


@kernel
def steepest(A: Any, nine: Any, steps: Any, mean: Any, inverse: Any, out: Any) -> None:
    """The largest |V|^2 / e^2 over the control points of :func:`gradients`, for each report.

    `inverse` is 1 / e^2 at these.  Where anything is infinite or no number, so is what is found.
    """
    side_by_side(A, nine[0], nine[1])
    _steepest(nine[1], steps[1], steps[0], mean, inverse, out)


@kernel
def _squared(x: Any, y: Any, inverse: Any) -> Any:
    return (x * x + y * y) * inverse


@kernel
def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@kernel
def _steepest(N: Any, wide: Any, high: Any, mean: Any, inverse: Any, out: Any) -> None:
    x0, x1, x2, x3, x4 = mean[0, 0], mean[1, 0], mean[2, 0], mean[3, 0], mean[4, 0]
    x5, x6, x7, x8 = mean[5, 0], mean[6, 0], mean[7, 0], mean[8, 0]
    y0, y1, y2, y3, y4 = mean[0, 1], mean[1, 1], mean[2, 1], mean[3, 1], mean[4, 1]
    y5, y6, y7, y8 = mean[5, 1], mean[6, 1], mean[7, 1], mean[8, 1]
    e0, e1, e2, e3, e4 = inverse[0], inverse[1], inverse[2], inverse[3], inverse[4]
    e5, e6, e7, e8 = inverse[5], inverse[6], inverse[7], inverse[8]
    half = np.float32(0.5)
    for k in range(LANES):
        west0, east0 = wide * (N[_1 + k] - N[k]), wide * (N[_2 + k] - N[_1 + k])
        west1, east1 = wide * (N[_4 + k] - N[_3 + k]), wide * (N[_5 + k] - N[_4 + k])
        west2, east2 = wide * (N[_7 + k] - N[_6 + k]), wide * (N[_8 + k] - N[_7 + k])
        south0, north0 = high * (N[_3 + k] - N[k]), high * (N[_6 + k] - N[_3 + k])
        south1, north1 = high * (N[_4 + k] - N[_1 + k]), high * (N[_7 + k] - N[_4 + k])
        south2, north2 = high * (N[_5 + k] - N[_2 + k]), high * (N[_8 + k] - N[_5 + k])
        # The control points by rows of these halves: at the south, the middle and the north.
        left, right = west0 + west1, east0 + east1
        down_left, down, down_right = south0 + south1, south1 + south1, south1 + south2
        up_left, up, up_right = north0 + north1, north1 + north1, north1 + north2
        s0 = _squared(left - x0, down_left - y0, e0)
        s1 = _squared(half * (left + right) - x1, down - y1, e1)
        s2 = _squared(right - x2, down_right - y2, e2)
        left, right = west1 + west1, east1 + east1
        s3 = _squared(left - x3, half * (down_left + up_left) - y3, e3)
        s4 = _squared(half * (left + right) - x4, half * (down + up) - y4, e4)
        s5 = _squared(right - x5, half * (down_right + up_right) - y5, e5)
        left, right = west1 + west2, east1 + east2
        s6 = _squared(left - x6, up_left - y6, e6)
        s7 = _squared(half * (left + right) - x7, up - y7, e7)
        s8 = _squared(right - x8, up_right - y8, e8)
        found = _larger(_larger(_larger(s0, s1), _larger(s2, s3)), _larger(s4, s5))
        found = _larger(found, _larger(s6, _larger(s7, s8)))
        total = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8
        out[k] = found + (total - total)


@kernel
def gradients(A: Any, nine: Any, steps: Any, mean: Any, V: Any) -> None:
    """Control points of G - M on a cell, for each of 64 reports; `mean` (9, 2) has those of M.

    G's are halves of sums of two differences between rows of A: across, between columns of cells
    in the rows beside a row of control points, and down likewise.
    """
    side_by_side(A, nine[0], nine[1])
    _across(nine[1], steps[1], mean, V.reshape(-1))
    _down(nine[1], steps[0], mean, V.reshape(-1))


@kernel
def _across(N: Any, half: Any, mean: Any, V: Any) -> None:
    m0, m1, m2, m3, m4 = mean[0, 0], mean[1, 0], mean[2, 0], mean[3, 0], mean[4, 0]
    m5, m6, m7, m8 = mean[5, 0], mean[6, 0], mean[7, 0], mean[8, 0]
    middle = np.float32(0.5)
    for k in range(LANES):
        west0, east0 = N[_1 + k] - N[k], N[_2 + k] - N[_1 + k]
        west1, east1 = N[_4 + k] - N[_3 + k], N[_5 + k] - N[_4 + k]
        west2, east2 = N[_7 + k] - N[_6 + k], N[_8 + k] - N[_7 + k]
        west, east = half * (west0 + west1), half * (east0 + east1)
        V[k], V[_1 + k], V[_2 + k] = west - m0, middle * (west + east) - m1, east - m2
        west, east = half * (west1 + west1), half * (east1 + east1)
        V[_3 + k], V[_4 + k], V[_5 + k] = west - m3, middle * (west + east) - m4, east - m5
        west, east = half * (west1 + west2), half * (east1 + east2)
        V[_6 + k], V[_7 + k], V[_8 + k] = west - m6, middle * (west + east) - m7, east - m8


@kernel
def _down(N: Any, half: Any, mean: Any, V: Any) -> None:
    m0, m1, m2, m3, m4 = mean[0, 1], mean[1, 1], mean[2, 1], mean[3, 1], mean[4, 1]
    m5, m6, m7, m8 = mean[5, 1], mean[6, 1], mean[7, 1], mean[8, 1]
    middle = np.float32(0.5)
    for k in range(LANES):
        south0, north0 = N[_3 + k] - N[k], N[_6 + k] - N[_3 + k]
        south1, north1 = N[_4 + k] - N[_1 + k], N[_7 + k] - N[_4 + k]
        south2, north2 = N[_5 + k] - N[_2 + k], N[_8 + k] - N[_5 + k]
        south, north = half * (south0 + south1), half * (north0 + north1)
        V[_DOWN + k], V[_DOWN + _3 + k] = south - m0, middle * (south + north) - m3
        V[_DOWN + _6 + k] = north - m6
        south, north = half * (south1 + south1), half * (north1 + north1)
        V[_DOWN + _1 + k], V[_DOWN + _4 + k] = south - m1, middle * (south + north) - m4
        V[_DOWN + _7 + k] = north - m7
        south, north = half * (south1 + south2), half * (north1 + north2)
        V[_DOWN + _2 + k], V[_DOWN + _5 + k] = south - m2, middle * (south + north) - m5
        V[_DOWN + _8 + k] = north - m8


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
def quarter(V: Any, out: Any, scratch: Any, which: int) -> None:
    """Control points on a quarter of the square: south-west, south-east, north-west, north-east."""
    for part in range(2):
        _half(V[part], scratch, 3, 1, which >= 2)
        _half(scratch, out[part], 1, 3, which % 2 == 1)
