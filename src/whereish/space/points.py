"""Points: coordinates together with the space that gives them their meaning."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SpaceMismatch, shortened

__all__ = [
    "Points",
    "Space",
    "as_points",
    "checked_coordinates",
    "one_place",
    "plain_numbers",
    "seem_degrees",
    "stacked_degrees",
]


@runtime_checkable
class Space(Protocol):
    """A set of possible places with coordinates."""

    @property
    def dimension(self) -> int:
        """How many coordinates a point has."""

    @property
    def description(self) -> str:
        """The space in a few words, for messages and certificates."""

    def check(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all rows are points of this space."""


@dataclass(frozen=True, eq=False)
class Points:
    """Places in a space: an (n, dimension) array that nobody may change.

    `reproducible` marks reports whose noise came from a seed.  The text form
    shows no coordinate, so that points can stand in a log.

    >>> import whereish as wh
    >>> homes = wh.Points([[0, 0], [300, 400]], wh.Plane())
    >>> len(homes), homes
    (2, Points(2 in the plane in metres))
    """

    coordinates: FloatArray
    space: Space
    reproducible: bool = False

    def __post_init__(self) -> None:
        array = np.array(checked_coordinates(self.coordinates, self.space))
        array.setflags(write=False)
        object.__setattr__(self, "coordinates", array)

    @classmethod
    def trusted(cls, coordinates: FloatArray, space: Space, *, reproducible: bool) -> Points:
        """Points from a fresh array that is known to be right: no copy, no check."""
        points = object.__new__(cls)
        coordinates.setflags(write=False)
        object.__setattr__(points, "coordinates", coordinates)
        object.__setattr__(points, "space", space)
        object.__setattr__(points, "reproducible", reproducible)
        return points

    def __len__(self) -> int:
        return len(self.coordinates)

    def __iter__(self) -> Iterator[FloatArray]:
        return iter(self.coordinates)

    def __getitem__(self, index: Any) -> Points:
        return Points(self.coordinates[index], self.space, self.reproducible)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy:
            return np.array(self.coordinates, dtype=dtype)
        return np.asarray(self.coordinates, dtype=dtype)

    def __repr__(self) -> str:
        mark = ", reproducible" if self.reproducible else ""
        return f"Points({len(self)} in {shortened(self.space.description)}{mark})"


def checked_coordinates(places: Points | ArrayLike, space: Space) -> FloatArray:
    """The (n, dimension) array of `places`, each a point of `space`; nothing is copied in vain.

    Points of another space are refused, never converted in silence.
    """
    if isinstance(places, Points):
        if places.space != space:
            raise SpaceMismatch(
                f"points are in {places.space.description}, the mechanism works in"
                f" {space.description}; convert them through degrees, with"
                " to_degrees(...) of the one space and from_degrees(...) of the other"
            )
        return places.coordinates
    array = plain_numbers(places, f"points of {space.description}")
    if array.ndim == 1:
        array = array[:, None] if space.dimension == 1 else array[None, :]
    if array.ndim != 2 or array.shape[1] != space.dimension:
        raise InvalidInput(
            f"points of {space.description} must be an (n, {space.dimension}) array;"
            f" got shape {np.shape(places)}"
        )
    finite = np.isfinite(array)
    if not finite.all():
        bad = int((~finite.all(axis=1)).sum())
        raise InvalidInput(
            f"coordinates must be finite numbers; {bad} of {len(array)} points have NaN or"
            " infinity: drop or repair those rows first"
        )
    space.check(array)
    return array


def one_place(places: Any, bounds: tuple[float, float]) -> tuple[float, float] | None:
    """The one place that `places` plainly is, each coordinate at most its bound in size.

    None for all else, also for what is not allowed: :func:`checked_coordinates` takes or
    refuses that.  Looking at plain numbers costs a microsecond, an array's checks many.
    """
    if type(places) is np.ndarray:
        if places.size != 2 or places.dtype != np.float64 or places.ndim > 2:
            return None
        places = places.tolist()
    if type(places) in (list, tuple) and len(places) == 1:
        places = places[0]
    if type(places) not in (list, tuple) or len(places) != 2:
        return None
    x, y = places
    if type(x) is not float or type(y) is not float:
        return None
    # NaN compares false.
    return (x, y) if abs(x) <= bounds[0] and abs(y) <= bounds[1] else None


def plain_numbers(values: ArrayLike, name: str) -> FloatArray:
    """`values` as doubles; text, complex numbers and masked entries are refused unquoted.

    Text is never parsed here: Python and numpy would read "1_1" as 11 and "١" as 1.
    """
    if np.ma.is_masked(values):
        raise InvalidInput(f"{name} must have no masked entries: drop or fill those first")
    with contextlib.suppress(ArithmeticError, TypeError, ValueError):
        array = np.asarray(values)
        text = array.dtype.kind == "O" and any(isinstance(e, str | bytes) for e in array.flat)
        if array.dtype.kind in "biufO" and not text:
            return np.ascontiguousarray(array, dtype=np.float64)
    # Not in a handler: the original, which may quote a coordinate, would be the error's context.
    raise InvalidInput(f"{name} must be numbers; got something else")


def stacked_degrees(lon: ArrayLike, lat: ArrayLike) -> FloatArray:
    """(n, 2) degrees, longitude first."""
    x, y = plain_numbers(lon, "longitudes"), plain_numbers(lat, "latitudes")
    return np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(-1, 2)


def as_points(places: Points | ArrayLike, space: Space) -> Points:
    """`places` as points of `space`; plain numbers are read in its coordinates."""
    return (
        places
        if isinstance(places, Points) and places.space == space
        else Points(checked_coordinates(places, space), space)
    )


def seem_degrees(coordinates: ArrayLike, nats: float) -> bool:
    """Whether numbers that should be metres are rather degrees.

    They are if all are within 360 and the promise holds all places together within half a
    nat of each other (odds change by at most 1.65): nobody asks that reports tell no two
    places apart, but longitudes and latitudes read as metres look so.
    """
    numbers = np.asarray(coordinates, float)
    return bool(np.abs(numbers).max(initial=0.0) <= 360.0 and 0.0 < nats < 0.5)
