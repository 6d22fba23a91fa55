"""Rows that come near to equality or are violated, and how they take a barrier term.

A violated row enters with a small positive slack, which later steps reconcile with k.  Its
multiplier is taken from the other rows of the same target and kept small, so that the duals stay
nearly feasible and the lower bound does not fall.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.directions import Part, SharedRows
from whereish.solvers.optimal.barrier.rows import Pairs, Rows

__all__ = ["ENTRY_SLACK", "Admitted", "Entry", "admit", "near_active_pairs"]

ENTRY_SLACK = 0.05
"""Slack of a violated row on entry, relative to its target's entry."""


class Entry(NamedTuple):
    """Which rows enter, and how.

    Attributes
    ----------
    within : rows with a_ij k_i > (1 - within) k_j enter,
    most : at most so many for every output and target, tightest first.
    barrier : a tenth of this is the product s y of a new row,
    share : unless that is more than this part of the multipliers of its target.
    """

    within: float
    most: int
    barrier: float
    share: float


class Admitted(NamedTuple):
    """The rows after some have entered, with slacks and multipliers, and their sorted keys."""

    rows: Rows
    keys: IntArray
    s: FloatArray
    y: FloatArray


class _New(NamedTuple):
    """Rows that enter a range of outputs: sorted keys, slacks, multipliers; where outputs begin."""

    key: IntArray
    slack: FloatArray
    y: FloatArray
    begin: IntArray


def admit(
    shared: SharedRows,
    k: FloatArray,
    closeness: FloatArray,
    *,
    s: FloatArray,
    y: FloatArray,
    entry: Entry,
) -> Admitted | None:
    """Give a barrier term to the rows of columns `k` that ask for one; None if none does."""
    start, pairs = shared.rows
    left = np.empty(y.size)

    def enter(part: Part) -> _New:
        near, begin = near_active_pairs(k[slice(*part)], closeness, entry.within, entry.most)
        return _New(*rows_that_enter(near, begin, k, closeness, start, pairs, y, part, entry, left))

    new = shared.map(enter)
    added = np.concatenate([np.diff(one.begin) for one in new])
    if not added.any():
        return None
    after = start + np.append(0, np.cumsum(added))
    size = int(after[-1])
    source, target = np.empty(size, np.int32), np.empty(size, np.int32)
    joined = Pairs(source, target, np.empty(size))
    out = Admitted(Rows(after, joined), np.empty(size, np.int64), np.empty(size), np.empty(size))

    def join(at: int) -> None:
        part, one = shared.parts[at], new[at]
        join_rows(start, pairs, s, left, one, part, closeness, after, joined, *out[1:])

    shared.team.map(join, range(len(new)))
    return out


@kernel
def near_active_pairs(
    k: FloatArray, closeness: FloatArray, within: float, most: int
) -> tuple[IntArray, IntArray]:
    """Rows with a_ij k_i > (1 - within) k_j: at most `most` per (output, target), tightest first.

    Returns the row keys source * n + target, and where each output's begin.
    """
    outputs, n = k.shape
    found = np.empty(outputs * n * most, np.int64)
    begin = np.zeros(outputs + 1, np.int64)
    value, origin = np.zeros(most), np.zeros(most, np.int64)
    count = 0
    for z in range(outputs):
        for j in range(n):
            value[:] = k[z, j] * (1.0 - within)
            origin[:] = -1
            for i in range(n):
                candidate = closeness[j, i] * k[z, i]
                if candidate > value[most - 1] and i != j:
                    place = most - 1
                    while place > 0 and candidate > value[place - 1]:
                        value[place] = value[place - 1]
                        origin[place] = origin[place - 1]
                        place -= 1
                    value[place] = candidate
                    origin[place] = i
            for place in range(most):
                if origin[place] >= 0:
                    found[count] = origin[place] * n + j
                    count += 1
        begin[z + 1] = count
    return found[:count].copy(), begin


@kernel
def rows_that_enter(
    near: IntArray,
    begin: IntArray,
    k: FloatArray,
    closeness: FloatArray,
    start: IntArray,
    pairs: Pairs,
    y: FloatArray,
    outputs: tuple[int, int],
    entry: Entry,
    left: FloatArray,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Those of the rows `near` that a range of outputs lacks, in the order of their keys.

    Writes what is `left` of the multipliers of the rows that the outputs have.
    """
    n = k.shape[1]
    key, slack, fresh = np.empty(near.size, np.int64), np.empty(near.size), np.empty(near.size)
    ends = np.zeros(begin.size, np.int64)
    inflow, taken = np.empty(n), np.empty(n)
    count = 0
    for z in range(outputs[0], outputs[1]):
        low, high, first, at = start[z], start[z + 1], count, z - outputs[0]
        for one in near[begin[at] : begin[at + 1]]:
            if not has_key(pairs, n, low, high, one):
                key[count] = one
                count += 1
        inflow[:] = 0.0
        taken[:] = 0.0
        for row in range(low, high):
            inflow[pairs.target[row]] += y[row]
        for one in range(first, count):
            i, j = key[one] // n, key[one] % n
            gap = k[z, j] - closeness[i, j] * k[z, i]
            slack[one] = max(gap, ENTRY_SLACK * abs(k[z, j]))
            fresh[one] = min(0.1 * entry.barrier / slack[one], entry.share * inflow[j])
            taken[j] += fresh[one]
        for row in range(low, high):
            j = pairs.target[row]
            left[row] = y[row] * (1.0 - taken[j] / inflow[j]) if taken[j] > 0.0 else y[row]
        order = first + np.argsort(key[first:count])
        key[first:count] = key[order]
        slack[first:count] = slack[order]
        fresh[first:count] = fresh[order]
        ends[at + 1] = count
    return key[:count].copy(), slack[:count].copy(), fresh[:count].copy(), ends


@kernel
def has_key(pairs: Pairs, n: int, low: int, high: int, key: int) -> bool:
    """Whether a row source * n + target is among some that are sorted by it."""
    while low < high:
        middle = (low + high) // 2
        there = np.int64(pairs.source[middle]) * n + pairs.target[middle]
        if there == key:
            return True
        if there < key:
            low = middle + 1
        else:
            high = middle
    return False


@kernel
def join_rows(
    start: IntArray,
    pairs: Pairs,
    s: FloatArray,
    y: FloatArray,
    new: _New,
    outputs: tuple[int, int],
    closeness: FloatArray,
    after: IntArray,
    joined: Pairs,
    keys: IntArray,
    joined_s: FloatArray,
    joined_y: FloatArray,
) -> None:
    """Write the rows that a range of outputs has and those that enter, in the order of keys."""
    n = closeness.shape[0]
    for z in range(outputs[0], outputs[1]):
        row, end = start[z], start[z + 1]
        one, last = new.begin[z - outputs[0]], new.begin[z - outputs[0] + 1]
        for at in range(after[z], after[z + 1]):
            old = row < end
            key = np.int64(pairs.source[row]) * n + pairs.target[row] if old else np.int64(0)
            if one < last and (not old or new.key[one] < key):
                key = new.key[one]
                joined_s[at], joined_y[at] = new.slack[one], new.y[one]
                joined.factor[at] = closeness[key // n, key % n]
                one += 1
            else:
                joined_s[at], joined_y[at] = s[row], y[row]
                joined.factor[at] = pairs.factor[row]
                row += 1
            keys[at] = key
            joined.source[at], joined.target[at] = key // n, key % n
