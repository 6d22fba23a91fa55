"""What is refused depends on each place or entry alone, against bounds that are public.

SECURITY.md, "What is refused, and what a refusal tells".  A refusal that depended on a sum, on
several places together or on what was drawn would answer a query about secrets without noise.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.privacy.tuples import DifferentPlaces
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.prilocation import Profiles
from whereish.queries import Average, Centroid, Count, Maximum, Median, Sum, answer, report_each

PLANE = wh.Plane.around(2.35, 48.85, "10 km")
BOX = wh.Box(-4000, -4000, 4000, 4000)
LEVEL = PlaceLevel.of_raster("grid", wh.Raster(4, 4, (2000.0, 2000.0), (-4000.0, -4000.0)))
CHANNEL = wh.exponential_channel(wh.Raster(4, 4, (2000.0, 2000.0), (-4000.0, -4000.0)), "1/km")
SITES = CHANNEL.secrets.coordinates
RECORDS = wh.Records(wh.Values(1, 100, null=True), 3)
FINE = wh.PlanarLaplace("100/m", resolution="1e-9 m")  # its lattice ends at 70 km

CORNERS = [[3900.0, 3900.0], [-3900.0, 3900.0], [3900.0, -3900.0], [0.0, 0.0]]
FAR = [[90_000.0, 0.0], [0.0, -90_000.0]]


def centroid(metric):
    return lambda places: answer(
        Centroid(), wh.Points(np.array(places), PLANE), metric(len(places)), "1/km"
    )


def counted(places):
    metric = wh.TupleSum(DifferentPlaces(BOX), len(places))
    return answer(Centroid(), np.array(places), metric, 1.0)


def profiles(places):
    return Profiles.from_checkins(LEVEL, [0] * len(places), np.array(places), public_users=[0])


def trace(places):
    mechanism = wh.PredictiveMechanism(
        wh.FixedUtility("200 m"), noise=lambda eps: wh.PlanarLaplace(eps, plane=PLANE)
    )
    return mechanism.report(np.array(places))


ON_PLACES = {
    "planar noise": wh.PlanarLaplace("1/km", plane=PLANE).report,
    "a fine lattice": FINE.report,
    "each place": lambda places: report_each(wh.PlanarLaplace("1/km", plane=PLANE), places),
    "centroid, d_inf": centroid(lambda n: wh.TupleMax(wh.Euclidean(), n)),
    "centroid, d_1": centroid(lambda n: wh.TupleSum(wh.Euclidean(), n)),
    "centroid, d_h": counted,
    "profiles": profiles,
    "trace": trace,
}


def refused(ask, data) -> bool:
    try:
        ask(data)
    except InvalidInput:
        return True
    return False


@pytest.mark.parametrize("name", ON_PLACES)
def test_places_are_refused_one_by_one(name):
    ask = ON_PLACES[name]
    for size in (1, 2, 3, 8):
        for places in itertools.islice(itertools.product(CORNERS, repeat=size), 0, 65, 8):
            assert not refused(ask, list(places))
    for far, near in itertools.product(FAR, CORNERS):
        opposite = (-np.array(far)).tolist()
        assert refused(ask, [far])
        assert refused(ask, [near, far])
        assert refused(ask, [far, opposite])  # whose sum is within


def test_secrets_of_a_channel_are_refused_one_by_one():
    assert not refused(CHANNEL.report, SITES[[0, 5, 5, 15]])
    assert refused(CHANNEL.report, [*SITES[:2].tolist(), [1.0, 1.0]])


@pytest.mark.parametrize("query", [Sum(), Count(lambda v: v > 50), Average(), Median(), Maximum()])
@pytest.mark.parametrize("notion", ["hamming", "manhattan", "normalised_manhattan", "maximum"])
def test_entries_are_refused_one_by_one(query, notion):
    metric = getattr(RECORDS, notion)

    def ask(data):
        return answer(query, data, metric, 0.5)

    for data in itertools.product([0, 100, 37, None], repeat=3):
        assert not refused(ask, list(data))
    for wrong in (-1, 101, 0.5):
        assert refused(ask, [wrong, 0, None])
