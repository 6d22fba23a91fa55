"""Distinguishability metrics: what must stay indistinct, and how much.

A mechanism K keeps a metric d when for all secrets x, x' and all events S

    ln P(K(x) in S) - ln P(K(x') in S) <= d(x, x').

``eps * Euclidean()`` is geo-indistinguishability (Andrés et al., CCS 2013); the
algebra here is that of composition: releasing twice adds metrics, releasing k
times scales one.  ``a.ratio_to(b)`` is the least constant c known with a <= c*b,
so that what keeps a also keeps c*b.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.sphere import DISTANCE_ERROR, great_circle_m
from whereish.units import Epsilon

__all__ = [
    "Chebyshev",
    "Euclidean",
    "Finite",
    "Geodesic",
    "GreatCircle",
    "Manhattan",
    "Metric",
    "Scaled",
    "Sum",
    "TupleMax",
    "TupleSum",
]


class Metric(ABC):
    """A distance d(x, x') on secrets, vectorised over rows."""

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
            return _scaled_up(1.0, self.ratio_to(other.base), other.factor)
        return 1.0 if self == other else self._ratio_to(other)

    def _ratio_to(self, other: Metric) -> float:
        return _KNOWN_RATIOS.get((type(self), type(other)), math.inf)

    def __le__(self, other: Metric) -> bool:
        """Whether d <= other is known to hold everywhere."""
        return self.ratio_to(other) <= 1.0

    def stretched(self, scale: float) -> Metric:
        """What to keep on coordinates whose distances are up to `scale` times the true ones.

        Keeping it there keeps this metric in true metres.  Metrics that are no functions
        of a distance in metres stay as they are.
        """
        return self

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
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("this is not the description of a metric") from None

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls()


class _Norm(Metric):
    """A norm of the difference of coordinates in metres."""

    def stretched(self, scale: float) -> Metric:
        """The metric over `scale`."""
        return self if scale == 1.0 else Scaled((1.0 - 2.0**-50) / scale, self)


@dataclass(frozen=True)
class Euclidean(_Norm):
    """Straight-line distance of coordinates in metres."""

    kind = "euclidean"
    description = "|x - x'|"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        apart = np.asarray(x, float) - np.asarray(y, float)
        if apart.shape[-1] == 2:
            return np.asarray(np.hypot(apart[..., 0], apart[..., 1]))
        return np.asarray(np.linalg.norm(apart, axis=-1))


@dataclass(frozen=True)
class Manhattan(_Norm):
    """d_1: the sum of coordinate distances."""

    kind = "manhattan"
    description = "|x - x'|_1"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(np.abs(np.asarray(x, float) - np.asarray(y, float)).sum(axis=-1))


@dataclass(frozen=True)
class Chebyshev(_Norm):
    """d_inf: the largest coordinate distance."""

    kind = "chebyshev"
    description = "|x - x'|_inf"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(np.abs(np.asarray(x, float) - np.asarray(y, float)).max(axis=-1))


@dataclass(frozen=True)
class GreatCircle(Metric):
    """Great-circle metres of degrees on the sphere of radius b²/a."""

    kind = "great-circle"
    description = "great-circle metres (never more than true metres)"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return great_circle_m(np.asarray(x, float), np.asarray(y, float))

    @property
    def relative_error(self) -> float:
        """As :func:`~whereish.space.sphere.great_circle_m` proves it."""
        return DISTANCE_ERROR


@dataclass(frozen=True)
class Geodesic(Metric):
    """True metres of degrees: the WGS84 geodesic distance."""

    kind = "geodesic"
    description = "true metres (WGS84 geodesic)"

    @property
    def absolute_error(self) -> float:
        """GeographicLib claims 15 nanometres."""
        return 5e-8

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        from pyproj import Geod

        x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        flat_x, flat_y = x.reshape(-1, 2), y.reshape(-1, 2)
        *_, distance = Geod(ellps="WGS84").inv(*flat_x.T.copy(), *flat_y.T.copy())
        return np.asarray(distance).reshape(x.shape[:-1])


@dataclass(frozen=True, eq=False)
class Finite(Metric):
    """A metric on the indices 0..n-1 of a finite set, given by its matrix.

    The axioms are checked except the triangle inequality: a matrix that breaks
    it is still a promise per pair, only one that shortest paths would tighten.
    """

    distances: FloatArray = field(repr=False)
    kind = "finite"
    description = "the matrix distance on sites"

    def __post_init__(self) -> None:
        d = np.array(self.distances, dtype=np.float64)
        if d.ndim != 2 or d.shape[0] != d.shape[1]:
            raise InvalidInput(f"distances must be a square matrix; got shape {d.shape}")
        if np.isnan(d).any() or (d < 0).any() or (np.diag(d) != 0).any() or (d != d.T).any():
            raise InvalidInput(
                "distances must be symmetric and nonnegative, with a diagonal of zeros"
            )
        d.setflags(write=False)
        object.__setattr__(self, "distances", d)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(self.distances[self._indices(x), self._indices(y)])

    def _indices(self, sites: ArrayLike) -> NDArray[np.intp]:
        """Sites by their indices; a coordinate that is truncated would be another site."""
        index = np.asarray(sites)
        count = len(self.distances)
        whole = index.dtype.kind in "iu" or index.size == 0
        if not whole or ((index < 0) | (index >= count)).any():
            raise InvalidInput(
                f"a matrix metric takes the indices 0 to {count - 1} of its sites, as integers,"
                " not their coordinates"
            )
        return index.astype(np.intp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finite) and np.array_equal(self.distances, other.distances)

    def __hash__(self) -> int:
        return hash(self.distances.tobytes())

    def _ratio_to(self, other: Metric) -> float:
        if not isinstance(other, Finite) or other.distances.shape != self.distances.shape:
            return math.inf
        mine, theirs = self.distances, other.distances
        if (mine[theirs == 0] > 0).any():
            return math.inf
        apart = (theirs > 0) & np.isfinite(theirs)
        largest = _largest_quotient(mine[apart], theirs[apart])
        # Nothing finite is promised where theirs is infinite, if c > 0.
        return 1.0 if largest == 0 and np.isinf(mine[~apart]).any() else largest

    def to_json(self) -> dict[str, Any]:
        """The matrix, entry by entry."""
        return {"kind": self.kind, "distances": self.distances.tolist()}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        return cls(np.asarray(data["distances"], float))


@dataclass(frozen=True)
class Scaled(Metric):
    """factor * base."""

    factor: float
    base: Metric
    kind = "scaled"

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", float(self.factor))
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise InvalidInput(
                f"a metric must be scaled by a finite number > 0; got {self.factor:g}"
            )
        if isinstance(self.base, Scaled):
            object.__setattr__(self, "factor", self.factor * self.base.factor)
            object.__setattr__(self, "base", self.base.base)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return self.factor * self.base(x, y)

    @property
    def description(self) -> str:
        """Factor, then base."""
        return f"{self.factor:.6g} * {self.base.description}"

    @property
    def absolute_error(self) -> float:
        """The base's, scaled."""
        return self.factor * self.base.absolute_error

    @property
    def relative_error(self) -> float:
        """The base's, and one rounding."""
        return self.base.relative_error + 2.0**-53

    def stretched(self, scale: float) -> Metric:
        """The base's, scaled."""
        return Scaled(self.factor, self.base.stretched(scale))

    def ratio_to(self, other: Metric) -> float:
        """The base's ratio, scaled."""
        if isinstance(other, Scaled):
            return _scaled_up(self.factor, self.base.ratio_to(other.base), other.factor)
        return _scaled_up(self.factor, self.base.ratio_to(other), 1.0)

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

    @property
    def absolute_error(self) -> float:
        """Errors add up."""
        return sum(part.absolute_error for part in self.parts)

    @property
    def relative_error(self) -> float:
        """The largest of a part, and one rounding for each."""
        return max(part.relative_error for part in self.parts) + len(self.parts) * 2.0**-53

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


@dataclass(frozen=True)
class _OnTuples(Metric):
    """A metric on tuples of `size` secrets, from one on each entry (axis -2)."""

    base: Metric
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InvalidInput(f"a tuple must have a whole number >= 1 of entries; got {self.size}")

    @property
    def absolute_error(self) -> float:
        """That of every entry."""
        return self.size * self.base.absolute_error

    @property
    def relative_error(self) -> float:
        """That of an entry, and one rounding for each."""
        return self.base.relative_error + self.size * 2.0**-53

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
        return _scaled_up(self._constant(other), self.base.ratio_to(other.base), 1.0)


@dataclass(frozen=True)
class TupleSum(_OnTuples):
    """Sum over the entries: what independent reports of each entry keep."""

    kind = "tuple-sum"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(self.base(x, y).sum(axis=-1))

    @property
    def description(self) -> str:
        """Sum over entries."""
        return f"sum over {self.size} entries of {self.base.description}"

    def _constant(self, other: _OnTuples) -> float:
        return 1.0 if isinstance(other, TupleSum) else float(self.size)


@dataclass(frozen=True)
class TupleMax(_OnTuples):
    """d_inf on tuples: the largest distance of an entry."""

    kind = "tuple-max"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return np.asarray(self.base(x, y).max(axis=-1))

    @property
    def description(self) -> str:
        """Maximum over entries."""
        return f"maximum over {self.size} entries of {self.base.description}"


def coordinate_error(metric: Metric, distances: FloatArray) -> FloatArray:
    """Relative error to allow for distances that `metric` computed from coordinates."""
    with np.errstate(divide="ignore", invalid="ignore"):
        absolute = np.where(distances > 0, metric.absolute_error / distances, 0.0)
    return np.asarray(metric.relative_error + absolute)


def rounded_up(number: Fraction) -> float:
    """The least double that is at least `number`: a ratio too small would promise too much."""
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def _scaled_up(factor: float, ratio: float, divisor: float) -> float:
    """The least double that is at least factor * ratio / divisor."""
    if math.isinf(ratio):
        return math.inf
    return rounded_up(Fraction(factor) * Fraction(ratio) / Fraction(divisor))


def _largest_quotient(a: FloatArray, b: FloatArray) -> float:
    """The least double that is at least all a / b (of very many, perhaps the next one)."""
    if np.isinf(a).any():
        return math.inf
    quotients = a / b
    largest = float(quotients.max(initial=0.0))
    # The exact maximum is among those that rounding may have made equal to the largest.
    near = quotients >= largest * (1 - 2.0**-50)
    if np.count_nonzero(near) > _MOST_QUOTIENTS:
        return math.nextafter(largest, math.inf)
    pairs = zip(a[near].tolist(), b[near].tolist(), strict=True)
    return rounded_up(max((Fraction(x) / Fraction(y) for x, y in pairs), default=Fraction(0)))


_MOST_QUOTIENTS = 20_000

# Dimension-free norm inequalities, and the sphere's argument from whereish.space.sphere.
_KNOWN_RATIOS: dict[tuple[type[Metric], type[Metric]], float] = {
    (Chebyshev, Euclidean): 1.0,
    (Chebyshev, Manhattan): 1.0,
    (Euclidean, Manhattan): 1.0,
    (GreatCircle, Geodesic): 1.0,
}
