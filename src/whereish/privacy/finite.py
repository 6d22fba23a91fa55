"""Metrics on a finite set, given by their matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.metric import Metric, rounded_up

__all__ = ["SAME", "Finite"]

SAME = 1e-9
"""Relative: distances this close to each other are taken to be the same."""

_MOST_QUOTIENTS = 20_000


@dataclass(frozen=True, eq=False)
class Finite(Metric):
    """A metric on the indices 0..n-1 of a finite set, given by its matrix.

    The axioms are checked except the triangle inequality: a matrix that breaks
    it is still a promise per pair, only one that shortest paths would tighten.

    >>> import numpy as np
    >>> import whereish as wh
    >>> hops = wh.Finite(np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    >>> float(hops(0, 2))
    2.0
    >>> hops
    Finite(3 sites)
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

    def __repr__(self) -> str:
        return f"Finite({len(self.distances)} sites)"

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
