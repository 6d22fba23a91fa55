"""Sum and count: queries f(x) = sum_i g(x_i) that add a number per entry.

Let Delta_1 be the largest |g(v) - g(v')| / |v - v'| over values, null included.

- d_1: Delta = Delta_1, since the sums on both sides add up entry by entry, and one entry
  can move alone.
- d_h: Delta = max g - min g.
- d_inf: Delta = n Delta_1: all n entries move at once.
- d~_1 = d_1 / (qk): Delta = qk Delta_1.

Delta_1 is found on neighbouring values (a ratio of sums is at most the largest ratio of
its terms) and on the pairs with null.  Neighbouring answers, one step apart:

- d_1 is tight there iff a pair of values has |g(v) - g(v')| = one step = Delta_1 |v - v'|,
  and the other n - 1 entries can fill up to every answer.
- d_h is tight there iff Delta is one step: walking from one answer to the next entry by
  entry then cannot jump over.  (For Delta above one step, d_h = 1/Delta is no distance.)
- d_inf is tight only if every entry moves, each by at least one step: only for n = 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.privacy.tuples import Records
from whereish.queries.record_query import RecordQuery
from whereish.queries.sensitivity import Sensitivity
from whereish.space.values import Values

__all__ = ["Count", "Sum"]


class _Additive(RecordQuery):
    """Sums of g over the entries; g >= 0 is counted in steps of the answers."""

    @abstractmethod
    def _step(self, values: Values) -> Fraction:
        """One step of the answers."""

    @abstractmethod
    def _terms(self, values: Values) -> IntArray:
        """g at the indices 0..k, in steps."""

    # g(null) = 0, and it sits at index -1 of a table that ends with it.
    def _table(self, values: Values) -> IntArray:
        return np.append(self._terms(values), 0)

    def answers(self, records: Records) -> Values:
        """From 0 to n max g."""
        top = records.size * int(self._terms(records.values).max())
        return Values(self._step(records.values), top)

    def on_indices(self, data: IntArray, records: Records) -> IntArray:
        """The sum of g; null adds nothing."""
        return np.asarray(self._table(records.values)[data].sum(axis=-1))

    def _hamming(self, records: Records) -> Sensitivity:
        terms = self._all_terms(records.values)
        spread = int(terms.max() - terms.min())
        return Sensitivity(
            spread * self._step(records.values),
            spread == 1,
            "one entry changes the sum by max g - min g; neighbouring answers are one change apart"
            " iff that is one step",
        )

    def _manhattan(self, records: Records) -> Sensitivity:
        steepest, tight = self._steepest(records.values)
        return Sensitivity(
            steepest,
            self._fills_up(tight, records),
            "sums add up entry by entry, and the steepest pair of values moves alone",
        )

    def _maximum(self, records: Records) -> Sensitivity:
        steepest, tight = self._steepest(records.values)
        return Sensitivity(
            records.size * steepest,
            records.size == 1 and self._fills_up(tight, records),
            "all n entries move at once, by the steepest pair of values",
        )

    def _all_terms(self, values: Values) -> IntArray:
        return self._table(values) if values.null else self._terms(values)

    def _steepest(self, values: Values) -> tuple[Fraction, set[int]]:
        """Delta_1, and the lower g of each pair that attains it with one step."""
        terms, unit = self._terms(values), self._step(values)
        rises = np.abs(np.diff(terms))
        steepest = Fraction(int(rises.max())) * unit / values.step
        to_null = Fraction(int(terms.max()) if values.null else 0) * unit / values.diameter
        steepest = max(steepest, to_null)
        tight: set[int] = set()
        if steepest == unit / values.step:
            tight.update(int(low) for low in np.minimum(terms[1:], terms[:-1])[rises == 1])
        if values.null and steepest == unit / values.diameter and 1 in terms:
            tight.add(0)
        return steepest, tight

    def _fills_up(self, tight: set[int], records: Records) -> bool:
        """Whether tight pairs with n - 1 other entries reach all pairs y, y + 1 of answers.

        The others add anything in 0..(n-1)G, G = max g (sums and counts leave no gap).
        """
        largest = int(self._terms(records.values).max())
        reach, covered = (records.size - 1) * largest, -1
        for low in sorted(tight):
            if low > covered + 1:
                return False
            covered = max(covered, low + reach)
        return covered >= records.size * largest - 1


@dataclass(frozen=True)
class Sum(_Additive):
    """The sum of all entries; null adds nothing.

    1-sensitive for d_1, qk-sensitive for d_h and d~_1, n-sensitive for d_inf.
    """

    def _step(self, values: Values) -> Fraction:
        return values.step

    def _terms(self, values: Values) -> IntArray:
        return np.arange(values.top + 1)


@dataclass(frozen=True)
class Count(_Additive):
    """How many entries satisfy a predicate on values; null never does.

    Parameters
    ----------
    where
        A function from a value to a truth; by default every value counts, so that the
        query counts the entries that are not null.
    """

    where: Callable[[float], bool] | None = None

    def _step(self, values: Values) -> Fraction:
        return Fraction(1)

    def _terms(self, values: Values) -> IntArray:
        where = self.where
        if where is None:
            terms = np.ones(values.top + 1, np.int64)
        else:
            numbers = values.at(np.arange(values.top + 1))
            terms = np.array([bool(where(float(value))) for value in numbers], np.int64)
        if terms.max() == 0 or (terms.min() == 1 and not values.null):
            raise InvalidInput(
                "a count must hold for some values of the universe and fail for others, else its"
                " answer is known without the data"
            )
        return terms
