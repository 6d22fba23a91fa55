"""What a query on records is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy.metric import Metric
from whereish.privacy.tuples import Records
from whereish.queries.sensitivity import Notion, Sensitivity, notion_of
from whereish.sampling.thresholds import level
from whereish.space.values import NULL, Values

__all__ = ["RecordQuery", "present"]


class RecordQuery(ABC):
    """A function from records to a universe q'*[0..k'], with its sensitivities."""

    @abstractmethod
    def answers(self, records: Records) -> Values:
        """The universe of the answers."""

    @abstractmethod
    def on_indices(self, data: IntArray, records: Records) -> IntArray:
        """The index of the answer for databases given by indices, along the last axis."""

    @abstractmethod
    def _hamming(self, records: Records) -> Sensitivity: ...

    @abstractmethod
    def _manhattan(self, records: Records) -> Sensitivity: ...

    @abstractmethod
    def _maximum(self, records: Records) -> Sensitivity: ...

    def __call__(self, data: ArrayLike, records: Records) -> FloatArray:
        """The true answer: secret, for the eyes of the data's keeper."""
        return self.answers(records).at(self.on_indices(records.indices(data), records))

    def sensitivity(self, metric: Metric) -> Sensitivity:
        """The least Delta with respect to `metric`, and whether it is uniform."""
        records, notion = Records.of(metric), notion_of(metric)
        if notion is Notion.HAMMING:
            return self._hamming(records)
        if notion is Notion.MAXIMUM:
            return self._maximum(records)
        manhattan = self._manhattan(records)
        if notion is Notion.MANHATTAN:
            return manhattan
        return manhattan.times(records.values.diameter)

    def mechanism(self, metric: Metric, epsilon: Fraction | float) -> TruncatedGeometric:
        """The noise on answers that keeps eps * metric on databases."""
        delta = self.sensitivity(metric).value
        return TruncatedGeometric(self.answers(Records.of(metric)), level(epsilon) / delta)


def present(data: IntArray) -> IntArray:
    """How many entries of each database are not null.

    A database of nulls alone has no average and no percentile; these queries answer 0 for
    it.  Refusing would tell without noise that nobody has an entry.  The answer may be any
    constant: turning the last entry to null is a distance of qk (of 1 for d_h), and all
    answers lie within qk of each other, so no sensitivity changes.
    """
    return np.asarray((data != NULL).sum(axis=-1))
