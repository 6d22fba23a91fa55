"""Two inequalities of distinguishability functions, decided at the corners of their pieces."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.minorants import ROUNDING

if TYPE_CHECKING:
    from whereish.privacy.distinguishability import Distinguishability

__all__ = ["Check", "extends_to_plane", "is_regular"]


class Check(NamedTuple):
    """An answer, and where it is no: distances in metres that show it."""

    holds: bool
    witness: tuple[float, ...] | None = None

    def __bool__(self) -> bool:
        return self.holds


def is_regular(function: Distinguishability) -> Check:
    """Whether l(|u + v|) <= l(|u|) + l(|v|) for all vectors: then l(|x - x'|) is a metric.

    Since l does not decrease and |u + v| takes every value up to |u| + |v|, this is
    l(a + b) <= l(a) + l(b).  The difference is linear between corners, where two of
    a, b, a + b are starts of pieces; all of them are tried, from all sides.  The
    witness is a pair (a, b).
    """
    a, b = _corners(function)
    c = _snapped(function, a + b)
    at, after = function(c), function.after(c)
    la, lb, la_after, lb_after = (f(d) for f in (function, function.after) for d in (a, b))
    broken = _exceeds(at, la + lb) | _exceeds(after, la_after + lb) | _exceeds(after, la + lb_after)
    if not broken.any():
        return Check(True)
    first = int(np.flatnonzero(broken)[0])
    return Check(False, _pair_near(function, float(a[first]), float(b[first])))


def extends_to_plane(function: Distinguishability, base: float) -> Check:
    """Whether l(base + d) >= l(base) + l(d) for all d; the witness is a distance d."""
    here, starts = function(base), np.asarray(function.starts)
    d = np.union1d(starts, starts[starts > base] - base)
    total = _snapped(function, base + d)
    at = _exceeds(here + function(d), function(total))
    if at.any():
        return Check(False, (float(d[at][0]),))
    after = _exceeds(here + function.after(d), function.after(total))
    if after.any():
        return Check(False, (float(d[after][0]) + base * 1e-9,))
    return Check(True)


def _corners(function: Distinguishability) -> tuple[FloatArray, FloatArray]:
    """Pairs (a, b) such that two of a, b, a + b are starts of pieces."""
    starts = np.asarray(function.starts)
    i, j = np.triu_indices(len(starts))
    k, m = np.triu_indices(len(starts), 1)
    a, b = starts[i], starts[j]
    return np.append(a, starts[k]), np.append(b, starts[m] - starts[k])


def _snapped(function: Distinguishability, d: FloatArray) -> FloatArray:
    """Distances, moved to the start of a piece that they equal up to rounding."""
    starts = np.asarray(function.starts)
    index = np.searchsorted(starts, d)
    for near in (starts[np.maximum(index - 1, 0)], starts[np.minimum(index, len(starts) - 1)]):
        d = np.where(np.abs(near - d) <= ROUNDING * d, near, d)
    return d


def _pair_near(function: Distinguishability, a: float, b: float) -> tuple[float, float]:
    """A pair of distances at or just beside (a, b) that breaks the triangle inequality."""
    unit = max(a, b) or 1.0
    for nudge in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        for x, y in itertools.product((0, nudge * unit), repeat=2):
            if _exceeds(function(a + b + x + y), function(a + x) + function(b + y)):
                return a + x, b + y
    return a, b


def _exceeds(a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Where a > b by more than rounding."""
    with np.errstate(invalid="ignore"):
        apart = a - b > ROUNDING * (np.abs(a) + np.abs(b))
    return np.asarray((a > b) & (np.isinf(a) | apart))
