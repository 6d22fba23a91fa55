"""How the radius of circular noise is drawn: proposals that are often accepted, exactly.

ln R is piecewise linear, so no table of the distribution is needed: a part of a piece is
chosen by its weight, then on [a, b] either r = a + a truncated exponential number, accepted
with probability r / b, or a uniform point of the ring, accepted with probability
R(r) / max R, whichever is accepted more often.  A tail is a + Exponential or a + Gamma(2),
without rejection.  :func:`cells_of_proposals` does this in doubles with bounded error and
:meth:`Proposals.radius_ball` in balls.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.sampling.lazy_uniform import ARB_LOCK, DECIDED, REJECTED, UNDECIDED, LazyUniform
from whereish.sampling.words import ROUNDING, fraction, log_error, log_errors, moved_cell
from whereish.solvers.radial.log_linear import LogLinear

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Proposals", "cells_of_proposals"]

_STEEP, _RING, _EXPONENTIAL, _GAMMA = 0, 1, 2, 3
_DROP, _MOST_PARTS = 0.25, 4096  # of ln R on a part, and how many parts at most


@dataclass(frozen=True)
class Proposals:
    """Proposals: what to draw on each piece, and with which cumulative probability.

    `cumulative` is correctly rounded; `guide[i]` is the first piece that i / len(guide) may
    fall into.
    """

    cumulative: FloatArray
    guide: IntArray
    kind: IntArray
    start: FloatArray
    end: FloatArray
    drop: FloatArray  # of ln R from start to end; 0 only where it is flat
    growth: FloatArray  # expm1(drop)

    @classmethod
    def of(cls, radial: LogLinear) -> Proposals:
        from flint import ctx

        parts = _parts(radial)
        start, end, drop = parts.start, parts.end, parts.drop
        kind = np.where(parts.ring, _RING, _STEEP).astype(np.int64)
        if not radial.bounded:
            kind = np.append(kind, [_EXPONENTIAL, _GAMMA])
            start = np.append(start, [radial.edges[-2]] * 2)
            end, drop = np.append(end, [np.inf] * 2), np.append(drop, [0.0] * 2)
        with ARB_LOCK, ctx.workprec(192):
            cumulative = np.array([float(c) for c in _cumulative(radial, 192)])
        size = 1 << max(6, (2 * len(kind) - 1).bit_length())
        guide = np.searchsorted(cumulative, np.arange(size) / size, side="left")
        guide = np.maximum(guide - 1, 0).astype(np.int64)
        return cls(cumulative, guide, kind, start, end, drop, np.expm1(drop))

    def radius_ball(
        self, radial: LogLinear, choice: LazyUniform, first: LazyUniform, second: LazyUniform
    ) -> arb | int:
        """The radius as a ball; REJECTED, or UNDECIDED where more bits are needed."""
        from flint import arb, ctx

        u = choice.ball()
        cumulative = _cumulative(radial, ctx.prec)
        last = len(cumulative) - 1
        guess = bisect.bisect(self.cumulative, float(u))
        for k in range(max(guess - 1, 0), min(guess + 2, last + 1)):
            if (k == 0 or u > cumulative[k - 1]) and (k == last or u < cumulative[k]):
                break
        else:
            return UNDECIDED
        a, v, kind = arb(float(self.start[k])), first.ball(), self.kind[k]
        if kind in (_EXPONENTIAL, _GAMMA):
            product = v if kind == _EXPONENTIAL else v * second.ball()
            return a - product.log() / arb(radial.slope)
        _, b, _, x = _part_balls(radial, k)
        if kind == _RING:
            radius = (a * a + v * (b * b - a * a)).sqrt()
            share = (radius - a) / (b - a)
            accept = (x * (share if self.drop[k] < 0 else share - 1)).exp()
        else:
            radius = a + (b - a) * (v * x.expm1()).log1p() / x
            accept = radius / b
        if self.drop[k] == 0 or second.ball() < accept:
            return radius
        return REJECTED if second.ball() > accept else UNDECIDED


@dataclass(frozen=True)
class _Parts:
    """The bounded pieces, cut so that R changes little on each and proposals are accepted."""

    piece: NDArray[np.intp]
    start: FloatArray
    end: FloatArray
    drop: FloatArray
    ring: NDArray[np.bool_]


@lru_cache(maxsize=16)
def _parts(radial: LogLinear) -> _Parts:
    count = len(radial.left) - (not radial.bounded)
    drops = radial.right[:count] - radial.left[:count]
    most = max(1, _MOST_PARTS // max(count, 1))
    parts = np.clip(np.ceil(np.abs(drops) / _DROP), 1, most).astype(int)
    cuts = [np.linspace(radial.edges[k], radial.edges[k + 1], parts[k] + 1) for k in range(count)]
    piece = np.repeat(np.arange(count), parts)
    start = np.concatenate([c[:-1] for c in cuts]) if count else np.empty(0)
    end = np.concatenate([c[1:] for c in cuts]) if count else np.empty(0)
    drop = drops[piece] * ((end - start) / np.diff(radial.edges)[piece])
    mean = np.where(drop == 0, 1.0, np.expm1(drop) / np.where(drop == 0, 1.0, drop))
    # A uniform point of the ring, where it is accepted more often than an exponential one.
    ring = np.exp(np.maximum(drop, 0)) * (start + end) / 2 <= end * mean
    return _Parts(piece, start, end, drop, ring)


def _part_balls(radial: LogLinear, k: int) -> tuple[arb, arb, arb, arb]:
    """Start, end, ln R at the start, and its change over part k, as real numbers."""
    from flint import arb

    parts = _parts(radial)
    piece = parts.piece[k]
    a, b = arb(float(parts.start[k])), arb(float(parts.end[k]))
    low, high = (arb(float(edge)) for edge in radial.edges[piece : piece + 2])
    left, right = arb(float(radial.left[piece])), arb(float(radial.right[piece]))
    rate = (right - left) / (high - low)
    return a, b, left + rate * (a - low), rate * (b - a)


@lru_cache(maxsize=16)
def _cumulative(radial: LogLinear, bits: int) -> tuple[arb, ...]:
    """Cumulative probabilities of the proposals, as balls of `bits`, the working precision."""
    from flint import arb

    weights, parts = [], _parts(radial)
    for k, ring in enumerate(parts.ring):
        a, b, left, x = _part_balls(radial, k)
        if ring:
            top = left + x if parts.drop[k] > 0 else left
            weights.append((b - a) * (b + a) / 2 * top.exp())
        else:
            weights.append(b * (b - a) * x.expm1() / x * left.exp())
    if not radial.bounded:
        a, s = arb(float(radial.edges[-2])), arb(radial.slope)
        top = arb(float(radial.left[-1])).exp()
        weights += [top * a / s, top / (s * s)]
    total, sums = arb(0), []
    for weight in weights:
        total += weight
        sums.append(total)
    return tuple(partial / total for partial in sums)


@kernel
def _in_ring(a: float, b: float, x: float, v: float) -> tuple[float, float, float, float]:
    """Radius of a uniform point between the circles of a and b, its error, and its acceptance.

    ln R changes by x from a to b.  The error is infinite near the centre, where the square
    root is too steep.
    """
    width = b - a
    area = width * (b + a)
    radius = math.sqrt(a * a + v * area)
    slip = 2.0**-52 * area / radius + ROUNDING * radius if v >= 2.0**-40 else math.inf
    share = (radius - a) / width
    accept = math.exp(x * (share if x < 0 else share - 1))
    return radius, slip, accept, 2 * abs(x) * slip / width + ROUNDING * (1 + abs(x))


@kernel
def _exponential(
    a: float, b: float, x: float, g: float, v: float
) -> tuple[float, float, float, float]:
    """a + a truncated exponential number, its error, and its acceptance r / b.

    With g = expm1(x), t = log1p(v g) / x has derivative g / (x (1 + v g)) in v; the relative
    errors of x, and with it of g, and of the product act through it too, together below
    2^-50 (1 + |x|); those of log1p and the quotient are within ROUNDING of t.
    """
    below = 1 + v * g
    t = math.log1p(v * g) / x
    radius = a + (b - a) * t
    steepness = (1 + abs(x)) * (g / x) / below if below >= 2.0**-30 else math.inf
    slip = (b - a) * (2.0**-50 * steepness + ROUNDING * t) + ROUNDING * radius
    return radius, slip, radius / b, slip / b + ROUNDING


@kernel
def cells_of_proposals(
    words: NDArray[np.uint64],
    secrets: FloatArray,
    cumulative: FloatArray,
    guide: IntArray,
    kind: IntArray,
    start: FloatArray,
    end: FloatArray,
    drop: FloatArray,
    growth: FloatArray,
    slope: float,
    step: float,
    cells: IntArray,
    state: NDArray[np.uint8],
) -> int:
    """Cells of x + r (cos t, sin t), with the error of r and of all choices bounded.

    The piece is certain where the uniform is 2^-51 away from its limits; an infinite error
    makes everything uncertain.
    """
    left, last = 0, cumulative.size - 1
    for i in range(secrets.shape[0]):
        u = fraction(words[4 * i], 0)
        k = guide[np.int64(u * guide.size)]
        while k < last and u >= cumulative[k]:
            k += 1
        sure = (k == last or cumulative[k] - u > 2.0**-51) and (
            k == 0 or u - cumulative[k - 1] > 2.0**-51
        )
        v, chance = fraction(words[4 * i + 1], 0), fraction(words[4 * i + 2], 0)
        a = start[k]
        if kind[k] == _GAMMA:
            radius = a - math.log(v * chance) / slope
            slip = log_errors(v, chance) / slope + ROUNDING * radius
        elif kind[k] == _EXPONENTIAL:
            radius = a - math.log(v) / slope
            slip = log_error(v) / slope + ROUNDING * radius
        else:
            if kind[k] == _RING:
                radius, slip, accept, margin = _in_ring(a, end[k], drop[k], v)
            else:
                radius, slip, accept, margin = _exponential(a, end[k], drop[k], growth[k], v)
            if drop[k] != 0:
                if sure and chance > accept + margin:
                    state[i] = REJECTED
                    left += 1
                    continue
                sure = sure and chance < accept - margin
        cells[i, 0], cells[i, 1], settled = moved_cell(
            secrets[i, 0], secrets[i, 1], radius, slip, words[4 * i + 3], step
        )
        sure = sure and settled
        state[i] = DECIDED if sure else UNDECIDED
        left += not sure
    return left
