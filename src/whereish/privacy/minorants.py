"""Piecewise linear functions below a function that is known at nodes.

Each takes distances and values, both increasing, and yields the pieces of a function on
[0, infinity) that stays below every function of its shape through those nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput

__all__ = ["ROUNDING", "SHAPES", "Pieces"]

Pieces: TypeAlias = Iterator[tuple[float, float, float]]
"""(start, level just after it, slope) of each piece."""

ROUNDING = 2.0**-46


def _chords(d: FloatArray, ell: FloatArray) -> Pieces:
    """Below a concave function: chords from (0, 0)."""
    at, level = [0.0, *d.tolist()], [0.0, *ell.tolist()]
    slopes = np.diff(level) / np.diff(at)
    if (np.diff(slopes) > ROUNDING * slopes.max(initial=0.0)).any():
        raise InvalidInput("l was declared concave, but its slope grows between nodes")
    yield from zip(at[:-1], level[:-1], slopes.tolist(), strict=True)
    yield at[-1], level[-1], 0.0


def _continuations(d: FloatArray, ell: FloatArray) -> Pieces:
    """Below a convex function: the larger continuation of the chords on either side."""
    slopes = np.diff(ell) / np.diff(d)
    if (np.diff(slopes) < -ROUNDING * slopes.max(initial=0.0)).any():
        raise InvalidInput("l was declared convex, but its slope falls between nodes")
    yield 0.0, 0.0, 0.0
    rise = d[0] - ell[0] / slopes[0] if slopes[0] > 0 else d[0]
    if 0 < rise < d[0]:
        yield float(rise), 0.0, float(slopes[0])
    for k in range(len(d) - 1):
        before = float(slopes[k - 1]) if k else 0.0
        next_slope = float(slopes[k + 1]) if k + 1 < len(slopes) else 0.0
        yield float(d[k]), float(ell[k]), before
        width = float(d[k + 1] - d[k])
        rise_total = float(ell[k + 1] - ell[k])
        if next_slope > before:
            meet = width - (rise_total - before * width) / (next_slope - before)
            if 0 < meet < width and next_slope > 0:
                value = max(float(ell[k + 1]) - next_slope * (width - meet), float(ell[k]))
                yield float(d[k]) + meet, value, next_slope
    yield float(d[-1]), float(ell[-1]), 0.0


def _staircase(d: FloatArray, ell: FloatArray) -> Pieces:
    """Below any nondecreasing function: its value at the node before."""
    yield 0.0, 0.0, 0.0
    for start, level in zip(d.tolist(), ell.tolist(), strict=True):
        yield start, level, 0.0


SHAPES = {"concave": _chords, "convex": _continuations, "monotone": _staircase}
