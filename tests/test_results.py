"""Every public result as strict JSON: made by the public call, without a true coordinate."""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish import queries
from whereish.audit import hiding_family, worst_hiding_attack
from whereish.audit.families import swaps
from whereish.interfaces.anytime import loss_over_time
from whereish.interfaces.client.calls import Around, Budget, Offer, Report
from whereish.interfaces.client.trace import Begun, Step
from whereish.queries import report_each
from whereish.results import JsonResult, plain

HERE = (2.345678, 48.856789)
SITES = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
PRIOR = np.array([0.5, 0.3, 0.2])
LEVEL = wh.Epsilon.of("0.01/m")
DISTANCES = np.hypot(*(SITES[:, None] - SITES).transpose(2, 0, 1))


def seeded():
    """Reports that are drawn anew have the digits of the true place now and then."""
    return wh.SeededRandomness(1)


def channel():
    return wh.exponential_channel(SITES, LEVEL)


def trips(tmp_path):
    table = pa.table({"lon": [HERE[0]] * 3, "lat": [HERE[1]] * 3, "who": ["a", "a", "b"]})
    path = tmp_path / "trips.parquet"
    pq.write_table(table, path)
    return path


def released(tmp_path, **options):
    return wh.sanitize(
        trips(tmp_path), tmp_path / "out.parquet", lon="lon", lat="lat", epsilon=LEVEL, **options
    )


def ledger(tmp_path):
    found = wh.open_ledger(tmp_path / "l.db", cap=100 * LEVEL)
    if not (tmp_path / "out.parquet").exists():
        released(tmp_path, ledger=found, subject="who")
    return found


def nearby():
    table = pa.table({"lon": [HERE[0] + 1e-4], "lat": [HERE[1]], "name": ["café"]})
    source = wh.MemorySource(table, keep=["name"])
    return wh.nearby(HERE, "300 m", source=source, epsilon="1/km", rng=seeded())


def profiles():
    level = wh.PlaceLevel.of_geohash("city", wh.Box(2, 48, 3, 49), 4)
    users = ["ann", "bob"] * 20
    places = np.tile(HERE, (40, 1))
    counted, _ = wh.Profiles.from_checkins(level, users, places, public_users=["ann", "bob"])
    return wh.NaiveProfiles(level, 1.0).publish(counted, rng=seeded())


