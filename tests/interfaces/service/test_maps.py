"""A privacy map in the service: a home zone, charged at one level, drawn with padding."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import whereish as wh
from whereish.data.grids import map_from_zones
from whereish.errors import InvalidInput
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.service.config import MechanismConfig
from whereish.interfaces.service.offered import offer
from whereish.publish.ledger import open_ledger

import service_process

HOME = (2.352, 48.852)
MOST = 0.005042018275477186  # of the map in use
EAST, NORTH = 73_200.0, 111_200.0


NOWHERE = wh.MemorySource(pd.DataFrame({"lon": [0.0], "lat": [0.0]}))


def quarter() -> dict:
    """A square of 1.2 km whose middle is not the home."""
    west, south = 2.343, 48.8455
    east, north = west + 1200 / EAST, south + 1200 / NORTH
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    zone = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {"epsilon": "2/km"}, "geometry": zone}
    return {"type": "FeatureCollection", "features": [feature]}


def zoned() -> wh.PrivacyMap:
    plane = wh.Plane.around(2.35, 48.85, "10 km")
    raster = wh.Raster(14, 14, (300.0, 300.0), (-2100.0, -2100.0), plane)
    return map_from_zones(quarter(), raster, default="6/km")


@pytest.fixture(scope="module")
def built():
    return wh.EikonalMechanism.build(zoned().smoothed("600 m", below=True))


@pytest.fixture(scope="module")
def made(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    built.save(folder / "quarter.npz")
    rest = '[[mechanism]]\nid = "quarter"\nfile = "quarter.npz"\n'
    with service_process.service(folder, cap="0.05/m", rest=rest, log_level="error") as service:
        yield service


def seen(built):
    """How often each corner of the map is reported, if people are everywhere; 1 is the mean."""
    laws = np.array([built.distribution(place).ravel() for place in built.map.raster.centres()])
    rates = laws.mean(axis=0)[on_map(built)]
    return rates / rates.mean()


def on_map(built):
    """Which reports are on the map, and not in its frame."""
    low, sides = np.array(built.map.origin), np.array(built.map.raster.cell)
    steps = np.round((built.reports.centres() - low) / sides, 6)
    return np.flatnonzero(((steps >= 0) & (steps <= built.map.shape[::-1])).all(axis=1))


def corners_of(built, zone):
    """The reports at corners of the zone's cells."""
    away = built.reports.centres()[:, None] - built.map.raster.centres()[zone][None]
    near = (np.abs(away) <= 0.51 * np.array(built.map.raster.cell)).all(axis=2)
    return np.flatnonzero(near.any(axis=1))


def test_a_home_zone_has_no_gap_that_shows_where_it_is(built):
    """Tools that send nothing near home leave a hole in which it is, and so does a zone with a
    sharp edge; blurred from below it has none, and is as tight.

    The hole is not empty: of the 25 corners of the zone's cells those on its border, which are
    corners of cells outside as well, and the one in the middle are reported.  The eight around the
    middle never are, and no corner elsewhere is left out: the gap shows the zone all the same."""
    asked = zoned()
    zone = np.flatnonzero(asked.values.ravel() < 3e-3)
    assert zone.size == 16
    sharp = wh.EikonalMechanism.build(asked)
    never = on_map(sharp)[seen(sharp) == 0]
    assert len(corners_of(sharp, zone)) == 25
    assert len(never) == 8
    assert np.isin(never, corners_of(sharp, zone)).all()
    assert (built.map.values <= asked.values).all()
    assert seen(built).min() > 0.5
    # A report from home is in the zone or not, and one from outside may be in it.
    inside = corners_of(built, zone)
    home = built.map.plane.from_degrees([HOME[0]], [HOME[1]]).coordinates[0]
    assert 0.05 < built.distribution(home).ravel()[inside].sum() < 0.9
    assert built.distribution(home + np.array([1500.0, 0.0])).ravel()[inside].sum() > 0.01


