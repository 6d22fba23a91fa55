"""Theorems 1 and 2 of ElSalamouny and Gambs over all pairs of vectors, for lattice tables.

For an offset w of cells let G(w) be the largest of ln F(c) - ln F(c - w) over all cells c.
Read as cells, the vectors of two open squares with offset w come as close as
gap(w) = step |(max(|w_x| - 1, 0), max(|w_y| - 1, 0))| without reaching it, so F keeps t * l on a
disk of diameter D if and only if G(w) <= t l(gap(w)+) for all w with gap(w) < D: a finite
question, exactly answered.  On finitely many places the difference is exact: u - v = delta, and
the two to four offsets of squares that delta joins are tried at l(|delta|).

*Only so many cells.*  With m = |w|_max, cells further than 2m rings from the table repeat what
is seen nearer: where one ring count dominates for both cells, or both counts exceed m, both
cells can be moved one ring inwards (along one axis, or along both) without changing either
border value or the difference of the rings.

*The plane.*  If l is unlimited beyond D, or l(D + d) >= l(D) + l(d) for all d, offsets beyond D
follow by steps of length D (the argument of Theorem 6).  Otherwise, beyond the last bend of l,
G(w) <= (oscillation of the table) + decay * m and l is affine: their quotient is monotone in m.

Read as linear, ln F is |grad|-Lipschitz, and between squares it lies between the corners'
values; the smaller of the two bounds is taken for every offset, which is exact for l = eps * d
(then the steepest triangle decides) and an enclosure otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import Disk, Domain, FinitePlaces
from whereish.solvers.noise.lattice import Between, LatticeLogs
from whereish.solvers.radial.ratio import LeastFactor

__all__ = ["NoiseRatio", "largest_noise_ratio"]

_ROUND = 2.0**-48
_SNAP = 1e-12  # relative: a difference this close to a lattice vector is taken to be one
_FAR_RINGS = 48
_NUDGES = (1e-3, 1e-6, 1e-9, 1e-12)

Vector = tuple[float, float]


@dataclass(frozen=True)
class NoiseRatio(LeastFactor):
    """The least t for which F keeps t * l lies in [lower, upper].

    `witness` = (u, v), two vectors in metres at which it is attained, or nearly; None where
    nothing limits F.
    """

    witness: tuple[Vector, Vector] | None = None


@dataclass(frozen=True)
class _Offset:
    """An offset of cells, and the least level of its pairs."""

    w: tuple[int, int]
    level: float


def largest_noise_ratio(
    table: LatticeLogs, between: Between, ell: Distinguishability, domain: Domain
) -> NoiseRatio:
    """Enclose the least t such that the table's noise keeps t * l on the domain."""
    if isinstance(domain, FinitePlaces):
        return _on_places(table, between, ell, domain)
    promise = domain.within(ell)
    if math.isinf(promise.levels[0]):
        return NoiseRatio(0.0, 0.0)
    if between == "atoms":  # a difference that is no lattice vector leads to probability 0
        return NoiseRatio(math.inf, math.inf, ((0.0, 0.0), (table.step / 2, table.step / 3)))
    reach, far = _reach(table, promise, domain)
    found = [far] if far is not None else []
    offsets = list(_offsets(table.step, reach, promise))
    if between == "cells":
        found += [_cells(table, offset, promise) for offset in offsets]
    else:
        offsets.append(_Offset((0, 0), promise.levels[0]))
        found += [_steepest(table, promise), *_linear(table, offsets, promise, reach)]
    return _largest(found)


def _largest(found: list[NoiseRatio]) -> NoiseRatio:
    if not found:
        return NoiseRatio(0.0, 0.0)
    worst = max(found, key=lambda one: (one.lower, one.upper))
    return NoiseRatio(worst.lower, max(one.upper for one in found), worst.witness)


