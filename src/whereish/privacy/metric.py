"""Distinguishability metrics: what must stay indistinct, and how much.

A mechanism K keeps a metric d when for all secrets x, x' and all events S

    ln P(K(x) in S) - ln P(K(x') in S) <= d(x, x').

``eps * Euclidean()`` is geo-indistinguishability (Andrés et al., CCS 2013); the
algebra here is that of composition: releasing twice adds metrics, releasing k
times scales one.  ``a.ratio_to(b)`` is the least constant c known with a <= c*b,
so that what keeps a also keeps c*b.

Here is the algebra; the metrics themselves are in :mod:`whereish.privacy.norms`,
:mod:`whereish.privacy.finite` and :mod:`whereish.privacy.tuples`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, shortened
from whereish.space.points import Space
from whereish.units import Epsilon

__all__ = ["Metric", "Multiple", "Scaled", "Sum", "rounded_up", "scaled_up"]


class Metric(ABC):
    """A distance d(x, x') on secrets, vectorised over rows.

    >>> import whereish as wh
    >>> twice = 0.01 * wh.Euclidean() + 0.02 * wh.Euclidean()
    >>> twice.description
    "0.03 * |x - x'|"
    >>> wh.Metric.from_json(twice.to_json()) == twice
    True
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Metric]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            Metric._kinds[cls.kind] = cls

    @abstractmethod
    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Distances of the rows of `x` and `y`, broadcast against each other."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The metric in the field's notation."""

    @property
    def absolute_error(self) -> float:
        """How far a computed distance may be off, beyond its relative error."""
        return 0.0

    @property
    def relative_error(self) -> float:
        """How far a computed distance may be off, as a share of it."""
        return 2.0**-48

    def matrix(self, x: ArrayLike, y: ArrayLike | None = None) -> FloatArray:
        """All distances: entry (i, j) is d(x_i, y_j)."""
        rows = np.asarray(x)
        columns = rows if y is None else np.asarray(y)
        return self(rows[:, None], columns[None])

    def __mul__(self, factor: float | Epsilon) -> Metric:
        value = factor.per_m if isinstance(factor, Epsilon) else float(factor)
        return Scaled(value, self)

    __rmul__ = __mul__

    def __add__(self, other: Metric) -> Metric:
        return Sum.of(self, other)

    def ratio_to(self, other: Metric) -> float:
        """The least c known with d <= c * other everywhere; infinity if none is."""
        if isinstance(other, Scaled):
            return scaled_up(1.0, self.ratio_to(other.base), other.factor)
        return 1.0 if self == other else self._ratio_to(other)

    def _ratio_to(self, other: Metric) -> float:
        return math.inf

    def __le__(self, other: Metric) -> bool:
        """Whether d <= other is known to hold everywhere."""
        return self.ratio_to(other) <= 1.0

    def stretched(self, scale: float) -> Metric:
        """What to keep on coordinates whose distances are up to `scale` times the true ones.

        Keeping it there keeps this metric in true metres.  Metrics that are no functions
        of a distance in metres stay as they are.
        """
        return self

    def fits(self, space: Space) -> bool:
        """Whether coordinates of `space` are what this metric takes them for."""
        return True

    def to_json(self) -> dict[str, Any]:
        """A plain description from which :meth:`from_json` makes the metric again."""
        return {"kind": self.kind}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Metric:
        """The metric that :meth:`to_json` described."""
        try:
            return Metric._kinds[data["kind"]]._read(data)
        except InvalidInput:
            raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            raise InvalidInput("this is not the description of a metric") from None

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls()


class Multiple(Metric):
    """A metric computed as a multiple of another, or as a sum of so many values of it."""

    base: Metric

    @property
    @abstractmethod
    def _times(self) -> tuple[float, int]:
        """By what the base's errors are multiplied, and how often a result is rounded."""

    @property
    def absolute_error(self) -> float:
        """The base's, multiplied."""
        return self._times[0] * self.base.absolute_error

    @property
    def relative_error(self) -> float:
        """The base's, and the roundings."""
        return self.base.relative_error + self._times[1] * 2.0**-53

    def fits(self, space: Space) -> bool:
        """Where the base does."""
        return self.base.fits(space)


