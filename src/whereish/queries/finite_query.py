"""Any query on finitely many databases: sensitivity, uniformity, induced graph, optimality.

A query is a table of answers f(x) and a metric d on the databases x.  A mechanism H on answers
gives H o f that keeps d if and only if H keeps the *induced metric*

    d_f(y, y') = least sum of steps min {d(x, x') : f(x) = y_i, f(x') = y_{i+1}} over chains y_i,

the shortest paths of the *induced graph*, which joins two answers where no chain is shorter than
their own step (Bordenabe's thesis, chapter 4; Brenner and Nissim's privacy constraint graph for
databases that differ in one record).  With Delta the sensitivity, |y - y'| <= Delta d_f(y, y'), and
f is uniformly sensitive if and only if equality holds for all answers: a chain that attains d_f is
then tight in the sense of :mod:`whereish.queries.sensitivity`, and conversely.

Whether one mechanism on the answers is best for everyone is decided by
:mod:`whereish.queries.universal_optimality`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.privacy.finite import SAME, Finite
from whereish.privacy.metric import Metric
from whereish.privacy.tuples import Records
from whereish.queries.record_query import RecordQuery
from whereish.queries.sensitivity import Sensitivity
from whereish.queries.universal_optimality import (
    UniversalOptimality,
    bent_triples,
    universal_optimality,
)
from whereish.space.points import plain_numbers

__all__ = ["FiniteQuery"]


@dataclass(frozen=True, eq=False)
class FiniteQuery:
    """A query given by its answers on finitely many databases.

    Parameters
    ----------
    answers
        f(x) for each database x: numbers.
    distances
        The metric between databases, as a matrix.

    Raises
    ------
    InvalidInput
        If answers and distances do not fit, or two databases at distance 0 differ in answer.

    Examples
    --------
    >>> import whereish as wh
    >>> pairs = wh.Records(wh.Values(1, 1), 2)  # two people, each 0 or 1
    >>> count = wh.queries.FiniteQuery.of(lambda x: x.sum(), pairs.hamming)
    >>> count.values.tolist(), count.sensitivity.value, count.sensitivity.uniform
    ([0.0, 1.0, 2.0], Fraction(1, 1), True)
    >>> count.edges
    ((0, 1), (1, 2))
    >>> count.universal_optimality(0.7).exists
    True
    """

    answers: FloatArray = field(repr=False)
    distances: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        answers = plain_numbers(self.answers, "the answers of a query")
        d = Finite(plain_numbers(self.distances, "the distances of databases")).distances
        if answers.ndim != 1 or d.shape != (len(answers), len(answers)) or not len(answers):
            raise InvalidInput(
                "a query must have one answer for each database; got shapes"
                f" {answers.shape} and {d.shape}"
            )
        if not np.isfinite(answers).all():
            raise InvalidInput("answers must be finite numbers")
        object.__setattr__(self, "answers", answers)
        object.__setattr__(self, "distances", d)
        if math.isinf(self._quotient):
            raise InvalidInput(
                "databases at distance 0 must have the same answer, else no mechanism keeps the"
                " metric and tells them apart"
            )

    @classmethod
    def of(cls, query: RecordQuery | Callable[[FloatArray], float], metric: Metric) -> FiniteQuery:
        """A query on all databases of `Records(values, size)`, from one of its metrics.

        `query` is one of :mod:`whereish.queries` or a function of the tuple of entries, in which
        null is NaN.
        """
        records = Records.of(metric)
        entries = records.entries(most=4096)
        index = np.array(list(itertools.product(entries, repeat=records.size)), np.int64)
        data = records.values.at(index)
        if isinstance(query, RecordQuery):
            answers = query.answers(records).at(query.on_indices(index, records))
        else:
            answers = np.array([float(query(row)) for row in data])
        return cls(answers, metric.matrix(data))

    # -- sensitivity ------------------------------------------------------------

    @cached_property
    def values(self) -> FloatArray:
        """The answers that occur, increasing."""
        return np.unique(self.answers)

    @cached_property
    def _quotient(self) -> float:
        moved = np.abs(self.answers[:, None] - self.answers[None])
        if (moved[self.distances == 0] > 0).any():
            return math.inf
        apart = np.isfinite(self.distances) & (self.distances > 0)
        return float((moved[apart] / self.distances[apart]).max(initial=0.0))

    @cached_property
    def steps(self) -> FloatArray:
        """min {d(x, x')} between the databases of every two answers."""
        groups = [np.flatnonzero(self.answers == y) for y in self.values]
        return np.array(
            [
                [self.distances[np.ix_(a, b)].min() if a is not b else 0.0 for b in groups]
                for a in groups
            ]
        )

    @cached_property
    def induced(self) -> FloatArray:
        """d_f: the least metric on answers that a mechanism must keep."""
        d = self.steps.copy()
        for k in range(len(d)):
            d = np.minimum(d, d[:, k, None] + d[None, k])
        return d

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The induced graph: pairs of answers (by their rank) that no chain joins as shortly."""
        d, found = self.induced, []
        for a, b in itertools.combinations(range(len(d)), 2):
            between = [d[a, k] + d[k, b] for k in range(len(d)) if k not in (a, b)]
            if math.isfinite(d[a, b]) and min(between, default=math.inf) > d[a, b] * (1 + SAME):
                found.append((a, b))
        return tuple(found)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The least Delta with |f(x) - f(x')| <= Delta d(x, x'), and whether uniformly so."""
        # d_f cannot be shorter than |y - y'| / Delta; where it is no longer either, it is tight.
        delta = self._exact_quotient()
        apart = np.abs(self.values[:, None] - self.values[None])
        tight = np.isclose(float(delta) * self.induced, apart, rtol=SAME, atol=0.0)
        reason = "all pairs of databases, and the shortest chains of answers"
        return Sensitivity(delta, bool((tight | (apart == 0)).all()), reason)

    def _exact_quotient(self) -> Fraction:
        """The largest quotient as a fraction of the doubles it is made from."""
        moved = np.abs(self.answers[:, None] - self.answers[None])
        apart = np.isfinite(self.distances) & (self.distances > 0)
        near = apart & (moved >= self._quotient * (1 - SAME) * np.where(apart, self.distances, 1))
        pairs = {
            (m, d) for m, d in zip(moved[near].tolist(), self.distances[near].tolist(), strict=True)
        }
        return max((Fraction(m) / Fraction(d) for m, d in pairs), default=Fraction(0))

    # -- Theorem 4.3 --------------------------------------------------------------

    @property
    def is_line(self) -> bool:
        """Whether the induced metric is that of a path through the answers in their order."""
        return not bent_triples(self.induced)

    def mechanism(self, epsilon: float) -> Channel:
        """The geometric channel on the answers of a line, which keeps eps * d_f.

        Its steps may differ; with equal ones it is the Truncated Geometric.

        Raises
        ------
        InvalidInput
            If the answers do not form a line (:attr:`is_line`).
        """
        if not self.is_line:
            raise InvalidInput("the answers do not form a line; see universal_optimality")
        from whereish.mechanisms.channels.inputs import as_sites, sites_metric

        places = as_sites(self.values[:, None])
        kept = sites_metric(places, None, epsilon * self.induced)
        kernel = np.exp(-kept.distances)
        matrix = kernel * np.linalg.solve(kernel, np.ones(len(kernel)))[None]
        return Channel.certified(
            matrix, places, places, kept, source="geometric on a line (Ghosh et al. 2009)"
        )

    def universal_optimality(self, epsilon: float) -> UniversalOptimality:
        """Whether a mechanism that keeps eps * d is best for every consumer, and why.

        Raises
        ------
        InvalidInput
            If epsilon is not a finite number > 0.
        """
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InvalidInput(f"epsilon must be a finite number > 0, per unit; got {epsilon!r}")
        return universal_optimality(self.values, epsilon * self.induced)
