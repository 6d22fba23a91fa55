"""Boxes: declared rectangular regions, in the coordinates of a space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.points import plain_numbers

__all__ = ["Box"]


@dataclass(frozen=True, slots=True)
class Box:
    """The closed rectangle [x_low, x_high] x [y_low, y_high].

    A region is declared by people, never computed from the data it guards: the
    extent of a data set is itself a fact about somebody.

    >>> import numpy as np
    >>> import whereish as wh
    >>> paris = wh.Box(2.2, 48.8, 2.5, 48.9)
    >>> paris.contains(np.array([[2.35, 48.85], [4.8, 45.7]])).tolist()
    [True, False]
    """

    x_low: float
    y_low: float
    x_high: float
    y_high: float

    def __post_init__(self) -> None:
        # Plain floats, whatever they were given as: digests and files must not see the type.
        bounds = plain_numbers(self.bounds, "the four bounds of a box").tolist()
        for name, bound in zip(("x_low", "y_low", "x_high", "y_high"), bounds, strict=True):
            object.__setattr__(self, name, bound)
        if not np.isfinite(bounds).all():
            raise InvalidInput("a box must have four finite bounds")
        if not (self.x_low < self.x_high and self.y_low < self.y_high):
            raise InvalidInput(
                "a box must have x_low < x_high and y_low < y_high; got"
                f" x {self.x_low:g}..{self.x_high:g}, y {self.y_low:g}..{self.y_high:g}"
            )

    @classmethod
    def of(cls, value: Box | Sequence[float] | None) -> Box | None:
        """A box from itself, or from its four bounds: (west, south, east, north) in degrees.

        >>> Box.of((2.2, 48.8, 2.5, 48.9)).width > 0
        True
        """
        if value is None or isinstance(value, Box):
            return value
        if np.shape(value) != (4,):
            raise InvalidInput(
                "a bbox must be a Box or its four bounds, (west, south, east, north); got"
                f" {type(value).__name__}"
            )
        return cls(*value)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x_low, y_low, x_high, y_high)."""
        return self.x_low, self.y_low, self.x_high, self.y_high

    @property
    def width(self) -> float:
        """Extent along x."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """Extent along y."""
        return self.y_high - self.y_low

    def contains(self, coordinates: FloatArray) -> NDArray[np.bool_]:
        """Which rows lie in the box."""
        x, y = coordinates[..., 0], coordinates[..., 1]
        inside: NDArray[np.bool_] = (
            (self.x_low <= x) & (x <= self.x_high) & (self.y_low <= y) & (y <= self.y_high)
        )
        return inside

    def contains_degrees(self, coordinates: FloatArray) -> NDArray[np.bool_]:
        """Which rows lie in the box, where longitudes 360 degrees apart are one.

        A box from 170 to 190 holds -175.
        """
        wrapped = np.array(coordinates, dtype=np.float64)
        turns = np.ceil((self.x_low - wrapped[:, 0]) / 360.0)
        with np.errstate(invalid="ignore"):
            moved = wrapped[:, 0] + 360.0 * turns
        outside = ~((self.x_low <= wrapped[:, 0]) & (wrapped[:, 0] <= self.x_high))
        wrapped[outside, 0] = moved[outside]
        return self.contains(wrapped)

    def clamp(self, coordinates: FloatArray) -> FloatArray:
        """The closest point of the box to each row (Euclidean)."""
        return np.clip(coordinates, (self.x_low, self.y_low), (self.x_high, self.y_high))
