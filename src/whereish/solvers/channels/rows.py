"""From probabilities to integer weights whose privacy is proven.

A channel in floating point keeps its metric up to rounding, which is not keeping
it.  Here its rows become integers with the common total 2^62.  Before rounding,
a tiny part t of a fixed distribution q, with q_z in proportion to the largest entry
of column z, is mixed in: it gives every row k_j >= a k_i the slack
t q_z (1 - a), which is more than rounding and the check's own error take.  The
check is `ratios.largest_ratio` on the integers themselves; t grows until it passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import NotPrivate
from whereish.solvers.channels.ratios import LargestRatio, largest_ratio

__all__ = ["TOTAL", "CertifiedRows", "certified_rows", "draw_columns", "rounded_rows"]


TOTAL = 2**62
"""The sum of every row of integer weights."""
_MARGIN = 1e-12  # slack in ln k that the check may ask for
_SMALLEST = 1e-4  # columns get slack as if their largest entry were at least this
_LARGEST_MIX = 1e-3
_USUAL_MIX = 1e-6
"""Places that almost coincide would ask for more, and rarely need it.

Then less is tried first: on steep metrics a flat part of 1e-6 costs as much as a tenth of the
optimum.
"""
_LESS_MIX = (1e-10, 1e-8)
_LOOSE = 25.0  # nats


@dataclass(frozen=True)
class CertifiedRows:
    """Integer weights, the part that was mixed in, and the factor of the metric they keep."""

    weights: IntArray
    mixed: float
    ratio: LargestRatio


def certified_rows(
    matrix: FloatArray, metric: FloatArray, *, metric_error: float | FloatArray = 0.0
) -> CertifiedRows:
    """Integer rows near `matrix` that provably keep `metric`.

    Raises `NotPrivate` where the matrix is too far from private for a mix of at most
    0.1% to mend.  Columns that are zero in all rows stay zero.
    """
    largest = matrix.max(axis=0)
    weight = np.where(largest > 0, np.maximum(largest, _SMALLEST), 0.0)
    nearest_distance = float(metric[metric > 0].min(initial=np.inf))
    nearest = float(-np.expm1(-nearest_distance))
    # Where distances exceed 62 bits, no check is tight and almost no mix is needed.
    margin = _MARGIN if nearest_distance < _LOOSE else 4.0 / TOTAL
    factor = np.inf
    for mix in _mixes(margin * float(weight.sum()) / nearest):
        weights = rounded_rows((1.0 - mix) * matrix + mix * weight / weight.sum())
        ratio = largest_ratio(weights, metric, distance_error=metric_error)
        if ratio.upper <= 1.0:
            return CertifiedRows(weights, mix, ratio)
        factor = ratio.upper
    raise NotPrivate(
        f"no integer rows near the channel keep the metric: the best need {factor:.9g} times it"
    )


def _mixes(enough: float) -> Iterator[float]:
    """Flat parts in the order of trial, from what is `enough` for every distance, or less."""
    if enough > _USUAL_MIX:
        yield from _LESS_MIX
    mix = min(enough, _USUAL_MIX)
    while mix <= _LARGEST_MIX:
        yield mix
        mix *= 10.0


def rounded_rows(matrix: FloatArray) -> IntArray:
    """Integer rows of total 2^62 in the proportions of a nonnegative matrix.

    Entries are rounded down; what is missing goes to the row's largest entry, which it
    changes least.
    """
    scaled = matrix / matrix.sum(axis=1, keepdims=True)
    weights = np.floor(scaled * float(TOTAL)).astype(np.int64)
    missing = TOTAL - weights.sum(axis=1)
    weights[np.arange(len(weights)), scaled.argmax(axis=1)] += missing
    return np.asarray(weights, dtype=np.int64)


@kernel
def draw_columns(cumulative: IntArray, rows: IntArray, words: NDArray[np.uint64]) -> IntArray:
    """For each row the column whose interval holds the word's top 62 bits."""
    out = np.empty(rows.size, np.int64)
    for draw in range(rows.size):
        value = np.int64(words[draw] >> np.uint64(2))
        line = cumulative[rows[draw]]
        low, high = 0, line.size - 1
        while low < high:
            middle = (low + high) // 2
            if value < line[middle]:
                high = middle
            else:
                low = middle + 1
        out[draw] = low
    return out
