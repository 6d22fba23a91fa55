"""The thesis's pipeline against a plain recount in dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

import whereish as wh
from whereish.data.user_priors import UserPriors, user_priors
from whereish.errors import InvalidInput

RASTER = wh.Raster(6, 5, (658.0, 712.0))
PERIODS = {
    "all day": range(24),
    "morning": range(7, 12),
    "afternoon": range(12, 19),
    "night": [*range(19, 24), *range(7)],
}


def people(rng: np.random.Generator, users: int, points: int) -> tuple[np.ndarray, ...]:
    """Users with homes, odd habits, very different amounts of data, and points off the grid."""
    who = rng.choice(users, points, p=rng.dirichlet(np.full(users, 0.8)))
    home = rng.uniform(0, [5 * 658, 6 * 712], (users, 2))
    where = home[who] + rng.standard_t(2, (points, 2)) * 700
    start = np.datetime64("2024-01-01T00:00")
    day = rng.geometric(0.02, points)
    clock = np.clip(rng.normal(13, 6, points), 0, 23.99) * 60
    when = start + (day * 1440 + clock).astype("timedelta64[m]")
    return where, who, when


def recount(
    where: np.ndarray,
    who: np.ndarray,
    when: np.ndarray,
    days: int,
    least: int,
    top: int,
    count: int,
) -> tuple[list[int], list[int], dict[str, np.ndarray], tuple[int, int, int]]:
    """The same in loops, from the words of the thesis alone."""
    rows = []
    for (x, y), user, time in zip(where, who.tolist(), when.tolist(), strict=True):
        if 0 <= x <= 5 * 658 and 0 <= y <= 6 * 712:
            cell = min(int(y // 712), 5) * 5 + min(int(x // 658), 4)
            rows.append((user, cell, time.date(), time.hour))
    busy = defaultdict(Counter)
    for user, _, day, _ in rows:
        busy[user][day] += 1
    chosen = {u: set(sorted(c, key=lambda d: (-c[d], d))[:days]) for u, c in busy.items()}
    visits = sorted({row for row in rows if row[2] in chosen[row[0]]})

    def enough(some: list) -> list[int]:
        counts = Counter((u, p) for u, _, _, h in some for p in PERIODS if h in PERIODS[p])
        return [u for u in sorted(busy) if all(counts[u, p] >= least for p in PERIODS)]

    before = enough(visits)
    kept = [row for row in visits if row[0] in before]
    score, total = Counter(), Counter(cell for _, cell, _, _ in kept)
    for u in before:
        mine = Counter(cell for user, cell, _, _ in kept if user == u)
        score.update(sorted(mine, key=lambda c: (-mine[c], c))[:top])
    cells = sorted(sorted(score, key=lambda c: (-score[c], -total[c], c))[:count])
    here = [row for row in kept if row[1] in cells]
    after = enough(here)
    priors = {}
    for p, clock in PERIODS.items():
        found = np.zeros((len(after), len(cells)))
        for u, cell, _, hour in here:
            if u in after and hour in clock:
                found[after.index(u), cells.index(cell)] += 1
        priors[p] = found / found.sum(axis=1, keepdims=True)
    return cells, after, priors, (len(np.unique(who)), len(before), len(after))


@pytest.mark.parametrize("seed", range(5))
def test_the_pipeline_is_the_plain_recount(seed):
    rng = np.random.default_rng(seed)
    where, who, when = people(rng, 12, 6000)
    sizes = {"days": 40, "least": 20, "top": 4, "count": 12}
    found = user_priors(where, RASTER, users=who, times=when, **sizes)
    cells, after, priors, funnel = recount(where, who, when, **sizes)
    assert found.cells.tolist() == cells
    assert list(found.users) == after
    assert found.funnel == funnel
    assert funnel[0] > funnel[1] >= funnel[2] > 1
    for period, prior in priors.items():
        np.testing.assert_allclose(found.priors[period], prior, rtol=1e-15)
        np.testing.assert_allclose(found.everyone[period].sum(), 1.0)
    np.testing.assert_array_equal(found.sites.points.coordinates, RASTER.centres()[cells])
    # Each step counts: without it, another result.
    for changed in ({"days": 3}, {"least": 60}, {"top": 30}, {"count": 9}):
        try:
            other = user_priors(where, RASTER, users=who, times=when, **{**sizes, **changed})
        except InvalidInput:
            continue  # nobody has enough then
        same = other.funnel == found.funnel and other.cells.tolist() == found.cells.tolist()
        assert not (same and np.array_equal(other.priors["night"], found.priors["night"]))


def test_the_thesis_s_numbers_are_the_defaults():
    import inspect

    defaults = {n: p.default for n, p in inspect.signature(user_priors).parameters.items()}
    assert (defaults["days"], defaults["least"]) == (90, 20)
    assert (defaults["top"], defaults["count"]) == (30, 50)
    popular = inspect.signature(wh.Visits.popular).parameters
    assert (popular["count"].default, popular["top"].default) == (50, 30)


def test_users_without_enough_are_refused():
    hours = np.arange("2024-03-01T00", "2024-03-11T00", dtype="datetime64[h]")
    spots = np.full((hours.size, 2), 100.0)
    with pytest.raises(InvalidInput, match="no user of 1 has 60 visits on the grid"):
        user_priors(spots, RASTER, users=["a"] * hours.size, times=hours, least=60)
    assert user_priors(spots, RASTER, users=["a"] * hours.size, times=hours).funnel == (1, 1, 1)
    for days in (0, -1):
        with pytest.raises(InvalidInput, match="days must be"):
            user_priors(spots, RASTER, users=["a"] * hours.size, times=hours, days=days)
    # Enough at first, but spread over more regions than are chosen.
    wander = RASTER.centres()[np.arange(hours.size) % 30]
    with pytest.raises(InvalidInput, match="chosen regions"):
        user_priors(wander, RASTER, users=["a"] * hours.size, times=hours, count=2)


def test_among_counts_places_anew():
    hours = np.datetime64("2024-05-01T00") + np.arange(4).astype("timedelta64[h]")
    visits = wh.Visits.of(RASTER.centres()[[3, 7, 7, 9]], RASTER, users=[1] * 4, times=hours)
    assert visits.among([9, 7]).counts().tolist() == [1, 2]


def test_two_people_of_beijing(data_file):
    import pyarrow.parquet as pq

    table = pq.read_table(data_file("geolife_beijing_skmob_2users.parquet"))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    names = {name.lower(): name for name in columns}
    lon, lat = (columns[names[k]] for k in ("lon", "lat"))
    when = next(c for k, c in columns.items() if "time" in k.lower())
    user = next(c for k, c in columns.items() if k.lower() in ("uid", "user"))
    region = wh.Box(116.2, 39.85, 116.55, 40.1)
    inside = region.contains(np.c_[lon, lat])
    plane = wh.Plane.over(region)
    points = plane.from_degrees(lon[inside], lat[inside])
    corner = plane.from_degrees([116.22], [39.86]).coordinates[0]
    raster = wh.Raster(30, 40, (658.0, 712.0), (corner[0], corner[1]), plane)
    times = when.astype("datetime64[s]")[inside] + np.timedelta64(8, "h")  # local time
    found = user_priors(points, raster, users=user[inside], times=times)
    assert isinstance(found, UserPriors)
    assert found.funnel[0] == 2
    assert found.funnel[2] >= 1
    assert 30 <= len(found.cells) <= 50
    fewer = wh.Visits.of(points, raster, users=user[inside], times=times).popular(50, top=10)
    assert len(fewer) <= 20 < len(found.cells)
    for prior in found.priors.values():
        np.testing.assert_allclose(prior.sum(axis=1), 1.0)
