"""Randomised rounding of a place to one of the four centres around it.

A corner of the square of centres around a place is taken with its bilinear weight, so
that the law of what follows is the bilinear mixture of the corners' laws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.randomness import Randomness
from whereish.space.points import FloatArray
from whereish.space.raster import Raster

__all__ = ["corners", "rounded"]

Cells = NDArray[np.intp]


def rounded(raster: Raster, coordinates: FloatArray, source: Randomness) -> Cells:
    """Each place rounded to a centre around it: flat indices of cells."""
    i, j, north, east = _square(raster, coordinates)
    words = source.words(2 * len(coordinates)).reshape(-1, 2)
    # A share s is a multiple of 2^-53 or finer; word < s·2^64 has probability s to 2^-64.
    i = i + _below(words[:, 0], north)
    j = j + _below(words[:, 1], east)
    return np.asarray(i * raster.columns + j, np.intp)


def corners(raster: Raster, place: FloatArray) -> tuple[Cells, FloatArray]:
    """The centres that one place can be rounded to, and their probabilities."""
    i, j, north, east = (part[0] for part in _square(raster, place[None]))
    cells, shares = [], []
    for up, p in ((0, 1 - north), (1, north)):
        for right, q in ((0, 1 - east), (1, east)):
            if p * q > 0:
                cells.append((i + up) * raster.columns + j + right)
                shares.append(p * q)
    return np.array(cells, np.intp), np.array(shares)


def _square(raster: Raster, coordinates: FloatArray) -> tuple[Cells, Cells, FloatArray, FloatArray]:
    """The square of centres around each place.

    Row and column of its south-west corner, then the shares of its north and of its east
    corners; beyond the outermost centres, of the closest place.
    """
    (x, y), (width, height) = raster.origin, raster.cell
    rows, cols = raster.rows, raster.columns
    down = np.clip((coordinates[:, 1] - y) / height - 0.5, 0, rows - 1)
    across = np.clip((coordinates[:, 0] - x) / width - 0.5, 0, cols - 1)
    i = np.minimum(np.floor(down), max(rows - 2, 0)).astype(np.intp)
    j = np.minimum(np.floor(across), max(cols - 2, 0)).astype(np.intp)
    return i, j, down - i, across - j


def _below(words: NDArray[np.uint64], shares: FloatArray) -> Cells:
    """1 with probability `shares`, 0 otherwise; a share of 1 always gives 1."""
    limits = (np.minimum(shares, 1.0 - 2.0**-53) * 2.0**64).astype(np.uint64)
    return np.asarray((words < limits) | (shares >= 1.0), np.intp)
