"""Metrics on records: tuples of n values from a universe q*[0..k].

Differential privacy is eps * d_h; other metrics ask for less or for more
(Chatzikokolakis, Andrés, Bordenabe, Palamidessi, PETS 2013; Bordenabe's thesis,
chapter 4).  Each is a metric on one value, gathered over the entries:

    d_h(x, x')   = sum_i [x_i != x'_i]              Hamming
    d_r(x, x')   = steps that add or remove one record
    d_1(x, x')   = sum_i |x_i - x'_i|               Manhattan
    d~_1(x, x')  = d_1(x, x') / (qk)                normalised Manhattan
    d_inf(x, x') = max_i |x_i - x'_i|               maximum

where null is maximally distant: |v - null| = qk.  For d_r null is a record that is not there: to
change a value is to remove one and to add another, so d_h <= d_r <= 2 d_h.
Since |v - v'| / qk <= [v != v'], d~_1 <= d_h: what keeps eps * d~_1 keeps eps * d_h,
differential privacy, and more.
:meth:`Metric.ratio_to` knows all such constants, in both directions, rounded up.

Tuples of places need nothing new: d_inf is ``TupleMax(Euclidean(), n)``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.privacy.metric import Metric, Multiple, rounded_up, scaled_up
from whereish.privacy.norms import Euclidean
from whereish.space.box import Box
from whereish.space.values import NULL, Values, as_numbers

__all__ = [
    "AddRemove",
    "DifferentPlaces",
    "Discrete",
    "NormalisedValueDistance",
    "Records",
    "TupleMax",
    "TupleSum",
    "ValueDistance",
    "ValueMetric",
    "maximum_of_places",
]


@dataclass(frozen=True)
class _OnTuples(Multiple):
    """A metric on tuples of `size` secrets, from one on each entry (axis -2)."""

    base: Metric
    size: int
    gathered: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InvalidInput(f"a tuple must have a whole number >= 1 of entries; got {self.size}")

    @property
    def description(self) -> str:
        """How entries are gathered, then the metric on one."""
        return f"{self.gathered} over {self.size} entries of {self.base.description}"

    @property
    def _times(self) -> tuple[float, int]:
        return self.size, self.size

    def to_json(self) -> dict[str, Any]:
        """Base and size."""
        return {"kind": self.kind, "base": self.base.to_json(), "size": self.size}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls(Metric.from_json(data["base"]), data["size"])

    def stretched(self, scale: float) -> Metric:
        """Entry by entry."""
        return type(self)(self.base.stretched(scale), self.size)

    def _constant(self, other: _OnTuples) -> float:
        return 1.0

    def _ratio_to(self, other: Metric) -> float:
        if not isinstance(other, _OnTuples) or other.size != self.size:
            return math.inf
        return scaled_up(self._constant(other), self.base.ratio_to(other.base), 1.0)


@dataclass(frozen=True)
class TupleSum(_OnTuples):
    """Sum over the entries: what independent reports of each entry keep.

    >>> import whereish as wh
    >>> total = wh.TupleSum(wh.Euclidean(), 2)
    >>> float(total([[0, 0], [0, 0]], [[3, 4], [0, 1]]))
    6.0
    """

    kind = "tuple-sum"
    gathered = "sum"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(self.base(x, y).sum(axis=-1))

    def _constant(self, other: _OnTuples) -> float:
        return 1.0 if isinstance(other, TupleSum) else float(self.size)


@dataclass(frozen=True)
class TupleMax(_OnTuples):
    """d_inf on tuples: the largest distance of an entry.

    >>> import whereish as wh
    >>> float(wh.TupleMax(wh.Euclidean(), 2)([[0, 0], [0, 0]], [[3, 4], [0, 1]]))
    5.0
    """

    kind = "tuple-max"
    gathered = "maximum"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(self.base(x, y).max(axis=-1))


@dataclass(frozen=True)
class ValueMetric(Metric):
    """A metric on the values of one universe, entry by entry (no axis of coordinates)."""

    values: Values

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return self.of_indices(self.values.indices(x), self.values.indices(y))

    def of_indices(self, i: IntArray, j: IntArray) -> FloatArray:
        """Distances of values given by their indices; -1 is null."""
        steps = np.where((i == NULL) == (j == NULL), np.abs(i - j), self.values.top)
        return self._of_steps(steps)

    @abstractmethod
    def _of_steps(self, steps: IntArray) -> FloatArray:
        """The distance of values this many steps apart."""

    @abstractmethod
    def exactly(self, steps: int) -> Fraction:
        """The same for at least one step, as a fraction."""

    @property
    def least(self) -> Fraction:
        """The distance of neighbouring values."""
        return self.exactly(1)

    @property
    def greatest(self) -> Fraction:
        """The distance of 0 and qk."""
        return self.exactly(self.values.top)

    @property
    def to_null(self) -> Fraction:
        """The distance of null and any value."""
        return self.greatest

    def _ratio_to(self, other: Metric) -> float:
        # Both are concave in the number of steps, 1..k, and proportional or constant there:
        # their ratio is monotone, so its maximum lies at an end; null is a case of its own.
        if not isinstance(other, ValueMetric) or other.values != self.values:
            return math.inf
        ratios = [self.least / other.least, self.greatest / other.greatest]
        if self.values.null:
            ratios.append(self.to_null / other.to_null)
        return rounded_up(max(ratios))

    def to_json(self) -> dict[str, Any]:
        """Kind and universe."""
        return {"kind": self.kind, "values": self.values.to_json()}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls(Values.from_json(data["values"]))


@dataclass(frozen=True)
class ValueDistance(ValueMetric):
    """|v - v'|; null is qk away from every value."""

    kind = "value"
    description = "|v - v'|"

    def exactly(self, steps: int) -> Fraction:
        """So many times q."""
        return steps * self.values.step

    def _of_steps(self, steps: IntArray) -> FloatArray:
        return self.values.at(steps)