def test_a_sharp_zone_is_a_hole_in_the_reports_of_cells():
    """With secrets and reports on cells every cell of the zone is one by which it is known: hardly
    ever reported, half of them never, while no cell elsewhere is left out."""
    asked = zoned()
    zone = np.flatnonzero(asked.values.ravel() < 3e-3)
    rates = seen(wh.EikonalMechanism.build(asked, places="cells"))
    assert rates[zone].max() < 0.05
    assert np.count_nonzero(rates[zone] == 0) >= 8
    assert np.delete(rates, zone).min() > 0.85


def test_a_map_is_charged_at_its_largest_level_wherever_the_place_is(made):
    home = {"lon": HOME[0], "lat": HOME[1], "mechanism": "quarter"}
    away = {"lon": 2.372, "lat": 48.838, "mechanism": "quarter"}
    answers = [made.post("/v1/report", {**at, "subject": "ann"}) for at in (home, away)]
    assert answers[0]["accuracy_m"] == answers[1]["accuracy_m"]
    assert [answer["epsilon_per_m"] for answer in answers] == [pytest.approx(MOST)] * 2
    entries = open_ledger(made.folder / "state" / "ledger.db").statement("ann").entries
    assert [entry.epsilon.per_m for entry in entries] == [pytest.approx(MOST)] * 2
    made.post("/v1/report", {"places": [{"lon": 2.35, "lat": 48.85}], "subject": "ann"})
    statuses = [made.ask("POST", "/v1/report", {**home, "subject": "ann"})[0] for _ in range(8)]
    # 2 of the map and one of "street" are gone: six more fit.
    assert statuses == [200] * 6 + [409] * 2
    _, _, said = made.ask("GET", "/v1/mechanisms/quarter/certificate")
    assert "integral of eps" in json.loads(said)["guarantee"]["statement"]


def test_the_stated_accuracy_covers_the_truth(made):
    """612 reports from a place near the corner of a cell in the zone."""
    body = {"places": [{"lon": HOME[0], "lat": HOME[1]}], "mechanism": "quarter"}
    reports = []
    for i in range(68):
        answer = made.post("/v1/report", {**body, "places": body["places"] * 9, "subject": f"s{i}"})
        reports += [(report["lon"], report["lat"]) for report in answer["reports"]]
    far = wh.Geodesic()(np.array(reports), np.array([HOME]))
    # At a coverage of 0.95 fewer than 544 happen in 5 of 10^10 runs.
    assert (far <= answer["accuracy_m"]).sum() >= 544
    assert all((round(x, 6), round(y, 6)) == (x, y) for x, y in reports)


def test_places_outside_the_map_have_no_accuracy_and_are_refused(made, built, tmp_path):
    outside = {"lon": 2.40, "lat": 48.85, "mechanism": "quarter"}
    status, _, answer = made.ask("POST", "/v1/report", outside)
    assert (status, json.loads(answer)["type"]) == (422, "urn:whereish:problem:outside")
    built.save(tmp_path / "quarter.npz")
    offered = offer(MechanismConfig("quarter", file="quarter.npz"), tmp_path)
    with pytest.raises(Problem):
        offered.report([(2.35, 48.85), (2.40, 48.85)])
    with pytest.raises(InvalidInput, match="outside the mechanism's region"):
        wh.nearby((2.40, 48.85), "100 m", source=NOWHERE, mechanism=built)


def test_a_map_is_drawn_with_padding(built, tmp_path, monkeypatch):
    built.save(tmp_path / "quarter.npz")
    offered = offer(MechanismConfig("quarter", file="quarter.npz"), tmp_path)
    asked = []
    real = wh.EikonalMechanism.report

    def noting(self, secrets, *, rng=None, padded=False):
        asked.append(padded)
        return real(self, secrets, rng=rng, padded=padded)

    monkeypatch.setattr(wh.EikonalMechanism, "report", noting)
    offered.report([HOME])
    assert asked == [True]
    assert not offered.steady