@dataclass(frozen=True)
class Scaled(Multiple):
    """factor * base."""

    factor: float
    base: Metric
    kind = "scaled"

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", float(self.factor))
        if isinstance(self.base, Scaled):
            object.__setattr__(self, "factor", self.factor * self.base.factor)
            object.__setattr__(self, "base", self.base.base)
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise InvalidInput(
                f"a metric must be scaled by a finite number > 0; got {self.factor:g}"
            )

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return self.factor * self.base(x, y)

    @property
    def description(self) -> str:
        """Factor, then base."""
        return f"{self.factor:.6g} * {self.base.description}"

    @property
    def _times(self) -> tuple[float, int]:
        return self.factor, 1

    def stretched(self, scale: float) -> Metric:
        """The base's, scaled."""
        return Scaled(self.factor, self.base.stretched(scale))

    def ratio_to(self, other: Metric) -> float:
        """The base's ratio, scaled."""
        if isinstance(other, Scaled):
            return scaled_up(self.factor, self.base.ratio_to(other.base), other.factor)
        return scaled_up(self.factor, self.base.ratio_to(other), 1.0)

    def to_json(self) -> dict[str, Any]:
        """Factor and base."""
        return {"kind": self.kind, "factor": self.factor, "base": self.base.to_json()}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls(float(data["factor"]), Metric.from_json(data["base"]))


@dataclass(frozen=True)
class Sum(Metric):
    """The pointwise sum of metrics on the same secrets."""

    parts: tuple[Metric, ...]
    kind = "sum"

    @staticmethod
    def of(*metrics: Metric) -> Metric:
        """Add metrics, gathering multiples of one base."""
        if not metrics:
            raise InvalidInput("a sum of metrics must have at least one part")
        factors: dict[Metric, float] = {}
        for metric in metrics:
            for part in metric.parts if isinstance(metric, Sum) else (metric,):
                scaled = part if isinstance(part, Scaled) else Scaled(1.0, part)
                factors[scaled.base] = factors.get(scaled.base, 0.0) + scaled.factor
        parts = tuple(base if f == 1.0 else Scaled(f, base) for base, f in factors.items())
        return parts[0] if len(parts) == 1 else Sum(parts)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(sum(part(x, y) for part in self.parts))

    @property
    def description(self) -> str:
        """Parts with a plus between."""
        return " + ".join(part.description for part in self.parts)

    def __repr__(self) -> str:
        return f"Sum({len(self.parts)} metrics: {shortened(self.description)})"

    @property
    def absolute_error(self) -> float:
        """Errors add up."""
        return sum(part.absolute_error for part in self.parts)

    @property
    def relative_error(self) -> float:
        """The largest of a part, and one rounding for each."""
        return max(part.relative_error for part in self.parts) + len(self.parts) * 2.0**-53

    def fits(self, space: Space) -> bool:
        """Where all parts do."""
        return all(part.fits(space) for part in self.parts)

    def stretched(self, scale: float) -> Metric:
        """Part by part."""
        return Sum.of(*(part.stretched(scale) for part in self.parts))

    def _ratio_to(self, other: Metric) -> float:
        ratios = [part.ratio_to(other) for part in self.parts]
        if math.inf in ratios:
            return math.inf
        return rounded_up(sum(map(Fraction, ratios), Fraction(0)))

    def to_json(self) -> dict[str, Any]:
        """All parts."""
        return {"kind": self.kind, "parts": [part.to_json() for part in self.parts]}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return Sum.of(*(Metric.from_json(part) for part in data["parts"]))


def rounded_up(number: Fraction) -> float:
    """The least double that is at least `number`: a ratio too small would promise too much."""
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def scaled_up(factor: float, ratio: float, divisor: float) -> float:
    """The least double that is at least factor * ratio / divisor."""
    if math.isinf(ratio):
        return math.inf
    return rounded_up(Fraction(factor) * Fraction(ratio) / Fraction(divisor))
