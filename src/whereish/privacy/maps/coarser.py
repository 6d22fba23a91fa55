"""The largest levels on larger cells that are nowhere above those of a map.

Levels are bilinear between centres and constant beyond the outermost, on fine cells (e) as on
larger ones (x).  Along each axis take the centres of both; in the rectangles that these cut, both
functions are bilinear, so that x <= e everywhere if and only if it holds at their corners p:

    (A x)_p <= e_p,    A >= 0, rows that sum to 1.

The least e_p around each centre satisfies that, since (A x)_p is a mean.  From there

    x_j <- x_j·min over p with A_pj > 0 of e_p / (A x)_p

only rises, and stays feasible: each x_j of a row p is multiplied by at most e_p / (A x)_p.  Where
it ends, every x_j has a corner p at which nothing is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray

__all__ = ["levels_below"]

_ROUNDS = 60
_GAIN = 1e-5  # of the mean logarithm: a round that gains less is the last
_SAFE = 1.0 - 2.0**-40  # roundings of the interpolants


def levels_below(levels: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Levels of `shape` on the same rectangle, nowhere above these, and none of which can rise."""
    axes = [_Axis(*counts) for counts in zip(levels.shape, shape, strict=True)]
    rows, columns = axes
    asked = rows.fine @ levels @ columns.fine.T
    found = _least(asked, axes)
    for _ in range(_ROUNDS):
        rise = _least(asked / (rows.coarse @ found @ columns.coarse.T), axes)
        found = found * rise
        if float(np.log(rise).mean()) < _GAIN:
            break
    over = float((rows.coarse @ found @ columns.coarse.T / asked).max())
    return np.asarray(found * (_SAFE / max(over, 1.0)))


class _Axis:
    """Centres of `fine` and `coarse` equal cells on one segment.

    Attributes
    ----------
    fine, coarse : (points, cells) weights of the cells' levels at all centres.
    bounds : of each coarse cell, the first point at which it has weight, and the one after the
        last, in turn.
    """

    def __init__(self, fine: int, coarse: int) -> None:
        # In units of 1 / (2·fine·coarse) of the segment, in which all centres are integers.
        ends = [(2 * np.arange(fine) + 1) * coarse, (2 * np.arange(coarse) + 1) * fine]
        points = np.unique(np.concatenate(ends))
        self.fine, self.coarse = (_weights(points, centres) for centres in ends)
        used = self.coarse > 0
        first, last = used.argmax(axis=0), len(points) - used[::-1].argmax(axis=0)
        self.bounds = np.stack([first, last], axis=1).ravel()


def _weights(points: NDArray[np.int64], centres: NDArray[np.int64]) -> FloatArray:
    """Of the linear interpolant between centres, constant beyond them, at points."""
    out = np.zeros((len(points), len(centres)))
    for j in range(len(centres)):
        unit = np.zeros(len(centres))
        unit[j] = 1.0
        out[:, j] = np.interp(points, centres, unit)
    return out


def _least(values: FloatArray, axes: list[_Axis]) -> FloatArray:
    """The least value at a point where each coarse cell has weight."""
    for axis, own in enumerate(axes):
        pads = [(0, 0), (0, 0)]
        pads[axis] = (0, 1)  # so that every bound is a point
        wide = np.pad(values, pads, constant_values=np.inf)
        both = np.minimum.reduceat(wide, own.bounds, axis=axis)
        values = np.take(both, range(0, len(own.bounds), 2), axis)
    return values