CASES = {
    "ExactAudit": lambda _: wh.audit.exact(channel(), LEVEL * wh.Euclidean(), sites=SITES),
    "ExactAudit, infinite": lambda _: wh.audit.exact(np.eye(3), DISTANCES),
    "DensityAudit": lambda _: wh.audit.density(wh.PlanarLaplace(LEVEL), SITES, rng=seeded()),
    "StatisticalAudit": lambda _: wh.audit.statistical(
        wh.PlanarLaplace(LEVEL), SITES[0], SITES[1], distance=100.0, samples=2000, rng=seeded()
    ),
    "SupportAudit": lambda _: wh.audit.support(wh.PlanarLaplace(LEVEL), SITES, SITES),
    "Usefulness": lambda _: wh.audit.usefulness(channel(), "50 m"),
    "PrivacyMeasures": lambda _: wh.privacy_measures(channel(), PRIOR),
    "BayesAttack": lambda _: wh.audit.best_attack(channel(), PRIOR),
    "Identification": lambda _: wh.audit.identification(channel(), PRIOR),
    "Attack": lambda _: worst_hiding_attack(channel().matrix, 0.01 * DISTANCES),
    "FamilyAttack": lambda _: hiding_family(channel().matrix, 0.01 * DISTANCES, swaps(3)),
    "Comparison": lambda _: wh.compare(SITES, PRIOR, epsilons=[LEVEL], mechanisms=["exponential"]),
    "ComparedMechanism": lambda _: wh.compare(
        SITES, PRIOR, epsilons=[LEVEL], mechanisms=["exponential"]
    ).lines[0],
    "Moment": lambda _: loss_over_time(SITES, PRIOR, LEVEL)[0],
    "Release": released,
    "DryRun": lambda folder: released(folder, dry_run=True),
    "Exposure": lambda folder: released(folder, subject="who", ledger=ledger_for(folder)).exposure,
    "Statement": lambda folder: ledger(folder).statement("a"),
    "Entry": lambda folder: ledger(folder).statement("a").entries[0],
    "ledger's Budget": lambda folder: ledger(folder).budget,
    "TraceRelease": lambda _: wh.PredictiveMechanism(wh.FixedUtility("500 m")).report(
        [HERE] * 3, rng=seeded()
    ),
    "Nearby": lambda _: nearby(),
    "Pin": lambda folder: wh.PinnedPlaces(folder / "pins.json").pin(
        "home", HERE, epsilon="1/km", rng=seeded()
    ),
    "BandwidthOverhead": lambda _: wh.bandwidth_overhead(
        "900 m", "300 m", per_km2=10, bytes_each=1000
    ),
    "ProfileRelease": lambda _: profiles(),
    "Answer": lambda _: wh.answer(queries.Average(), [1, 5, 9], ages().hamming, 1.0, rng=seeded()),
    "PlacesReport": lambda _: report_each(wh.PlanarLaplace(LEVEL), SITES, rng=seeded()),
    "Guarantee": lambda _: wh.GlobeLaplace("1/km").guarantee,
    "client's Report": lambda _: Report(
        lon=2.1, lat=48.1, accuracy_m=300.0, mechanism="street", epsilon=LEVEL, charged=True
    ),
    "client's Around": lambda _: Around(
        lon=2.1,
        lat=48.1,
        accuracy_m=300.0,
        results=[{"lon": HERE[0]}],
        retrieval_radius_m=900.0,
        confidence=0.95,
        fetched=3,
        complete=True,
    ),
    "client's Offer": lambda _: Offer("street", "keeps ...", "theorem", 0.01, None),
    "client's Budget": lambda _: Budget(1.0, 0.5, 0.5, None),
    "client's Step": lambda _: Step(
        lon=2.1, lat=48.1, accuracy_m=None, step=1, fresh=True, spent_per_m=0.1
    ),
    "client's Begun": lambda _: Begun("s1", "walk", 0.1),
}


def ages():
    return wh.Records(wh.Values(1, 10), 3)


def ledger_for(folder):
    return wh.open_ledger(folder / "e.db", cap=100 * LEVEL)


@pytest.mark.parametrize("name", CASES)
def test_a_result_is_strict_json_without_the_true_place(name, tmp_path):
    found = CASES[name](tmp_path)
    assert is_dataclass(found)
    told = found.to_json()
    assert told
    text = json.dumps(told, allow_nan=False)
    assert json.loads(text) == told
    for coordinate in HERE:
        assert f"{coordinate:.4f}" not in text


def test_every_result_class_is_in_the_table(tmp_path):
    tried = {name.rpartition(" ")[2].partition(",")[0] for name in CASES}
    inner = {"Charge", "Sensitivity", "UniversalOptimality", "Reported"}
    for one in subclasses(JsonResult):
        assert one.__name__ in tried | inner, one


def subclasses(base):
    for one in base.__subclasses__():
        if one.__module__.startswith("whereish."):
            yield one
            yield from subclasses(one)


def test_plain_values():
    assert plain(float("nan")) == "nan"
    assert plain(-np.inf) == "-inf"
    assert math.isinf(float(plain(np.inf)))
    assert plain(Fraction(1, 3)) == "1/3"
    assert plain({1: np.arange(2)}) == {"1": [0, 1]}
    assert plain(wh.Basis.THEOREM) == "theorem"
    assert plain(wh.Length.of("3 m")) == {"m": 3.0}
    with pytest.raises(TypeError, match="a result has a object"):
        plain(object())
