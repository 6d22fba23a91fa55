"""A frame without users around a map, so that weight does not pile up at its edge.

Near the edge of a bounded grid the plain weights turn negative while eps·h < 0.7:
a secret there lacks half of its reports.  Cells are added outside in which eps
rises as fast as curvature allows, until eps·h reaches 0.75 and the frame's own edge
no longer matters.  The rise is the lower envelope

    eps(x) = min_v eps(v) / (1 - c·eps(v)^2·|x - v|^2 / 4)

of discs of constant curvature -c (Poincaré discs), c = 0.6, over the cells v of the
map's edge.  Reports may fall into the frame; secrets never do.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel

__all__ = ["frame_width", "framed"]

_CURVATURE = 0.6
_ENOUGH = 0.75  # eps·h at which the edge of a grid needs no more help


def frame_width(eps: FloatArray, cell: tuple[float, float]) -> int:
    """Cells that the envelope needs to rise to eps·h = 0.75 around the whole map."""
    side = math.sqrt(cell[0] * cell[1])
    border = np.concatenate([eps[0], eps[-1], eps[:, 0], eps[:, -1]])
    cap = _ENOUGH / side
    lowest = float(border.min())
    if lowest >= cap or 1 in eps.shape:
        return 0
    reach = 2 / (lowest * math.sqrt(_CURVATURE)) * math.sqrt(1 - lowest / cap)
    return math.ceil(reach / min(cell)) + 1


@kernel
def _envelope(eps: FloatArray, height: float, width: float, pad: int, cap: float) -> FloatArray:
    rows, cols = eps.shape
    out = np.full((rows + 2 * pad, cols + 2 * pad), cap)
    for a in range(rows):
        for b in range(cols):
            if a not in (0, rows - 1) and b not in (0, cols - 1):
                continue
            e = eps[a, b]
            if e >= cap:
                continue
            rate = _CURVATURE * e * e / 4
            reach2 = (1 - e / cap) / rate
            reach = np.sqrt(reach2)
            up, side = int(reach / height) + 1, int(reach / width) + 1
            for i in range(max(0, a + pad - up), min(rows + 2 * pad, a + pad + up + 1)):
                for j in range(max(0, b + pad - side), min(cols + 2 * pad, b + pad + side + 1)):
                    away = ((i - a - pad) * height) ** 2 + ((j - b - pad) * width) ** 2
                    if away < reach2:
                        out[i, j] = min(out[i, j], e / (1 - rate * away))
    out[pad : pad + rows, pad : pad + cols] = eps
    return out


def framed(eps: FloatArray, cell: tuple[float, float], width: int) -> FloatArray:
    """The map with `width` cells of frame on every side."""
    if width == 0:
        return eps
    cap = max(_ENOUGH / math.sqrt(cell[0] * cell[1]), float(eps.min()))
    return _envelope(np.ascontiguousarray(eps), *cell, width, cap)