def _reach(
    table: LatticeLogs, promise: Distinguishability, domain: Domain
) -> tuple[float, NoiseRatio | None]:
    """How far offsets must be tried one by one, and the bound beyond where none chains there."""
    last = promise.starts[-1]
    if math.isinf(promise.levels[-1]):
        return last, None
    if isinstance(domain, Disk):  # its promise is unlimited beyond the diameter
        raise AssertionError("a disk's promise ends at its diameter")
    near = last if last > 0 else 2 * table.step
    if promise.extends_to_plane(f"{near!r} m"):
        return near, None
    size = sum(table.halves) * 2 + _FAR_RINGS + math.ceil(last / table.step)
    slope = promise.slopes[-1] * table.step
    limit = table.decay / slope if slope > 0 else math.inf
    swing = -float(table.logs.min()) + table.decay * size
    at = swing / float(promise(table.step * (size - 1)))
    along = ((0.0, 0.0), (table.step * size, 0.0))
    upper = max(limit, at) * (1 + _ROUND)
    return table.step * size, NoiseRatio(limit * (1 - _ROUND), upper, along)


def _offsets(step: float, reach: float, promise: Distinguishability) -> Iterator[_Offset]:
    """Every offset of cells whose pairs come closer than `reach`, one of each w and -w."""
    most = math.ceil(reach / step) + 1
    for a, b in itertools.product(range(0, most + 1), range(-most, most + 1)):
        gap = step * math.hypot(max(a - 1, 0), max(abs(b) - 1, 0))
        if (a, b) > (0, 0) and gap < reach:
            yield _Offset((a, b), float(promise.after(gap)))


def _differences(high: FloatArray, low: FloatArray, w: tuple[int, int]) -> FloatArray:
    """high(c) - low(c - w), for all c of the padded table such that both are in it."""
    a, b = w
    rows, columns = high.shape
    mine = high[max(a, 0) : rows + min(a, 0), max(b, 0) : columns + min(b, 0)]
    theirs = low[max(-a, 0) : rows - max(a, 0), max(-b, 0) : columns - max(b, 0)]
    return np.asarray(mine - theirs)


def _largest_difference(
    table: LatticeLogs, w: tuple[int, int]
) -> tuple[float, tuple[int, int], tuple[int, int]]:
    """G(w) or G(-w), the larger, with its two cells (the likelier first)."""
    rings = 2 * max(map(abs, w))
    padded = table.padded(rings)
    a, b = table.halves
    apart = _differences(padded, padded, w)
    up, down = int(apart.argmax()), int(apart.argmin())
    best = up if apart.flat[up] >= -apart.flat[down] else down
    i, j = np.unravel_index(best, apart.shape)
    cell = (
        int(i) + max(w[0], 0) - a - rings,
        int(j) + max(w[1], 0) - b - rings,
    )
    other = (cell[0] - w[0], cell[1] - w[1])
    pair = (cell, other) if best == up else (other, cell)
    return float(abs(apart.flat[best])), *pair


def _quotient(difference: float, level: float) -> float:
    if difference <= 0 or math.isinf(level):
        return 0.0
    return difference / level if level > 0 else math.inf


def _slip(table: LatticeLogs) -> float:
    """What rounding can have changed in a difference of two values."""
    return _ROUND * (1.0 - float(table.logs.min()) + table.decay)


def _cells(table: LatticeLogs, offset: _Offset, ell: Distinguishability) -> NoiseRatio:
    if math.isinf(offset.level):
        return NoiseRatio(0.0, 0.0)
    difference, cell, other = _largest_difference(table, offset.w)
    slip = _slip(table) * max(map(abs, offset.w)) if difference > 0 else 0.0
    low = _quotient(difference - slip, offset.level) * (1 - _ROUND)
    high = _quotient(difference + slip, offset.level) * (1 + _ROUND)
    witness = None
    if low > 0:
        witness = _nearest_pair(table, cell, other, difference, ell)
    return NoiseRatio(low, high, witness)


