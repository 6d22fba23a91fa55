"""Users of chapters with check-ins: New York's where these are present, made up otherwise.

The paper takes users of Gowalla in Los Angeles, in a box of 40 x 30 km.  Here the box has the same
extent around Manhattan and, of the users with check-ins inside, those are taken whose numbers of
check-ins there are nearest to the wanted ones (ties: the lower id).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from whereish.arrays import FloatArray
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.studies.framework.study import real_data

__all__ = ["HEIGHT_M", "WIDTH_M", "Users", "users_with"]

WIDTH_M, HEIGHT_M = 40_000.0, 30_000.0
_MIDDLE = (-73.95, 40.75)


@dataclass(frozen=True)
class Users:
    """Places of some users on one plane, around its origin, and where they come from."""

    plane: Plane
    places: tuple[FloatArray, ...]
    source: str

    def raster(self, cell_m: float) -> Raster:
        """The box in square cells."""
        columns, rows = int(WIDTH_M / cell_m), int(HEIGHT_M / cell_m)
        return Raster(rows, columns, (cell_m, cell_m), (-WIDTH_M / 2, -HEIGHT_M / 2), self.plane)


def users_with(wanted: tuple[int, ...], random: np.random.Generator) -> Users:
    """Users whose numbers of check-ins in the box are nearest to `wanted`."""
    path = real_data("gowalla_nyc_checkins.parquet")
    if path is None:
        return Users(Plane(), tuple(_made_up(n, random) for n in wanted), "made-up check-ins")
    table = parquet.read_table(path, columns=["user", "lon", "lat"])
    plane = Plane.around(*_MIDDLE, "26 km")
    assert plane.region is not None
    degrees = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    near = plane.region.contains(degrees)
    places = plane.from_degrees(*degrees[near].T).coordinates
    users = table["user"].to_numpy()[near]
    inside = (np.abs(places[:, 0]) < WIDTH_M / 2) & (np.abs(places[:, 1]) < HEIGHT_M / 2)
    users, places = users[inside], places[inside]
    chosen = _nearest_counts(users, wanted)
    return Users(plane, tuple(places[users == user] for user in chosen), "check-ins in New York")


def _nearest_counts(users: NDArray[np.int64], wanted: tuple[int, ...]) -> list[int]:
    ids, counts = np.unique(users, return_counts=True)
    chosen: list[int] = []
    for count in wanted:
        free = ~np.isin(ids, chosen)
        away = np.where(free, np.abs(counts - count), np.iinfo(np.int64).max)
        chosen.append(int(ids[np.argmin(away)]))
    return chosen


def _made_up(count: int, random: np.random.Generator) -> FloatArray:
    """Somebody who is mostly around three haunts."""
    haunts = random.uniform([-9000, -7000], [9000, 7000], (3, 2))
    which = random.choice(3, count, p=[0.5, 0.3, 0.2])
    places = haunts[which] + random.normal(0, 700, (count, 2))
    limit = np.array([WIDTH_M, HEIGHT_M]) / 2 - 1
    return np.asarray(np.clip(places, -limit, limit))
