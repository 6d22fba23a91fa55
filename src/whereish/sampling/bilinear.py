"""Randomised rounding of a place to one of the four centres around it.

A corner of the square of centres around a place is taken with its bilinear weight, so
that the law of what follows is the bilinear mixture of the corners' laws: exactly, for
the place that the doubles name.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.randomness import Randomness
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.space.raster import Raster

__all__ = ["corners", "rounded"]

Cells = NDArray[np.intp]


def rounded(raster: Raster, coordinates: FloatArray, source: Randomness) -> Cells:
    """Each place rounded to a centre around it: flat indices of cells.

    On each axis, with q the place in units of centres and V uniform in [0, 1), the centre
    is ceil(q - V): exactly, where V is a string of bits of which as many are drawn as it
    takes.  Doubles decide where they are certain to.
    """
    words = source.words(2 * len(coordinates)).reshape(-1, 2)
    (x, y), (width, height) = raster.origin, raster.cell
    i = _chosen(coordinates[:, 1], y, height, raster.rows, words[:, 0], source)
    j = _chosen(coordinates[:, 0], x, width, raster.columns, words[:, 1], source)
    return np.asarray(i * raster.columns + j, np.intp)


def _chosen(
    places: FloatArray,
    origin: float,
    side: float,
    count: int,
    words: NDArray[np.uint64],
    source: Randomness,
) -> Cells:
    """ceil(q - V) for each place, with V from its word and more bits where they are needed."""
    q = np.clip((places - origin) / side - 0.5, 0, count - 1)
    low = np.minimum(np.floor(q), max(count - 2, 0))
    share, v = q - low, words.astype(np.float64) * 2.0**-64
    # Difference, quotient and the two subtractions: below 4 units of 2^-53 of q + 1.
    error = 2.0**-50 * (q + 2)
    chosen = (low + (v < share)).astype(np.intp)
    certain = (np.abs(share - v) > error) & (v > error) & (v < 1 - error)
    for row in np.flatnonzero(~certain):
        exact = (Fraction(float(places[row])) - Fraction(origin)) / Fraction(side) - Fraction(1, 2)
        exact = min(max(exact, Fraction(0)), Fraction(count - 1))
        chosen[row] = _exactly(exact, LazyUniform(int(words[row])), source)
    return np.asarray(chosen, np.intp)


def _exactly(q: Fraction, uniform: LazyUniform, source: Randomness) -> int:
    """ceil(q - V), with as many bits of V as it takes."""
    while True:
        lowest = q - Fraction(uniform.prefix + 1, 2**uniform.bits)  # never attained
        highest = q - Fraction(uniform.prefix, 2**uniform.bits)
        if math.ceil(highest) == math.floor(lowest) + 1:
            return math.ceil(highest)
        uniform = uniform.extended(source)


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