@dataclass(frozen=True)
class NormalisedValueDistance(ValueMetric):
    """|v - v'| / (qk), at most 1."""

    kind = "normalised-value"
    description = "|v - v'|/(qk)"

    def exactly(self, steps: int) -> Fraction:
        """So many of k."""
        return Fraction(steps, self.values.top)

    def _of_steps(self, steps: IntArray) -> FloatArray:
        return np.asarray(steps / self.values.top)


@dataclass(frozen=True)
class Discrete(ValueMetric):
    """[v != v']: 0 for equal values, 1 for others."""

    kind = "discrete"
    description = "[v != v']"

    def exactly(self, steps: int) -> Fraction:
        """One."""
        return Fraction(1)

    def _of_steps(self, steps: IntArray) -> FloatArray:
        return np.asarray(steps > 0, dtype=np.float64)


@dataclass(frozen=True)
class AddRemove(ValueMetric):
    """Records that are added or removed: 1 between null and a value, 2 between two values."""

    kind = "add-remove"
    description = "[v != v'] + [v != v' and neither is null]"

    def __post_init__(self) -> None:
        if not self.values.null:
            raise InvalidInput(
                "adding and removing records needs a universe with null, Values(..., null=True):"
                " a record that is not there"
            )

    def exactly(self, steps: int) -> Fraction:
        """Two: one is removed, one is added."""
        return Fraction(2)

    @property
    def to_null(self) -> Fraction:
        """One step."""
        return Fraction(1)

    def of_indices(self, i: IntArray, j: IntArray) -> FloatArray:
        """Distances of values given by their indices; -1 is null."""
        one_null = (i == NULL) != (j == NULL)
        return np.asarray(np.where(one_null, 1.0, np.where(i == j, 0.0, 2.0)))

    def _of_steps(self, steps: IntArray) -> FloatArray:
        return np.asarray(2.0 * (steps > 0))


