"""PriLocation against noise on every count, on New York check-ins (or made-up profiles).

Two levels of the hierarchy: the city in geohash cells of length 5 (HS about 74 km) and a
district in cells of length 6 (HS about 13 km).  DE is the distance error of the users
sampled, the earth mover's distance between true and published profile, in metres; both
releases are measured alike.  d(t, t̂) is the published error, the expected distance
between a check-in and its own replacement.  The bar: DE below the naive baseline for eps
in {0.1, 0.5, 1} on both levels, and a budget that adds up to eps exactly.

"PriLocation" is ``clusters=None``: every place its own cluster, estimates from noisy counts.  It
must not be above naive on three levels (also the city in cells of length 4, where few clusters
lose) and three budgets, nor on made-up check-ins of many kinds, with any of three seeds (median
and worst are printed).  "pooled" is one private histogram for everybody.

Nor on made-up cities of 20 to 500 users at eps of 0.05 to 2, on three levels (:func:`sizes`).

The defaults (clusters, iterations) came from a scan on these data.  So they are chosen anew
on one half of the users, and measured on the other half.

Run: python -m benchmarks.bench_profiles
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import DATA
from whereish.publish.profiles.baselines import PooledProfiles
from whereish.publish.profiles.error import distance_error
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.prilocation import (
    NaiveProfiles,
    PriLocation,
    ProfileRelease,
    Profiles,
)
from whereish.randomness import SeededRandomness
from whereish.space.box import Box
from whereish.space.raster import Raster

FILE = DATA / "gowalla_nyc_checkins.parquet"
CITY, DISTRICT = Box(-74.27, 40.47, -73.69, 40.93), Box(-74.02, 40.70, -73.93, 40.80)
LEVELS = (("city", CITY, 5), ("district", DISTRICT, 6))
THREE = (("coarse", CITY, 4), *LEVELS)
SAMPLE = 300  # users whose error is measured
RUNS = (7, 8, 9)  # seeds of the noise
SMALL = (0.05, 0.1, 0.3, 1.0, 2.0)
SHAPES = [(clusters, iterations) for clusters in (8, 12, 16, 24) for iterations in (2, 4, 6)]


def checkins() -> tuple[np.ndarray, np.ndarray, str]:
    """(users, places, where they come from)."""
    if FILE.exists():
        table = pq.read_table(FILE, columns=["user", "lon", "lat"])
        places = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
        return table["user"].to_numpy(), places, FILE.name
    rng = np.random.default_rng(20160101)
    users = np.repeat(np.arange(5000), rng.geometric(1 / 20, 5000))
    anchors = np.array([-73.985, 40.745]) + rng.normal(0, [0.04, 0.03], (5000, 2))
    places = anchors[users] + rng.normal(0, 0.01, (len(users), 2))
    low, high = (CITY.x_low, CITY.y_low), (CITY.x_high, CITY.y_high)
    return users, np.clip(places, low, high), "made-up profiles (the check-ins are absent)"


def main() -> list[str]:
    users, places, source = checkins()
    print(f"PriLocation on {source}: {len(places)} check-ins")
    failed = never_above_naive() + sizes()
    for name, box, length in LEVELS:
        level = PlaceLevel.of_geohash(name, box, length)
        inside = box.contains(places)
        everyone = np.unique(users[inside])  # a benchmark: who is in the data is no secret here
        profiles, _ = Profiles.from_checkins(
            level, users[inside], places[inside], public_users=everyone
        )
        print(
            f"\n{name}: {len(level)} places, HS = {level.sensitivity} m, {len(profiles)} users,"
            f" {profiles.nonzero} non-zero counts of {len(profiles) * len(level)}"
        )
        print("  eps  release      DE (m)  d(t,t̂) (m)  non-zero  spent == eps  cpu s")
        chosen = np.random.default_rng(1).choice(
            len(profiles), min(SAMPLE, len(profiles)), replace=False
        )
        for eps in (0.1, 0.5, 1.0):
            naive, _ = _line("naive", NaiveProfiles(level, eps), profiles, chosen)
            for title, update in (("published", "published"), ("16 clusters", "proven")):
                mechanism = PriLocation(level, eps, update=update)
                _, met = _line(title, mechanism, profiles, chosen, naive)
                if not met:
                    failed.append(f"profiles: {title} at eps = {eps:g}, {name}")
        failed += _held_out(level, users[inside], places[inside])
    print(f"\ndistance error below naive noise, budget exact: {'FAIL' if failed else 'PASS'}")
    return failed


def never_above_naive() -> list[str]:
    """Without clusters against naive and pooled, at equal budget, all users in the release."""
    users, places, source = checkins()
    print(f"never above naive, on {source}: distance error over naive's, {SAMPLE // 2} users")
    print("  level          places  eps   naive m  PriLocation median, worst  16 clusters  pooled")
    failed = []
    for name, box, length in THREE:
        level = PlaceLevel.of_geohash(name, box, length)
        inside = box.contains(places)
        profiles, _ = Profiles.from_checkins(
            level, users[inside], places[inside], public_users=np.unique(users[inside])
        )
        failed += _against_naive(name, profiles)
    for name, profiles in made_up() + made_up_cities():
        failed += _against_naive(name, profiles)
    print(f"never above naive: {'FAIL' if failed else 'PASS'}")
    return failed


def made_up() -> list[tuple[str, Profiles]]:
    """Check-ins around homes: in the middle or all over, few of each user or many."""
    found = []
    for seed, (side, spread, each) in enumerate(
        [(4, 0.3, 20), (8, 2.0, 5), (12, 0.15, 5), (12, 1.0, 20), (12, 0.3, 2), (16, 3.0, 60)]
    ):
        rng = np.random.default_rng(seed)
        level = PlaceLevel.of_raster("grid", Raster(side, side, (500.0, 500.0)))
        who = np.repeat(np.arange(800), rng.geometric(1 / each, 800))
        home = side * 250.0 * (1 + rng.normal(0, spread, (800, 2)))
        spots = level.region.clamp(home[who] + rng.normal(0, 300, (len(who), 2)))
        made = Profiles.from_checkins(level, who, spots, public_users=np.arange(800))[0]
        found.append((f"made-up {seed}", made))
    return found


def made_up_cities() -> list[tuple[str, Profiles]]:
    """Cities of other kinds: Zipf's hubs, homes and work, tourists, few users."""
    found = []
    for seed, (name, side, users, each) in enumerate(
        [
            ("hubs", 10, 800, 15),
            ("home and work", 12, 800, 25),
            ("tourists", 8, 1000, 3),
            ("many hubs", 20, 600, 10),
            ("few users", 10, 80, 30),
        ]
    ):
        rng = np.random.default_rng(50 + seed)
        level = PlaceLevel.of_raster("grid", Raster(side, side, (500.0, 500.0)))
        who = np.repeat(np.arange(users), rng.geometric(1 / each, users))
        cells = 500 * (0.5 + np.stack(np.divmod(np.arange(side * side), side), axis=1))
        weight = np.ones(side * side)
        if "hubs" in name:
            weight = np.minimum(rng.zipf(1.3, side * side), 10_000).astype(float)
        if name == "tourists":
            weight = np.exp(-np.hypot(*(cells - side * 250).T) / 500)
        at = rng.choice(side * side, len(who), p=weight / weight.sum())
        if name == "home and work":
            jobs = rng.pareto(1.0, side * side) + 0.01
            work = rng.choice(side * side, users, p=jobs / jobs.sum())
            at = np.where(rng.random(len(who)) < 0.5, at, work[who])
        if name in ("home and work", "few users"):
            home = rng.integers(0, side * side, users)
            at = np.where(rng.random(len(who)) < 0.6, home[who], at)
        made = Profiles.from_checkins(level, who, cells[at], public_users=np.arange(users))[0]
        found.append((name, made))
    return found