def _nearest_pair(
    table: LatticeLogs,
    cell: tuple[int, int],
    other: tuple[int, int],
    difference: float,
    ell: Distinguishability,
) -> tuple[Vector, Vector]:
    """Vectors inside two cells, so close that the level between them is exceeded if it can be."""
    for nudge in _NUDGES:
        u, v = [], []
        for c, d in zip(cell, other, strict=True):
            side = float(np.sign(d - c)) * (0.5 - nudge)
            u.append((c + side) * table.step)
            v.append((d - side) * table.step)
        if difference > float(ell(math.dist(u, v))):
            break
    return (u[0], u[1]), (v[0], v[1])


def _steepest(table: LatticeLogs, promise: Distinguishability) -> NoiseRatio:
    """The steepest triangle, against the slope of l at 0."""
    if promise.levels[0] > 0:
        return NoiseRatio(0.0, 0.0)
    slope, (i, j), (gx, gy) = table.steepest()
    if slope == 0:
        return NoiseRatio(0.0, 0.0)
    ratio = _quotient(slope, promise.slopes[0] * table.step)
    # Across the triangle's middle, along its gradient: a difference that is exact.
    lower = gx == float(table.at(i + 1, j) - table.at(i, j))
    middle = (i + 2 / 3, j + 1 / 3) if lower else (i + 1 / 3, j + 2 / 3)
    half = 0.1 * table.step / slope
    u = (middle[0] * table.step + half * gx, middle[1] * table.step + half * gy)
    v = (middle[0] * table.step - half * gx, middle[1] * table.step - half * gy)
    slip = 8 * _slip(table) / slope
    return NoiseRatio(ratio * (1 - slip), ratio * (1 + slip), (u, v))


def _linear(
    table: LatticeLogs, offsets: list[_Offset], promise: Distinguishability, reach: float
) -> Iterator[NoiseRatio]:
    """Node pairs from below; corners of squares and the Lipschitz bound from above."""
    slope, _, _ = table.steepest()
    for offset in offsets:
        a, b = (abs(c) for c in offset.w)
        gap = table.step * math.hypot(max(a - 1, 0), max(b - 1, 0))
        most = min(table.step * math.hypot(a + 1, b + 1), reach)
        lipschitz = slope / table.step * _largest_rate(promise, gap, most)
        high = min(_quotient(_square_difference(table, offset.w), offset.level), lipschitz)
        distance, low, witness = table.step * math.hypot(a, b), 0.0, None
        if 0 < distance <= reach:
            difference, cell, other = _largest_difference(table, offset.w)
            low = _quotient(difference - _slip(table) * max(a, b), float(promise(distance)))
            u, v = ((c[0] * table.step, c[1] * table.step) for c in (cell, other))
            witness = (u, v)
        yield NoiseRatio(low * (1 - _ROUND), max(high, low) * (1 + 2.0**-40), witness)


def _square_difference(table: LatticeLogs, w: tuple[int, int]) -> float:
    """The largest difference between corners of squares with this offset."""
    rings = 2 * max(map(abs, w)) + 1
    g = table.padded(rings)
    corners = [g[:-1, :-1], g[1:, :-1], g[:-1, 1:], g[1:, 1:]]
    high, low = np.maximum.reduce(corners), np.minimum.reduce(corners)
    up = float(_differences(high, low, w).max())
    return max(up, float(_differences(high, low, (-w[0], -w[1])).max())) + _slip(table) * rings


def _largest_rate(ell: Distinguishability, low: float, high: float) -> float:
    """The largest d / l(d) for d in (low, high]: at an end, or on either side of a bend."""
    starts = np.asarray(ell.starts)
    d = np.concatenate([[high], starts[(starts > low) & (starts < high)]])
    rates = [_quotient(float(at), float(ell(at))) for at in d]
    after = np.append(d[1:], low)
    rates += [_quotient(float(at), float(ell.after(at))) for at in after if at > 0]
    if low == 0:
        rates.append(_quotient(1.0, ell.slopes[0]) if ell.levels[0] == 0 else 0.0)
    return max(rates)


