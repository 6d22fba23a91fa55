"""Users for chapter 6's pipeline: made up, and check-ins in New York where these are present.

The thesis takes 182 users of GeoLife in Beijing on cells of 658 x 712 m and keeps 50 regions and 86
users.  Two of those users are here at most, so the pipeline runs on others: people who live at
one place, work at another and go out to a few, hour by hour for ninety days, with more of them in
the middle of the city.
"""

from __future__ import annotations

import numpy as np
from pyarrow import parquet

from whereish.data.user_priors import UserPriors, user_priors
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.studies.framework.study import real_data

__all__ = ["CELL_M", "GRID", "checked_in_users", "made_up_users"]

CELL_M = (658.0, 712.0)
GRID = Raster(12, 13, CELL_M)


def made_up_users(users: int, random: np.random.Generator) -> UserPriors:
    """Sites and priors of people who do not exist."""
    middle = np.array([GRID.columns * CELL_M[0], GRID.rows * CELL_M[1]]) / 2
    low, high = np.array([10.0, 10.0]), 2 * middle - 10

    def around(spread: float, count: int) -> np.ndarray:
        return np.clip(middle + random.normal(0, spread, (count, 2)), low, high)

    homes, works = around(2200.0, users), around(1300.0, users)
    days = 90
    hours = np.arange(days * 24)
    clock = hours % 24
    weekday = (hours // 24) % 7 < 5
    where, who, when = [], [], []
    start = np.datetime64("2024-01-01T00", "h")
    for user in range(users):
        haunts = around(1800.0, 4)
        kind = np.where((clock >= 9) & (clock < 17) & weekday, 1, 0)
        out = ((clock >= 17) & (clock < 23)) | (~weekday & (clock >= 10) & (clock < 20))
        away = out & (random.random(hours.size) < 0.5)
        place = np.where(kind[:, None] == 1, works[user], homes[user])
        place = np.where(away[:, None], haunts[random.integers(0, 4, hours.size)], place)
        recorded = random.random(hours.size) < random.uniform(0.1, 0.5)
        where.append(
            np.clip(place[recorded] + random.normal(0, 150, (recorded.sum(), 2)), low, high)
        )
        who.append(np.full(int(recorded.sum()), user))
        when.append(start + hours[recorded].astype("timedelta64[h]"))
    return user_priors(
        np.concatenate(where), GRID, users=np.concatenate(who), times=np.concatenate(when)
    )


def checked_in_users() -> UserPriors | None:
    """Check-ins on the same cells in Manhattan, fewer visits asked for; None where absent."""
    path = real_data("gowalla_nyc_checkins.parquet")
    if path is None:
        return None
    table = parquet.read_table(path, columns=["user", "time", "lon", "lat"])
    plane = Plane.around(-73.985, 40.745, "15 km")
    degrees = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    assert plane.region is not None
    inside = plane.region.contains(degrees)
    places = plane.from_degrees(*degrees[inside].T)
    grid = Raster(12, 13, CELL_M, (-13 * CELL_M[0] / 2, -12 * CELL_M[1] / 2), plane)
    local = table["time"].to_numpy()[inside].astype("datetime64[s]") - np.timedelta64(5, "h")
    return user_priors(places, grid, users=table["user"].to_numpy()[inside], times=local, least=10)
