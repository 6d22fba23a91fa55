"""The average, rounded to a public grid.

Averages of m entries are multiples of q/m, and m varies with the nulls; answers must lie
in one universe.  So the average is rounded half up to q/r, r the `refinement`:

    f(x) = (q/r) floor(r s/m + 1/2),   s the sum of the m entries that are not null, in steps.

With r = n and no nulls nothing is rounded.  On the steps of the data:

- d_inf: 1-sensitive.  Rounding is monotone and commutes with shifts by q, and the average of
  entries that each move by at most t steps moves by at most t; a change of null costs qk,
  as far as answers can be apart.  Tight for neighbouring answers iff r = 1 (all entries
  equal; for r > 1 a distance of q/r does not exist).
- d_1, no nulls: one step of one entry moves s by 1 and f by at most ceil(r/n) q/r, attained
  within every period of n sums; further apart, steps add up.  So Delta = ceil(r/n)/r, and
  neighbouring answers are tight iff r <= n.
- d_1, with nulls: the same with m = 1..n entries in place of n; the worst is m = 1: Delta = 1,
  tight iff r = 1.
- d_h, no nulls: one entry moves s by up to k: Delta = ceil(rk/n) q/r (qk for n = 1), tight iff
  that is one step of the answers.  With nulls an entry may be the only one: Delta = qk.

A database of nulls alone has the answer 0 (:func:`~whereish.queries.record_query.present`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.privacy.tuples import Records
from whereish.queries.record_query import RecordQuery, present
from whereish.queries.sensitivity import Sensitivity
from whereish.space.values import NULL, Values

__all__ = ["Average"]


@dataclass(frozen=True)
class Average(RecordQuery):
    """The average of the entries that are not null, rounded half up to q / `refinement`."""

    refinement: int = 1

    def __post_init__(self) -> None:
        r = self.refinement
        if isinstance(r, bool) or not isinstance(r, int) or not 1 <= r <= 2**20:
            raise InvalidInput(f"refinement must be a whole number from 1 to 2^20; got {r!r}")

    def answers(self, records: Records) -> Values:
        """From 0 to qk in steps of q/r."""
        return Values(records.values.step / self.refinement, records.values.top * self.refinement)

    def on_indices(self, data: IntArray, records: Records) -> IntArray:
        """floor((2 r s + m) / 2m), in integers; 0 without entries."""
        counts = np.maximum(present(data), 1)
        total = np.where(data == NULL, 0, data).sum(axis=-1)
        return np.asarray((2 * self.refinement * total + counts) // (2 * counts))

    def _least_entries(self, records: Records) -> int:
        return 1 if records.values.null else records.size

    def _hamming(self, records: Records) -> Sensitivity:
        jump = self._ceil(records.values.top, self._least_entries(records))
        return Sensitivity(
            jump * records.values.step / self.refinement,
            jump == 1,
            "one entry moves the sum of m entries by up to k steps, the average by ceil(rk/m)"
            " steps of the answers, m as small as nulls make it",
        )

    def _manhattan(self, records: Records) -> Sensitivity:
        jump = self._ceil(1, self._least_entries(records))
        return Sensitivity(
            Fraction(jump, self.refinement),
            jump == 1,
            "one step of one of m entries moves the average by at most ceil(r/m) steps of the"
            " answers, m as small as nulls make it",
        )

    def _maximum(self, records: Records) -> Sensitivity:
        return Sensitivity(
            Fraction(1),
            self.refinement == 1,
            "an average moves by at most the largest move of an entry, attained when all move;"
            " rounding commutes with whole steps",
        )

    def _ceil(self, steps: int, entries: int) -> int:
        return -(-self.refinement * steps // entries)
