"""What values print of themselves: short, and no secret."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import whereish as wh
from whereish.publish.exposure import Release
from whereish.publish.ledger.ledger import Budget, Charge, Entry, Statement
from whereish.solvers.radial.log_linear import LogLinear

LONGEST = 300
# Digits that nothing else has, in degrees and in metres.
X, Y = 12.3454321, 47.6787876
SECRETS = [[X, Y], [X + 0.01, Y], [X, Y + 0.01]]
FAR_X, FAR_Y = 76543.25, 34567.75
METRES = [[FAR_X, FAR_Y], [FAR_X + 900, FAR_Y], [FAR_X, FAR_Y + 900]]
DIGITS = ("12.34", "12.35", "47.67", "47.68", "76543", "34567", "77443", "35467")

MANY = 500
RNG = np.random.default_rng(1)
SITES = RNG.uniform(0, 50_000, (40, 2))
HUGE = wh.Distinguishability.square_root(1.0, "1 km")
"""Hundreds of pieces."""
CITY = wh.PlaceLevel.of_raster("city", wh.Raster(30, 30, (500.0, 500.0)))


def seeded() -> wh.SeededRandomness:
    """The same draws whatever was drawn before: a drawn number may have any digits."""
    return wh.SeededRandomness(1)


def channel() -> wh.Channel:
    return wh.exponential_channel(SITES, "1/km")


def profiles(of: wh.PlaceLevel) -> wh.Profiles:
    return wh.Profiles.counted(of, 9, RNG.integers(0, 9, MANY), RNG.integers(0, 900, MANY))


def matrix(size: int = MANY) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))) + 0.0


def small_map() -> wh.PrivacyMap:
    return wh.PrivacyMap(1e-3 * (1 + RNG.random((12, 12))), "500 m")


def trace():
    mechanism = wh.PredictiveMechanism(wh.FixedUtility("500 m", total="1/m"))
    return mechanism.report(SECRETS * 30, np.arange(90.0), rng=wh.SeededRandomness(1))


def session():
    mechanism = wh.PredictiveMechanism(wh.FixedUtility("500 m", total="1/m"))
    running = mechanism.start(rng=wh.SeededRandomness(1))
    for place in SECRETS * 10:
        running.report([place])
    return running


def plane() -> wh.Plane:
    return wh.Plane.projected("EPSG:32633", wh.Box(10.0, 45.0, 15.1, 50.2))


def visits() -> wh.Visits:
    times = np.datetime64("2026-01-01T00") + np.arange(3)
    return wh.Visits.of(METRES, wh.Raster(90, 90, (1e3, 1e3)), users=[1, 2, 3], times=times)


def statement() -> Statement:
    lines = tuple(Entry(f"{i:032x}", 1e9 + i, wh.Epsilon(0.01), 1, "done") for i in range(MANY))
    return Statement("alice", Budget(wh.Epsilon(9.0), 3600.0), lines, 5.0, 4.0)


def noisy_audit():
    noise = wh.PlanarLaplace("0.01/m", resolution="10 m")
    return wh.audit.statistical(noise, METRES[0], METRES[1], samples=4000, rng=seeded())


def composed(times: int) -> wh.Guarantee:
    total = wh.PlanarLaplace("0.01/m").guarantee
    for other in (wh.ManhattanLaplace("0.01/m"), wh.CircularNoise(([0, 9], [2, 1]))) * times:
        total = total + other.guarantee
    return total


def place_store():
    with tempfile.TemporaryDirectory() as folder:
        return wh.PlaceStore.build(
            f"{folder}/places.db", pd.DataFrame(SECRETS, columns=["lon", "lat"])
        )


def pinned():
    with tempfile.TemporaryDirectory() as folder:
        pins = wh.PinnedPlaces(f"{folder}/pins.json")
        pins.pin("home", (X, Y), epsilon="1/m", rng=seeded())
        return pins


def between_sites():
    across, up = np.meshgrid(X + 100.0 * np.arange(3), Y + 100.0 * np.arange(3))
    sites = np.column_stack([across.ravel(), up.ravel()])
    return wh.tight_channel(sites, "0.01/m").between_sites()


CASES = {
    "AsyncClient": lambda: wh.AsyncClient("http://127.0.0.1:1", token="secret"),
    "Basis": lambda: wh.Basis.THEOREM,
    "BayesianRemap": lambda: wh.BayesianRemap(RNG.random(MANY).tolist(), matrix(), SITES),
    "BetweenSites": between_sites,
    "Box": lambda: wh.Box(0.1, 0.2, 1 / 3, 2 / 3),
    "Channel": channel,
    "CircularNoise": lambda: wh.CircularNoise((np.arange(MANY), np.linspace(9, 1, MANY))),
    "Client": lambda: wh.Client("http://127.0.0.1:1", token="secret"),
    "Comparison": lambda: wh.compare(
        [[0, 0], [900, 0]], None, epsilons=["1/km"], mechanisms=["uniform"]
    ),
    "CubeGeometric": lambda: wh.CubeGeometric(wh.Records(wh.Values(1, 10), 2), 0.5),
    "Distinguishability": lambda: HUGE,
    "DistanceLevel": lambda: HUGE.metric,
    "EikonalMechanism": lambda: wh.EikonalMechanism.build(small_map()),
    "EikonalQuery": lambda: wh.EikonalQuery.build(small_map(), np.arange(144).reshape(12, 12)),
    "Epsilon": lambda: wh.Epsilon.of("ln(4)/200 m"),
    "Finite": lambda: 0.5 * wh.Finite(matrix()),
    "FixedRate": lambda: wh.FixedRate("0.05/m", 10),
    "FixedUtility": lambda: wh.FixedUtility("500 m"),
    "GlobeLaplace": lambda: wh.GlobeLaplace("0.01/m"),
    "Guarantee": lambda: composed(1),
    "Guarantee of many": lambda: composed(9),
    "Laplace1D": lambda: wh.Laplace1D("0.01/m"),
    "Length": lambda: wh.Length.of("200 m"),
    "Line": wh.Line,
    "LogLinear": lambda: LogLinear(np.arange(MANY + 1.0), -np.arange(MANY), -np.arange(MANY)),
    "ManhattanLaplace": lambda: wh.ManhattanLaplace("0.01/m"),
    "MapGeodesic": lambda: wh.EikonalMechanism.build(small_map()).metric,
    "MemorySource": lambda: wh.MemorySource(pd.DataFrame(SECRETS, columns=["lon", "lat"])),
    "PinnedPlaces": pinned,
    "Pin": lambda: pinned()["home"],
    "PlaceStore": place_store,
    "Nearby": lambda: wh.nearby(
        (X, Y),
        source=wh.MemorySource(pd.DataFrame(SECRETS, columns=["lon", "lat"])),
        epsilon="1/m",
        rng=seeded(),
    ),
    "Metric": lambda: composed(9).metric,
    "NaiveProfiles": lambda: wh.NaiveProfiles(CITY, 1.0),
    "NoiseFunction": lambda: wh.NoiseFunction(np.ones((99, 99)), "1 m", decay=1.0),
    "OptimalChannel": lambda: wh.optimal_channel(SITES[:5], None, "0.1/km"),
    "OptimalCircular": lambda: wh.OptimalCircular(wh.Distinguishability.linear("0.01/m")),
    "PlaceLevel": lambda: CITY,
    "PlanarLaplace": lambda: wh.PlanarLaplace("0.01/m", plane=plane()),
    "Plane": plane,
    "Points": lambda: wh.Points(SECRETS, wh.Sphere()),
    "PooledProfiles": lambda: wh.PooledProfiles(CITY, 1.0),
    "PredictiveMechanism": lambda: wh.PredictiveMechanism(wh.FixedUtility("500 m")),
    "PriLocation": lambda: wh.PriLocation(CITY, 1.0),
    "PrivacyMap": small_map,
    "ProfileRelease": lambda: wh.NaiveProfiles(CITY, 1.0).publish(profiles(CITY), rng=seeded()),
    "Profiles": lambda: profiles(CITY),
    "Raster": lambda: wh.Raster(90, 90, (1e3, 1e3), (1 / 3, 2 / 3), plane()),
    "Release": lambda: Release(Path("x" * 200), 10**9, composed(9), False, scope="y" * 500),
    "Records": lambda: wh.Records(wh.Values("1/3", 2**40, null=True), 100),
    "SecureRandomness": wh.SecureRandomness,
    "SeededRandomness": lambda: wh.SeededRandomness(7),
    "Sites": lambda: wh.Sites(wh.Points(SITES, wh.Plane())),
    "SpentBudget": lambda: trace().guarantee,
    "Sphere": wh.Sphere,
    "Sum of many": lambda: sum(
        (size * wh.Finite(matrix(size)) for size in range(2, 20)), 1.0 * wh.Euclidean()
    ),
    "TraceRelease": trace,
    "TraceSession": session,
    "Transcript": lambda: session().transcript,
    "TruncatedGeometric": lambda: wh.TruncatedGeometric(wh.Values(1, 1000), 0.5),
    "TupleMax": lambda: wh.TupleMax(wh.Finite(matrix()), 9),
    "TupleSum": lambda: wh.TupleSum(HUGE.metric, 9),
    "TwoSidedGeometric": lambda: wh.TwoSidedGeometric("1/3", 0.5),
    "Values": lambda: wh.Values("1/3", 2**40, null=True),
    "Visits": visits,
    "remapped": lambda: wh.PlanarLaplace("0.01/m") >> wh.nearest_remap(SITES),
    "GridRemap": lambda: wh.nearest_grid_remap(wh.Raster(90, 90, (1e3, 1e3))),
    "Commuters": lambda: wh.synthetic_commuters(wh.Raster(2, 2), np.ones((2, 2)), 99, seed=1),
    "Answer": lambda: wh.answer(
        wh.queries.Centroid(), METRES, wh.TupleMax(wh.Euclidean(), 3), "1e-6/m", rng=seeded()
    ),
    "FiniteQuery": lambda: wh.queries.FiniteQuery(np.arange(MANY), matrix()),
    "UniversalOptimality": lambda: wh.queries.FiniteQuery(
        np.arange(3.0), np.minimum(matrix(3), 1)
    ).universal_optimality(1.0),
    "PlacesReport": lambda: wh.queries.report_each(
        wh.PlanarLaplace("1e-4/m"), METRES, rng=seeded()
    ),
    "audit.BayesAttack": lambda: wh.audit.best_attack(channel(), None),
    "audit.Identification": lambda: wh.audit.identification(channel(), None),
    "audit.PrivacyMeasures": lambda: wh.privacy_measures(channel(), None),
    "audit.FamilyAttack": lambda: wh.audit.informed_family(channel(), matrix(40), [np.arange(40)]),
    "audit.Usefulness": lambda: wh.audit.usefulness(channel(), "1 km"),
    "audit.DensityAudit": lambda: wh.audit.density(
        wh.PlanarLaplace("0.01/m"), METRES, rng=seeded()
    ),
    "audit.ExactAudit": lambda: wh.audit.exact(channel(), channel().guarantee.metric, sites=SITES),
    "audit.StatisticalAudit": noisy_audit,
    "audit.SupportAudit": lambda: wh.audit.support(
        wh.PlanarLaplace("0.01/m"), METRES * 99, METRES * 99
    ),
    "audit.Attack": lambda: wh.audit.worst_hiding_attack(
        channel(), channel().guarantee.metric, sites=SITES
    ),
    "ledger.Budget": lambda: Budget(wh.Epsilon(9.0), 3600.0),
    "ledger.Charge": lambda: Charge("alice", wh.Epsilon(0.01), 3),
    "ledger.Statement": statement,
}


@pytest.mark.parametrize("name", CASES)
def test_a_repr_is_short_and_shows_no_secret(name):
    value = CASES[name]()
    kind, _, _ = name.rpartition(".")[-1].partition(" ")
    text = repr(value)
    assert len(text) <= LONGEST, len(text)
    assert "\n" not in text
    for digits in DIGITS:
        assert digits not in text
    if hasattr(wh, kind) and kind != "Metric":
        assert kind in text, "a repr names its class"


def test_every_public_class_has_a_repr_tried_here():
    values = {"Chebyshev", "Euclidean", "Geodesic", "GreatCircle", "Manhattan"}  # without fields
    abstract = {"Mechanism", "WhereishError"}
    for name in wh.__all__:
        if isinstance(getattr(wh, name), type) and name not in values | abstract:
            assert name in CASES


def test_a_plane_by_its_whole_definition_is_short():
    from pyproj import CRS

    text = CRS("EPSG:32633").to_wkt()
    plane = wh.Plane(text, wh.Box(10.0, 45.0, 15.1, 50.2))
    assert len(text) > LONGEST
    assert len(repr(plane)) <= LONGEST
    assert len(repr(wh.Points(np.zeros((2, 2)), plane))) <= LONGEST
