"""How well a radial keeps l on a region: on finitely many places by their distances.

On the plane and on a disk the promise depends on |r - r'| alone
(:func:`~whereish.solvers.radial.ratio.largest_radial_ratio`).  On a finite set the pairs of radii
joined by a difference of length delta are those of a triangle, |r - r'| <= delta <= r + r', and
each must keep l(delta) (Theorem 4 of ElSalamouny and Gambs 2018).  ln R(r) - ln R(r') is linear on
each rectangle of pieces, so it is largest at a corner of what the two inequalities leave of it:
two edges, or an edge r with r' = r + delta, r - delta or delta - r, each from the sides on which
the inequalities hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import Domain, FinitePlaces
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.ratio import RadialRatio, largest_radial_ratio

__all__ = ["radial_ratio_on"]

_ROUND = 2.0**-46
_BEFORE, _AFTER = -1, 1


def radial_ratio_on(radial: LogLinear, ell: Distinguishability, domain: Domain) -> RadialRatio:
    """Enclose the least t such that `radial` keeps t * l on the domain."""
    if not isinstance(domain, FinitePlaces):
        return largest_radial_ratio(radial, domain.within(ell).arrays)
    worst = RadialRatio(0.0, 0.0, (0.0, 0.0))
    for length in domain.lengths.tolist():
        level = float(ell(length))
        if math.isinf(level):
            continue
        for r, other, difference in _corners(radial, length):
            slip = _ROUND * (1 + abs(difference) + radial.slope * (r + length))
            low = max(difference - slip, 0.0) / level if level > 0 else math.inf
            high = (difference + slip) / level if level > 0 else math.inf
            if difference <= slip and level == 0:
                low, high = 0.0, 0.0
            if low > worst.lower:
                worst = RadialRatio(low, max(high, worst.upper), (r, other))
            elif high > worst.upper:
                worst = RadialRatio(worst.lower, high, worst.worst)
    return worst


def _corners(radial: LogLinear, length: float) -> Iterator[tuple[float, float, float]]:
    """(r, r', |ln R(r) - ln R(r')|) at all corners, from the sides that count."""
    edges = radial.edges[:-1] if not radial.bounded else radial.edges
    if radial.bounded:
        last = float(edges[-1])
        yield last, last, math.inf
        return
    values = [
        {_AFTER: float(radial.left[i]), **({_BEFORE: float(radial.right[i - 1])} if i else {})}
        for i in range(len(edges))
    ]
    for i, j in itertools.combinations(range(len(edges)), 2):
        r, other = float(edges[i]), float(edges[j])
        if other - r <= length <= r + other:
            for a, b in itertools.product(values[i], values[j]):
                too_far = other - r == length and (a, b) == (_BEFORE, _AFTER)
                too_near = other + r == length and (a, b) == (_BEFORE, _BEFORE)
                if not too_far and not too_near:
                    yield r, other, abs(values[i][a] - values[j][b])
    for i, edge in enumerate(edges.tolist()):
        if 2 * edge >= length:  # the two sides of a jump are joined as well
            yield edge, edge, max(values[i].values()) - min(values[i].values())
        for other in (edge + length, edge - length, length - edge):
            if other >= 0 and not (edges == other).any():
                there = float(
                    radial._shape(np.array([other]), radial._pieces(np.array([other])))[0]
                )
                for value in values[i].values():
                    yield edge, other, abs(value - there)
