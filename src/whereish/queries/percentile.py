"""Percentiles: minimum, median, maximum and all between.

The p-percentile of m entries, sorted, is the one at index floor(p m / 100), p in [0, 100).

- d_inf: 1-sensitive.  If every entry moves by at most t, so does every order statistic;
  and where an entry turns to null or back, d_inf = qk already.
- d_1: 1-sensitive, since d_inf <= d_1 on the same values.
- d_h, d~_1 = d_1/(qk): qk-sensitive, attained: with the entries below it at 0 and those
  above it at qk, the entry in question moves alone from 0 to qk.

The same databases make neighbouring answers tight for d_inf, d_1 and d~_1; for d_h only
if qk is one step.  A database of nulls alone has the answer 0
(:func:`~whereish.queries.record_query.present`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.privacy.tuples import Records
from whereish.queries.record_query import RecordQuery, present
from whereish.queries.sensitivity import Sensitivity
from whereish.space.values import NULL, Values, rational

__all__ = ["Maximum", "Median", "Minimum", "Percentile"]


class _OrderStatistic(RecordQuery):
    """The entry at a rank that depends on how many entries there are."""

    @abstractmethod
    def _rank(self, counts: IntArray) -> IntArray:
        """The index among `counts` sorted entries."""

    def answers(self, records: Records) -> Values:
        """The entries' universe, without null."""
        return Values(records.values.step, records.values.top)

    def on_indices(self, data: IntArray, records: Records) -> IntArray:
        """The entry at the rank, among those that are not null; 0 without any."""
        counts = present(data)
        rank = np.where(counts == 0, 0, self._rank(counts))
        last = np.iinfo(np.int64).max  # null sorts last
        ordered = np.sort(np.where(data == NULL, last, data), axis=-1)
        at_rank = np.take_along_axis(ordered, rank[..., None], axis=-1)[..., 0]
        return np.where(counts == 0, 0, at_rank)

    def _hamming(self, records: Records) -> Sensitivity:
        return Sensitivity(
            records.values.diameter,
            records.values.top == 1,
            "one entry moves the statistic from 0 to qk when the others are 0 below it and qk"
            " above it; neighbouring answers are tight iff k = 1",
        )

    def _manhattan(self, records: Records) -> Sensitivity:
        return _as_an_entry("and the entry that it is can move alone")

    def _maximum(self, records: Records) -> Sensitivity:
        return _as_an_entry("attained when all are equal")


@dataclass(frozen=True, init=False)
class Percentile(_OrderStatistic):
    """The p-percentile: of m sorted entries the one at index floor(p m / 100)."""

    p: Fraction

    def __init__(self, p: Fraction | float | str) -> None:
        exact = rational(p, name="p")
        if not 0 <= exact < 100:
            raise InvalidInput(
                f"p must be in [0, 100), in percent; got {p}: the largest entry is Maximum()"
            )
        object.__setattr__(self, "p", exact)

    def _rank(self, counts: IntArray) -> IntArray:
        share = self.p / 100
        table = [m * share.numerator // share.denominator for m in range(int(counts.max()) + 1)]
        return np.asarray(table, np.int64)[counts]


@dataclass(frozen=True)
class Minimum(_OrderStatistic):
    """The least entry: the 0-percentile."""

    def _rank(self, counts: IntArray) -> IntArray:
        return np.zeros_like(counts)


@dataclass(frozen=True)
class Median(_OrderStatistic):
    """The upper median: the 50-percentile."""

    def _rank(self, counts: IntArray) -> IntArray:
        return counts // 2


@dataclass(frozen=True)
class Maximum(_OrderStatistic):
    """The largest entry: the p-percentile for p from 100 (1 - 1/n) on."""

    def _rank(self, counts: IntArray) -> IntArray:
        return counts - 1


def _as_an_entry(attained: str) -> Sensitivity:
    """Sensitivity 1, which is tight."""
    moves = "an order statistic moves by at most the largest move of an entry"
    return Sensitivity(Fraction(1), True, f"{moves}, {attained}")