def sizes() -> list[str]:
    """Few users or many, little budget or much: the worst of two seeds of the noise."""
    print("\n  city     side  users  worst of two seeds over naive at eps", *SMALL)
    found = []
    for name in ("homes", "hubs", "tourists"):
        for side in (4, 8, 12):
            for users in (20, 60, 500):
                profiles = _city(name, side, users)
                some = np.arange(min(users, 60))
                row = []
                for eps in SMALL:
                    ratios = []
                    for seed in RUNS[:2]:
                        naive, ours = (
                            distance_error(
                                profiles,
                                kind.publish(profiles, rng=SeededRandomness(seed)).profiles,
                                some,
                            ).mean()
                            for kind in (
                                NaiveProfiles(profiles.level, eps),
                                PriLocation(profiles.level, eps, clusters=None),
                            )
                        )
                        ratios.append(float(ours / naive))
                    row.append(max(ratios))
                found += row
                print(f"  {name:9s} {side:3d} {users:6d}  " + " ".join(f"{r:6.3f}" for r in row))
    above = sum(ratio > 1 for ratio in found)
    print(
        f"never above naive, sizes: median {np.median(found):.3f}, worst {max(found):.3f},"
        f" {above} of {len(found)} above: {'FAIL' if above else 'PASS'}",
        flush=True,
    )
    return ["profiles: above naive at some size"] if above else []


