"""Sites and each user's prior from raw points: the data pipeline of Bordenabe's thesis.

Section 6.2.1 of *Measuring privacy with distinguishability metrics* (2014) takes the traces of
182 users of GeoLife in Beijing, on cells of 658 x 712 m: the 90 days on which each user
recorded most, one visit per user, region and hour, the 50 regions that most users have among
their own 30 most visited, and the users with at least 20 visits in each period of the day,
before the choice of regions (116 of them) and after it (86).

A prior made from private data is itself a release of that data: nothing here carries noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.data.visits import PERIODS, Visits
from whereish.errors import InvalidInput
from whereish.space.points import Points
from whereish.space.raster import Raster
from whereish.space.sites import Sites

__all__ = ["ALL_DAY", "UserPriors", "user_priors"]

ALL_DAY = "all day"


@dataclass(frozen=True, eq=False)
class UserPriors:
    """What :func:`user_priors` found.

    Attributes
    ----------
    sites
        The chosen regions, as the centres of their cells.
    cells
        Their flat indices on the raster.
    users
        The labels of the users who were kept, as they were given.
    priors
        By period ("all day", "morning", "afternoon", "night"): each user's prior on the sites,
        one row per user.
    everyone
        By period: the prior of all kept users' visits together.
    funnel
        How many users there were, how many had enough visits, and how many had enough to the
        sites.
    """

    sites: Sites
    cells: NDArray[np.intp]
    users: tuple[object, ...]
    priors: Mapping[str, FloatArray]
    everyone: Mapping[str, FloatArray]
    funnel: tuple[int, int, int]

    def __repr__(self) -> str:
        given, before, after = self.funnel
        return f"UserPriors({len(self.cells)} sites, users {given} -> {before} -> {after})"


def user_priors(
    locations: Points | ArrayLike,
    grid: Raster,
    *,
    users: ArrayLike,
    times: ArrayLike,
    days: int = 90,
    least: int = 20,
    top: int = 30,
    count: int = 50,
) -> UserPriors:
    """Sites and users' priors per period, from points with a user and a local time each.

    Parameters
    ----------
    locations, grid, users, times
        As for :meth:`whereish.Visits.of`.
    days
        Of each user, the days with most points on the grid.
    least
        A user must have so many visits (one per region and hour) in each period, before and
        after the choice of regions.
    top, count
        The `count` regions that most users have among their own `top` most visited.

    Raises
    ------
    InvalidInput
        No user has enough visits.

    Examples
    --------
    >>> import numpy as np
    >>> import whereish as wh
    >>> hours = np.arange("2024-03-01T00", "2024-04-01T00", dtype="datetime64[h]")
    >>> x = np.where(hours.astype(int) % 24 < 12, 100.0, 600.0)
    >>> known = wh.user_priors(
    ...     np.column_stack([x, np.full(x.size, 100.0)]),
    ...     wh.Raster(1, 2, (500, 500)), users=["ann"] * x.size, times=hours)
    >>> known.priors["morning"].tolist(), known.users
    ([[1.0, 0.0]], ('ann',))
    """
    labels = np.unique(np.asarray(users))
    visits = Visits.of(locations, grid, users=users, times=times, days=days)
    given = len(labels)
    enough = _with_enough(visits, given, least)
    kept = visits.by(enough)
    if not enough.size:
        raise InvalidInput(
            f"no user of {given} has {least} visits on the grid in each of the periods"
            f" {', '.join(PERIODS)}: lower `least`, or is the grid elsewhere?"
        )
    cells = kept.popular(count, top=top)
    here = kept.among(cells)
    final = _with_enough(here, given, least)
    if not final.size:
        raise InvalidInput(
            f"no user of {enough.size} has {least} visits to the {cells.size} chosen regions in"
            " each period: choose more of them, or lower `least`"
        )
    of_period = {name: _counts(part, final, cells.size) for name, part in _periods(here).items()}
    return UserPriors(
        Sites(Points(grid.centres()[cells], grid.plane)),
        cells,
        tuple(labels[final].tolist()),
        {name: counts / counts.sum(axis=1, keepdims=True) for name, counts in of_period.items()},
        {name: counts.sum(axis=0) / counts.sum() for name, counts in of_period.items()},
        (given, enough.size, final.size),
    )


def _periods(visits: Visits) -> dict[str, Visits]:
    return {ALL_DAY: visits, **{name: visits.during(name) for name in PERIODS}}


def _with_enough(visits: Visits, users: int, least: int) -> NDArray[np.intp]:
    """Users with at least `least` visits in every period."""
    parts = [np.bincount(v.user, minlength=users) >= least for v in _periods(visits).values()]
    return np.flatnonzero(np.all(parts, axis=0))


def _counts(visits: Visits, users: NDArray[np.intp], places: int) -> FloatArray:
    """Visits of each user to each place."""
    mine = visits.by(users)
    row = np.searchsorted(users, mine.user)
    flat = np.bincount(row * places + mine.place, minlength=users.size * places)
    return flat.reshape(users.size, places).astype(np.float64)
