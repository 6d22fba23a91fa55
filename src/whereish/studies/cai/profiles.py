"""PriLocation: the slides' small tables, the budget, and errors against eps on two levels.

The slides walk through profiles of three users at four places, [3,4,0,0; 4,4,1,0; 0,0,4,3], and a
profile <2,3,4,1>; they print the shares of the budget and no errors.  Here both go through the
mechanism as published and as proven.  Distance errors and non-zero counts are measured on a
city and on a district: New York check-ins where these are present, made-up ones otherwise.
"""

from __future__ import annotations

import numpy as np
from pyarrow import parquet

from whereish.arrays import FloatArray, IntArray
from whereish.publish.profiles.baselines import NaiveProfiles
from whereish.publish.profiles.counts import ProfileRelease, Profiles
from whereish.publish.profiles.error import distance_error
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.prilocation import PriLocation
from whereish.space.box import Box
from whereish.space.raster import Raster
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study, in_turn, real_data

__all__ = ["STUDY", "checkins"]

_TABLE = np.array([[3, 4, 0, 0], [4, 4, 1, 0], [0, 0, 4, 3]])
_PROFILE = np.array([[2, 3, 4, 1]])
_CITY, _DISTRICT = Box(-74.27, 40.47, -73.69, 40.93), Box(-74.02, 40.70, -73.93, 40.80)
_LEVELS = (("city", _CITY, 5), ("district", _DISTRICT, 6))
_EPSILONS = (0.1, 0.5, 1.0)


def _of_table(table: IntArray) -> Profiles:
    """Users by four places, 1 km apart in a square."""
    level = PlaceLevel.of_raster("four places", Raster(2, 2, (1000.0, 1000.0)))
    user, site = np.nonzero(table)
    return Profiles.counted(level, len(table), user, site, table[user, site])


def _small(run: Run) -> None:
    rows = []
    for table in (_TABLE, _PROFILE):
        profiles = _of_table(table)
        for selection in ("published", "proven"):
            mechanism = PriLocation(profiles.level, 1.0, clusters=2, selection=selection)
            released = mechanism.publish(profiles, rng=run.rng).profiles
            rows.append((_words(table), selection, _words(released.table(0, len(table)))))
    run.table("The slides' profiles, released once at eps = 1", ("true", "selection", "out"), rows)


def _words(table: IntArray) -> str:
    return "; ".join(",".join(map(str, row)) for row in np.asarray(table).tolist())


def _budget(run: Run) -> None:
    profiles = _of_table(_TABLE)
    release = PriLocation(profiles.level, 1.0, clusters=2).publish(profiles, rng=run.rng)
    shares = {"clustering": 0.0, "cluster weights": 0.0, "selection": 0.0}
    for name, amount in release.spending:
        shares[name.partition(",")[0]] += float(amount)
    for name, key in (
        ("clustering", "clustering"),
        ("cluster weights", "weights"),
        ("selection", "selection"),
    ):
        run.compare(key, shares[name])


def checkins(run: Run) -> tuple[IntArray, FloatArray, str]:
    """Users and degrees of check-ins in New York, and where they come from."""
    path = real_data("gowalla_nyc_checkins.parquet")
    if path is not None:
        table = parquet.read_table(path, columns=["user", "lon", "lat"])
        places = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
        return table["user"].to_numpy(), places, "check-ins in New York"
    random = np.random.default_rng(run.study.seed)
    users = np.repeat(np.arange(5000), random.geometric(1 / 20, 5000))
    anchors = np.array([-73.985, 40.745]) + random.normal(0, [0.04, 0.03], (5000, 2))
    places = anchors[users] + random.normal(0, 0.01, (len(users), 2))
    return users, _CITY.clamp(places), "made-up check-ins (the real ones are not here)"


def _releases(level: PlaceLevel, epsilon: float) -> dict[str, PriLocation | NaiveProfiles]:
    return {
        "noise on every count": NaiveProfiles(level, epsilon),
        "PriLocation as published": PriLocation(
            level, epsilon, update="published", selection="published"
        ),
        "PriLocation, no clusters": PriLocation(level, epsilon, clusters=None),
    }


def _errors(run: Run) -> None:
    users, places, source = checkins(run)
    most_users, sampled = (800, 60) if run.quick else (10**9, 300)
    rows: list[tuple[object, ...]] = []
    drawn = panels(2, width=5.0)
    for axes, (name, box, length) in zip(drawn, _LEVELS, strict=True):
        level = PlaceLevel.of_geohash(name, box, length)
        inside = box.contains(places)
        everyone = np.unique(users[inside])[:most_users]
        inside &= np.isin(users, everyone)
        profiles, _ = Profiles.from_checkins(
            level, users[inside], places[inside], public_users=everyone
        )
        some = run.public.choice(len(profiles), min(sampled, len(profiles)), replace=False)
        curves: dict[str, list[float]] = {}
        for epsilon in run.steps(_EPSILONS, f"profiles, {name}"):
            for kind, mechanism in _releases(level, epsilon).items():
                out: ProfileRelease = mechanism.publish(profiles, rng=run.rng)
                error = float(distance_error(profiles, out.profiles, some).mean())
                rows.append((name, epsilon, kind, error, out.profiles.nonzero))
                curves.setdefault(kind, []).append(error / 1000)
        for kind, values in curves.items():
            axes.plot(_EPSILONS, values, marker="o", label=kind)
        axes.set(xlabel="eps (per check-in)", ylabel="mean distance error (km)", ylim=(0, None))
        axes.set_title(f"{name}: {len(level)} places, largest distance {level.sensitivity} m")
        axes.set_ylim(0, 1.45 * axes.get_ylim()[1])
        axes.legend(loc="upper right")
    run.draw("errors", drawn[0], f"Distance error of released profiles against eps; {source}.")
    head = ("level", "eps", "release", "distance error (m)", "non-zero counts")
    run.table(f"Errors and non-zero counts, {source}, {len(some)} users sampled", head, rows)


_run = in_turn(_small, _budget, _errors)
STUDY = Study(
    "c-profiles", "PriLocation: small tables, budget, errors on two levels", "C", 32, _run
)