def _city(name: str, side: int, users: int) -> Profiles:
    """Homes all over, Zipf's hubs, or tourists around the middle; 3 to 30 check-ins each."""
    rng = np.random.default_rng(9000 + 100 * side + users)
    level = PlaceLevel.of_raster("grid", Raster(side, side, (500.0, 500.0)))
    who = np.repeat(np.arange(users), rng.geometric(1 / rng.choice([3, 10, 30]), users))
    cells = 500 * (0.5 + np.stack(np.divmod(np.arange(side * side), side), axis=1))
    weight = np.ones(side * side)
    if name == "hubs":
        weight = np.minimum(rng.zipf(1.3, side * side), 10_000).astype(float)
    if name == "tourists":
        weight = np.exp(-np.hypot(*(cells - side * 250).T) / 700)
    at = rng.choice(side * side, len(who), p=weight / weight.sum())
    if name == "homes":
        home = rng.integers(0, side * side, users)
        at = np.where(rng.random(len(who)) < 0.6, home[who], at)
    return Profiles.from_checkins(level, who, cells[at], public_users=np.arange(users))[0]


def _against_naive(name: str, profiles: Profiles) -> list[str]:
    level = profiles.level
    some = np.random.default_rng(1).choice(
        len(profiles), min(SAMPLE // 2, len(profiles)), replace=False
    )

    def error(kind: NaiveProfiles | PriLocation | PooledProfiles, seed: int) -> float:
        released = kind.publish(profiles, rng=SeededRandomness(seed)).profiles
        return float(distance_error(profiles, released, some).mean())

    failed = []
    for eps in (0.1, 0.5, 1.0):
        naive = [error(NaiveProfiles(level, eps), seed) for seed in RUNS]
        ours = [
            error(PriLocation(level, eps, clusters=None), seed) / of
            for seed, of in zip(RUNS, naive, strict=True)
        ]
        clusters = min(16, len(level) // 2)
        few = error(PriLocation(level, eps, clusters=clusters), RUNS[0]) / naive[0]
        pooled = error(PooledProfiles(level, eps), RUNS[0]) / naive[0]
        met = max(ours) <= 1
        print(
            f"  {name:14s} {len(level):5d} {eps:5.1f} {naive[0]:9.0f} {np.median(ours):11.3f}"
            f" {max(ours):11.3f} {few:16.3f} {pooled:8.3f}  {'PASS' if met else 'FAIL'}",
            flush=True,
        )
        if not met:
            failed.append(f"profiles: above naive at eps = {eps:g}, {name}")
    return failed


def _held_out(level: PlaceLevel, users: np.ndarray, places: np.ndarray) -> list[str]:
    """Parameters chosen on one half of the users, measured on the other."""
    names = np.random.default_rng(3).permutation(np.unique(users))
    fitting = np.isin(users, names[: len(names) // 2])
    ours, theirs = (
        Profiles.from_checkins(level, users[of], places[of], public_users=np.unique(users[of]))[0]
        for of in (fitting, ~fitting)
    )
    some = np.arange(min(SAMPLE // 3, len(ours)))
    errors = {}
    for clusters, iterations in SHAPES:
        mechanism = PriLocation(level, 0.5, clusters=clusters, iterations=iterations)
        released = mechanism.publish(ours, rng=SeededRandomness(5)).profiles
        errors[clusters, iterations] = float(distance_error(ours, released, some).mean())
    clusters, iterations = min(errors, key=errors.__getitem__)
    print(f"  held out: {clusters} clusters, {iterations} iterations chosen on {len(ours)} users")
    chosen = np.arange(min(SAMPLE, len(theirs)))
    failed = []
    for eps in (0.1, 0.5, 1.0):
        naive, _ = _line("naive", NaiveProfiles(level, eps), theirs, chosen)
        mechanism = PriLocation(level, eps, clusters=clusters, iterations=iterations)
        _, met = _line("held out", mechanism, theirs, chosen, naive)
        _line("defaults", PriLocation(level, eps), theirs, chosen, naive)
        if not met:
            failed.append(f"profiles, held out: eps = {eps:g}, {level.name}")
    return failed


def _line(
    name: str,
    mechanism: NaiveProfiles | PriLocation,
    profiles: Profiles,
    users: np.ndarray,
    bar: float | None = None,
) -> tuple[float, bool]:
    start = time.process_time()
    release: ProfileRelease = mechanism.publish(profiles, rng=SeededRandomness(7))
    cpu = time.process_time() - start
    exact = release.spent == Fraction(mechanism.epsilon)
    error = float(distance_error(profiles, release.profiles, users).mean())
    paired = "         -"
    if isinstance(mechanism, PriLocation) and release.clustering is not None:
        of = release.clustering
        expected = [mechanism.distance_error_bound(profiles, of, int(u), risk=1) for u in users]
        paired = f"{np.mean(expected):10.0f}"
    met = exact and (bar is None or error < bar)
    verdict = "" if bar is None else "PASS" if met else "FAIL"
    nonzero = release.profiles.nonzero
    print(
        f"{mechanism.epsilon:5.1f}  {name:11s} {error:7.0f}  {paired}  {nonzero:8d}"
        f"  {exact!s:>12s} {cpu:6.1f}  {verdict}"
    )
    return error, met


if __name__ == "__main__":
    main()
