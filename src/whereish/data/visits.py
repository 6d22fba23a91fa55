"""Priors from data: how likely each place of a declared grid is.

Bordenabe's thesis (section 6.2.1) counts the visits to each region of a grid, at most
one per user, region and hour, so that somebody who stays long does not outweigh all
others; splits them by time of day; and keeps the regions that are most popular, judged
by how many users have them among their own most visited.
:func:`~whereish.data.user_priors.user_priors` does all of it in one call.

A prior made from private data is itself a release of that data: these counts carry no
noise.  Use public or consented data, or noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.space.points import Points, checked_coordinates
from whereish.space.raster import Raster
from whereish.space.sites import Sites

__all__ = ["PERIODS", "Visits"]

PERIODS = {"morning": (7, 12), "afternoon": (12, 19), "night": (19, 7)}
"""Hours of the day from (included) to (excluded), in the times' own clock."""


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits of users to the places of a declared grid.

    Attributes
    ----------
    places : int
        How many places the grid has.
    place, user, hour : arrays
        Of each visit: index of the place, index of the user, whole hours since the epoch.
    outside : int
        How many visits fell outside the grid and were left out.

    Examples
    --------
    >>> import whereish as wh
    >>> visits = wh.Visits.of(
    ...     [[100, 100], [600, 100], [700, 200]],
    ...     wh.Raster(1, 2, (500, 500)),
    ...     users=["a", "a", "b"],
    ...     times=["2024-03-01T08", "2024-03-01T09", "2024-03-01T21"],
    ... )
    >>> visits.counts().tolist(), len(visits.during("night"))
    ([1, 2], 1)
    """

    places: int
    place: NDArray[np.intp]
    user: NDArray[np.intp]
    hour: IntArray
    outside: int = 0

    @classmethod
    def of(
        cls,
        locations: Points | ArrayLike,
        grid: Raster | Sites,
        *,
        users: ArrayLike,
        times: ArrayLike,
        once_per_hour: bool = True,
        days: int | None = None,
    ) -> Visits:
        """Assign locations, in the grid's space, to its places.

        `times` are datetime64 (or ISO text) in local time.  Locations outside a raster are
        left out; those of sites go to the nearest.  With `days`, each user keeps so many days:
        those with most locations on the grid (the earlier of two alike).
        """
        space = grid.plane if isinstance(grid, Raster) else grid.points.space
        coordinates = checked_coordinates(locations, space)
        _, user = np.unique(np.asarray(users), return_inverse=True)
        hour = _hours(times)
        if not len(coordinates) == user.size == hour.size:
            raise InvalidInput(
                "locations, users and times must be equally many; got"
                f" {len(coordinates)}, {user.size} and {hour.size}"
            )
        place, inside = _assigned(coordinates, grid)
        visits = np.stack([place, user.ravel(), hour], axis=1)[inside]
        if days is not None:
            visits = visits[_busiest(visits[:, 1], visits[:, 2] // 24, days)]
        if once_per_hour:
            visits = np.unique(visits, axis=0)
        return cls(
            len(grid),
            visits[:, 0].astype(np.intp),
            visits[:, 1].astype(np.intp),
            visits[:, 2].astype(np.int64),
            int((~inside).sum()),
        )

    def __len__(self) -> int:
        return self.place.size

    def __repr__(self) -> str:
        return f"Visits({len(self)} to {self.places} places, {self.outside} outside)"

    def during(self, period: str) -> Visits:
        """The visits of the 'morning' (7-12), 'afternoon' (12-19) or 'night' (19-7)."""
        if period not in PERIODS:
            raise InvalidInput(f"period must be one of {', '.join(PERIODS)}; got {period!r}")
        start, end = PERIODS[period]
        clock = self.hour % 24
        kept = (clock >= start) & (clock < end) if start < end else (clock >= start) | (clock < end)
        return self._where(kept)

    def by(self, users: ArrayLike) -> Visits:
        """The visits of some users, by their index."""
        return self._where(np.isin(self.user, np.asarray(users)))

    def among(self, places: ArrayLike) -> Visits:
        """The visits to some places, which are then counted from 0 in the given order."""
        chosen = np.asarray(places, np.intp)
        index = np.full(self.places, -1, np.intp)
        index[chosen] = np.arange(chosen.size)
        kept = self._where(index[self.place] >= 0)
        return replace(kept, places=chosen.size, place=index[kept.place])

    def counts(self) -> IntArray:
        """Visits of each place."""
        return np.bincount(self.place, minlength=self.places)

    def prior(self) -> FloatArray:
        """Share of each place in all visits."""
        if not len(self):
            raise InvalidInput("there are no visits on the grid, so there is no prior")
        return np.asarray(self.counts() / len(self))

    def popular(self, count: int = 50, *, top: int = 30) -> NDArray[np.intp]:
        """The `count` places that most users have among their own `top` most visited.

        Ties go to the place with more visits.  Returned in increasing order.
        """
        if count < 1 or top < 1:
            raise InvalidInput(f"count and top must be at least 1; got {count} and {top}")
        listed = _most_frequent(self.user, self.place, top)[:, 1]
        fans = np.bincount(listed, minlength=self.places)
        best = np.lexsort((np.arange(self.places), -self.counts(), -fans))[:count]
        return np.sort(best[fans[best] > 0]).astype(np.intp)

    def _where(self, kept: NDArray[np.bool_]) -> Visits:
        return Visits(self.places, self.place[kept], self.user[kept], self.hour[kept], self.outside)


def _most_frequent(user: NDArray[Any], thing: NDArray[Any], most: int) -> NDArray[Any]:
    """Pairs (user, thing): of each user the `most` things that it has most often."""
    pairs, often = np.unique(np.stack([user, thing], axis=1), axis=0, return_counts=True)
    ranked = pairs[np.lexsort((pairs[:, 1], -often, pairs[:, 0]))]
    first = np.searchsorted(ranked[:, 0], ranked[:, 0])
    return np.asarray(ranked[np.arange(len(ranked)) - first < most])


def _busiest(user: NDArray[Any], day: NDArray[Any], days: int) -> NDArray[np.bool_]:
    """Which rows fall on one of their user's `days` busiest days."""
    if days < 1:
        raise InvalidInput(f"days must be at least 1; got {days}")
    kept = _most_frequent(user, day, days)
    _, rows = np.unique(np.vstack([kept, np.stack([user, day], 1)]), axis=0, return_inverse=True)
    rows = rows.ravel()
    return np.isin(rows[len(kept) :], rows[: len(kept)])


def _hours(times: ArrayLike) -> IntArray:
    """Whole hours since the epoch; bare numbers are refused, since their unit would be a guess."""
    given = np.asarray(times)
    try:
        if given.dtype.kind not in "MUO" or any(
            isinstance(time, Real) for time in (given.flat if given.dtype.kind == "O" else ())
        ):
            raise TypeError
        moments = given.astype("datetime64[h]")
    except (TypeError, ValueError):
        raise InvalidInput("times must be dates with times of day; got something else") from None
    missing = int(np.isnat(moments).sum())
    if missing:
        raise InvalidInput(
            f"every visit must have a time; {missing} of {moments.size} have none: drop those first"
        )
    return moments.astype(np.int64)


def _assigned(
    coordinates: FloatArray, grid: Raster | Sites
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    if isinstance(grid, Raster):
        return grid.locate(coordinates), grid.box.contains(coordinates)
    return grid.nearest(coordinates), np.ones(len(coordinates), dtype=np.bool_)