@dataclass(frozen=True)
class Records:
    """The space of all tuples of `size` entries over a universe, and the metrics on it.

    >>> two = Records(Values(1, 5), 2)
    >>> float(two.manhattan([0, 5], [3, 5])), float(two.hamming([0, 5], [3, 5]))
    (3.0, 1.0)
    >>> two.normalised_manhattan <= two.hamming
    True
    """

    values: Values
    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise InvalidInput(
                f"records must have at least one entry, a whole number; got {self.size!r}"
            )

    def entries(self, most: int) -> IntArray:
        """The indices that an entry may have, if there are at most `most` databases to list."""
        found = self.values.all_indices()
        if len(found) ** self.size > most:
            raise InvalidInput(
                f"a universe of at most {most} databases can be listed; this one has"
                f" {len(found)}^{self.size}"
            )
        return np.asarray(found, np.int64)

    @property
    def hamming(self) -> Metric:
        """d_h: how many entries differ."""
        return TupleSum(Discrete(self.values), self.size)

    @property
    def add_remove(self) -> Metric:
        """d_r: how many records are added or removed; null is a record that is not there."""
        return TupleSum(AddRemove(self.values), self.size)

    @property
    def manhattan(self) -> Metric:
        """d_1: the sum of the entries' distances."""
        return TupleSum(ValueDistance(self.values), self.size)

    @property
    def normalised_manhattan(self) -> Metric:
        """d~_1 = d_1 / (qk)."""
        return TupleSum(NormalisedValueDistance(self.values), self.size)

    @property
    def maximum(self) -> Metric:
        """d_inf: the largest of the entries' distances."""
        return TupleMax(ValueDistance(self.values), self.size)

    def indices(self, data: ArrayLike) -> IntArray:
        """The indices of one tuple, or of many along the leading axes."""
        numbers = as_numbers(data)
        if numbers.size == 0:
            raise InvalidInput("a database must have at least one entry; got an empty one")
        if numbers.ndim == 0 or numbers.shape[-1] != self.size:
            raise InvalidInput(
                f"records must be tuples of {self.size} entries; got shape {numbers.shape}: the"
                " size is public and declared, entries that are missing are null"
            )
        return self.values.indices(numbers)

    @property
    def dimension(self) -> int:
        """One coordinate per entry."""
        return self.size

    @property
    def description(self) -> str:
        """The set of tuples in the field's notation."""
        return f"{self.size}-tuples over {self.values.description}"

    def check(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all rows are such tuples."""
        self.values.indices(coordinates)

    @classmethod
    def of(cls, metric: Metric) -> Records:
        """The records on which `metric` speaks."""
        if isinstance(metric, TupleSum | TupleMax) and isinstance(metric.base, ValueMetric):
            return cls(metric.base.values, metric.size)
        raise InvalidInput(
            "the metric must be one on records: hamming, manhattan, normalised_manhattan or"
            f" maximum of Records(values, size); got {metric.description}"
        )


@dataclass(frozen=True)
class DifferentPlaces(Metric):
    """[x != x'] for places of a declared region of a plane: what d_h counts on places."""

    region: Box
    kind = "different-places"
    description = "[x != x']"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(Euclidean()(x, y) > 0, dtype=np.float64)

    @property
    def diameter(self) -> float:
        """The region's diagonal, rounded up."""
        return math.nextafter(math.hypot(self.region.width, self.region.height), math.inf)

    def to_json(self) -> dict[str, Any]:
        """Kind and region."""
        r = self.region
        return {"kind": self.kind, "region": [r.x_low, r.y_low, r.x_high, r.y_high]}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls(Box(*(float(bound) for bound in data["region"])))


def maximum_of_places(size: int, metric: Metric | None = None) -> TupleMax:
    """d_inf on tuples of `size` places: the largest distance of two corresponding places."""
    return TupleMax(Euclidean() if metric is None else metric, size)