def _on_places(
    table: LatticeLogs, between: Between, ell: Distinguishability, domain: FinitePlaces
) -> NoiseRatio:
    found = []
    for x, y in domain.differences.tolist():
        level = float(ell(math.hypot(x, y)))
        if (x, y) > (0.0, 0.0) and math.isfinite(level):
            found.append(_at_difference(table, between, (x, y), level))
    return _largest(found)


def _at_difference(table: LatticeLogs, between: Between, delta: Vector, level: float) -> NoiseRatio:
    """u - v = delta, exactly: the offsets of squares that it joins."""
    steps = [c / table.step for c in delta]
    near = [round(s) for s in steps]
    whole = [abs(s - n) <= _SNAP * max(abs(s), 1.0) for s, n in zip(steps, near, strict=True)]
    choices = [
        [n] if w else [math.floor(s), math.ceil(s)]
        for s, n, w in zip(steps, near, whole, strict=True)
    ]
    if between == "atoms" and not all(whole):
        return NoiseRatio(math.inf, math.inf, ((0.0, 0.0), (-delta[0], -delta[1])))
    found = []
    for a, b in itertools.product(*choices):
        difference, cell, other = _largest_difference(table, (a, b))
        if between == "linear" and not all(whole):
            found.append(_sheared(table, delta, level, (a, b)))
            continue
        slip = _slip(table) * max(abs(a), abs(b), 1)
        witness = _shifted_pair(table, cell, other, delta)
        low = _quotient(difference - slip, level) * (1 - _ROUND)
        high = _quotient(difference + slip, level) * (1 + _ROUND)
        found.append(NoiseRatio(low, high if difference > 0 else 0.0, witness))
    return _largest(found)


def _sheared(table: LatticeLogs, delta: Vector, level: float, w: tuple[int, int]) -> NoiseRatio:
    """A difference that is no lattice vector, on a linear table: from nodes, and from squares."""
    slope, _, _ = table.steepest()
    high = min(
        _quotient(_square_difference(table, w), level),
        _quotient(slope / table.step * math.hypot(*delta), level),
    )
    rings = 2 * max(map(abs, w)) + 1
    a, b = table.halves
    i, j = np.meshgrid(
        np.arange(-a - rings, a + rings + 1), np.arange(-b - rings, b + rings + 1), indexing="ij"
    )
    x, y = (np.asarray(c, np.float64) - d / table.step for c, d in zip((i, j), delta, strict=True))
    there = table.interpolated(x, y)
    apart = np.abs(table.at(i, j) - there)
    at = np.unravel_index(int(apart.argmax()), apart.shape)
    low = _quotient(float(apart[at]) - _slip(table) * rings, level)
    u = (float(i[at]) * table.step, float(j[at]) * table.step)
    return NoiseRatio(low * (1 - _ROUND), max(high, low), (u, (u[0] - delta[0], u[1] - delta[1])))


def _shifted_pair(
    table: LatticeLogs, cell: tuple[int, int], other: tuple[int, int], delta: Vector
) -> tuple[Vector, Vector]:
    """Vectors u, v in the middle of what two cells share under a shift by delta or -delta."""
    sign = 1.0
    if any(
        abs((c - o) - d / table.step) > 1 + _SNAP * abs(c - o)
        for c, o, d in zip(cell, other, delta, strict=True)
    ):
        sign = -1.0
    u, v = [], []
    for c, o, d in zip(cell, other, delta, strict=True):
        shift = sign * d / table.step
        centre = (c + (o + shift)) / 2  # of the overlap of the cell and the other one, moved
        u.append(centre * table.step)
        v.append((centre - shift) * table.step)
    return (u[0], u[1]), (v[0], v[1])
