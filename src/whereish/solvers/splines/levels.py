"""Levels of a map as control points on the squares around nodes, and on parts of these.

Within a square eps is bilinear between its corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel

__all__ = ["level_controls", "outer_quarters", "quarter_levels"]


def outer_quarters(shape: tuple[int, int]) -> NDArray[np.bool_]:
    """(cells, 4) which quarters of cells lie in the outer halves of the outermost."""
    rows, cols = shape
    out = np.zeros((rows, cols, 2, 2), np.bool_)
    if rows > 1:
        out[0, :, 0], out[-1, :, 1] = True, True
    if cols > 1:
        out[:, 0, :, 0], out[:, -1, :, 1] = True, True
    return out.reshape(-1, 4)


def level_controls(levels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bernstein coefficients (cells, 9), (cells, 4, 9), (cells, 16, 9) of eps.

    eps is bilinear: its coefficients of degree (2, 2) on a square are its values at corners and
    middles.
    """
    ends = np.linspace(0.0, 1.0, 9)
    low, high = levels[:-1], levels[1:]
    fine = np.empty((9, 9, low.shape[0], low.shape[1] - 1))
    for a, t in enumerate(ends):
        line = (1 - t) * low + t * high
        for b, s in enumerate(ends):
            fine[a, b] = (1 - s) * line[:, :-1] + s * line[:, 1:]
    flat = fine.reshape(9, 9, -1)
    whole = flat[::4, ::4].reshape(9, -1)
    quarters = np.empty((4, 9, flat.shape[2]))
    sixteenths = np.empty((16, 9, flat.shape[2]))
    for m in range(4):
        a, b = 4 * (m // 2), 4 * (m % 2)
        quarters[m] = flat[a : a + 5 : 2, b : b + 5 : 2].reshape(9, -1)
        for n in range(4):
            p, q = a + 2 * (n // 2), b + 2 * (n % 2)
            sixteenths[4 * m + n] = flat[p : p + 3, q : q + 3].reshape(9, -1)
    return tuple(  # type: ignore[return-value]
        np.ascontiguousarray(np.moveaxis(e, -1, 0)) for e in (whole, quarters, sixteenths)
    )


@kernel
def quarter_levels(inverse: Any, which: int, out: Any) -> None:
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
