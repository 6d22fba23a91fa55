"""How well a piecewise log-linear radial keeps l, over all pairs of radii.

Circular noise with radial R keeps l on a region with an inner disk, l nondecreasing, if
and only if R(r) <= exp(l(|r - r'|)) R(r') for all r, r' (ElSalamouny and Gambs 2018,
Theorem 4).  So it keeps t * l for t the supremum of

    |ln R(r) - ln R(r')| / l(|r - r'|).

With ln R and l piecewise linear, numerator and denominator are linear on each polygon
{r in a piece, r' in a piece, |r - r'| in a piece of l}, and such a quotient is largest at a
corner: two of the three at ends of their pieces, from either side; or, as r' tends to r
or to infinity, it is a quotient of slopes.  All corners are tried, in doubles with their
error bounded, so that the supremum over all pairs is enclosed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.privacy.enclosure import Enclosed
from whereish.solvers.radial.log_linear import LogLinear

__all__ = ["LeastFactor", "RadialRatio", "largest_radial_ratio"]

_ROUND = 2.0**-50


@dataclass(frozen=True)
class LeastFactor(Enclosed):
    """The least t for which t * l is kept lies in [lower, upper]."""

    lower: float
    upper: float

    @property
    def enclosure(self) -> tuple[float, float]:
        """`lower` and `upper`."""
        return self.lower, self.upper


@dataclass(frozen=True)
class RadialRatio(LeastFactor):
    """The least t for which t * l is kept lies in [lower, upper]; `worst` = (r, r')."""

    worst: tuple[float, float]


def largest_radial_ratio(
    radial: LogLinear,
    ell: tuple[FloatArray, FloatArray, FloatArray],
) -> RadialRatio:
    """Enclose the least t such that `radial` keeps t * l, l = (starts, levels, slopes)."""
    starts, levels, slopes = (np.ascontiguousarray(a, np.float64) for a in ell)
    if math.isinf(levels[0]):
        return RadialRatio(0.0, 0.0, (0.0, 0.0))
    if radial.bounded:  # zero next to positive, at any small distance
        edge = float(radial.edges[-1])
        return RadialRatio(math.inf, math.inf, (edge, edge))
    candidates = [
        _slopes(radial, levels[0], slopes[0], levels[-1], slopes[-1]),
        _corners(radial.edges, radial.left, radial.right, starts, levels, slopes),
        _shifts(radial.edges, radial.left, radial.right, radial.slope, starts, levels, slopes),
    ]
    low, high = (max(c[k] for c in candidates) for k in (0, 1))
    worst = max(candidates, key=lambda c: c[0])
    return RadialRatio(float(low), float(high), (float(worst[2]), float(worst[3])))


_Found = tuple[float, float, float, float]


def _slopes(
    radial: LogLinear, level: float, first: float, last_level: float, last: float
) -> _Found:
    """Quotients of slopes: r' tending to r within a piece, and r' tending to infinity."""
    widths = np.diff(radial.edges)
    with np.errstate(invalid="ignore"):
        rates = np.abs(radial.right - radial.left) / widths
    rates[-1] = radial.slope
    k = int(rates.argmax())
    steepest, at = float(rates[k]), float(radial.edges[k])
    ratio = 0.0
    if level == 0 and steepest > 0:
        ratio = steepest / first if first > 0 else math.inf
    if math.isfinite(last_level):
        tail = radial.slope / last if last > 0 else math.inf
        if tail > ratio:
            return *_widened(tail, exact=radial.slope == last), at, math.inf
    return *_widened(ratio, exact=k == len(rates) - 1 and steepest == first), at, at


def _widened(ratio: float, *, exact: bool) -> tuple[float, float]:
    """An enclosure of a quotient that was rounded a few times; 1 where both are equal."""
    return (ratio, ratio) if exact else (ratio * (1 - _ROUND), ratio * (1 + _ROUND))


@kernel
def _quotient(difference: float, slip: float, level: float, loose: float) -> tuple[float, float]:
    """Enclosure of (difference ± slip) / (level ± loose)."""
    if level == math.inf or difference + slip <= 0:
        return 0.0, 0.0
    high = (difference + slip) / (level - loose) if level > loose else math.inf
    low = max(difference - slip, 0.0) / (level + loose) if level > 0 else math.inf
    return low * (1 - _ROUND), high * (1 + _ROUND)


@kernel
def _corners(
    edges: FloatArray,
    left: FloatArray,
    right: FloatArray,
    starts: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
) -> tuple[float, float, float, float]:
    """Both radii at edges, from either side.

    For r just below edge i and r' just above edge j > i the distance exceeds their
    difference, so the upper value of l counts; on other sides it may be the lower one.
    The difference of two edges is compared with the starts of l without error.
    """
    low, high, at, to = 0.0, 0.0, 0.0, 0.0
    count = left.size
    for i in range(1, count):
        a, b = _quotient(abs(right[i - 1] - left[i]), 0.0, levels[0], 0.0)
        if right[i - 1] != left[i]:
            high = max(high, b)
            if a > low:
                low, at, to = a, edges[i], edges[i]
    for i in range(count):
        piece = 0
        for j in range(i + 1, count):
            d = edges[j] - edges[i]
            back = d - edges[j]
            rest = (edges[j] - (d - back)) + (-edges[i] - back)  # d + rest is exact
            while piece + 1 < starts.size and (
                starts[piece + 1] < d or (starts[piece + 1] == d and rest > 0)
            ):
                piece += 1
            upper = piece
            if piece + 1 < starts.size and starts[piece + 1] == d and rest == 0:
                upper = piece + 1
            below = levels[piece] + slopes[piece] * (d - starts[piece])
            above = levels[upper] + slopes[upper] * (d - starts[upper])
            loose_below = _ROUND * (slopes[piece] * d + levels[piece])
            loose_above = _ROUND * (slopes[upper] * d + levels[upper])
            if levels[piece] == math.inf:
                break
            here, there = left[i], right[j - 1]
            difference = abs(here - there)
            difference = max(difference, abs(here - left[j]))
            if i:
                difference = max(difference, abs(right[i - 1] - there))
            a, b = _quotient(difference, _ROUND * difference, below, loose_below)
            if i:
                difference = abs(right[i - 1] - left[j])
                c, e = _quotient(difference, _ROUND * difference, above, loose_above)
                a, b = max(a, c), max(b, e)
            high = max(high, b)
            if a > low:
                low, at, to = a, edges[i], edges[j]
    return low, high, at, to


@kernel
def _shifts(
    edges: FloatArray,
    left: FloatArray,
    right: FloatArray,
    slope: float,
    starts: FloatArray,
    levels: FloatArray,
    slopes: FloatArray,
) -> tuple[float, float, float, float]:
    """One radius at an edge, the other at distance start_k of it, inside a piece.

    The lower value of l counts.  The interpolated ln R is within a few roundings of its
    ends' sizes; a radius that rounds across an edge is evaluated in both pieces.
    """
    low, high, at, to = 0.0, 0.0, 0.0, 0.0
    count = left.size
    for k in range(1, starts.size):
        shift = starts[k]
        level = levels[k - 1] + slopes[k - 1] * (shift - starts[k - 1])
        loose = _ROUND * (levels[k - 1] + slopes[k - 1] * shift)
        for sign in (-1.0, 1.0):
            piece = 0
            for i in range(count):
                r = edges[i] + sign * shift
                if r < 0:
                    continue
                back = r - edges[i]
                rest = (edges[i] - (r - back)) + (sign * shift - back)  # r + rest is exact
                while piece + 1 < count and edges[piece + 1] <= r:
                    piece += 1
                for p in range(max(piece - 1, 0), min(piece + 2, count)):
                    # An edge itself is a corner; only rounding can bring another piece in.
                    reach = _ROUND * (edges[i] + shift)
                    if r < edges[p] - reach or r > edges[p + 1] + reach:
                        continue
                    if (r == edges[p] and rest <= 0) or (r == edges[p + 1] and rest >= 0):
                        continue
                    width = edges[p + 1] - edges[p]
                    if width == math.inf:
                        value = left[p] - slope * (r - edges[p])
                        slip = abs(left[p]) + slope * (r + shift)
                    else:
                        drop = right[p] - left[p]
                        value = left[p] + drop * ((r - edges[p]) / width)
                        slip = abs(left[p]) + abs(right[p]) + abs(drop) * (r + shift) / width
                    difference = abs(left[i] - value)
                    if i:
                        difference = max(difference, abs(right[i - 1] - value))
                    slip = _ROUND * (slip + abs(left[i]) + difference)
                    a, b = _quotient(difference, slip, level, loose)
                    high = max(high, b)
                    if a > low:
                        low, at, to = a, edges[i], r
    return low, high, at, to
