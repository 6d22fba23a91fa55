"""Planes: one coordinate operation, a scale factor that is proven, reports clamped not redrawn."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from flint import arb
from pyproj import Geod, Transformer

import whereish as wh
from stress import planes
from whereish.errors import InvalidInput
from whereish.mechanisms.saved import space_from_json, space_to_json
from whereish.privacy.guarantee import Basis
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane
from whereish.space.projection import stretch
from whereish.space.projection.contraction import _surroundings
from whereish.space.projection.operation import (
    Operation,
    available_operations,
    operation_for,
    steps_of,
)
from whereish.space.projection.stretch import MARGIN, stretch_at, stretches_at, widened

TORN = {
    "EPSG:31467": (Box(8, 48, 11, 52), "DHDN to WGS 84 (2)"),
    "EPSG:23031": (Box(0, 40, 5, 45), None),
    "EPSG:5514": (Box(14, 48.6, 18.5, 50.5), None),
    "EPSG:24879": (Box(-72, -6, -66, 1), None),
}
AEQD = "+proj=aeqd +lat_0=48.8 +lon_0=2.3 +datum=WGS84"
OWN_SHIFT = (
    "+proj=tmerc +lat_0=49 +lon_0=-2 +k=0.9996012717 +x_0=400000 +y_0=-100000 +ellps=airy"
    " +towgs84=446.448,-125.157,542.06,0.15,0.247,0.842,-20.489 +units=m"
)
FAMILIES = {
    "EPSG:2154": Box(-5, 41.2, 9.5, 51.5),
    "EPSG:32631": Box(-3, 35, 9, 60),
    "EPSG:2193": Box(170, -45, 175, -40),
    "EPSG:3857": Box(2, -48, 3, 49),
    "EPSG:3395": Box(2, 48, 3, 49),
    "EPSG:3035": Box(-10, 35, 30, 60),
    "+proj=laea +lat_0=52 +lon_0=10 +datum=WGS84": Box(9.5, 51.5, 10.5, 52.5),
    "EPSG:5070": Box(-120, 25, -70, 48),
    "EPSG:3031": Box(0, -88, 80, -62),
    "EPSG:3413": Box(-60, 62, 0, 85),
    "EPSG:28992": Box(4, 51, 6, 53),
    "EPSG:21781": Box(7, 46, 9, 47),
    "EPSG:5514": Box(14, 49, 17, 50),
    "EPSG:3375": Box(100, 2, 104, 6),
    "EPSG:6933": Box(0, 0, 40, 50),
    "EPSG:4087": Box(0, -20, 40, 50),
    "+proj=stere +lat_0=48 +lon_0=2 +k_0=0.99 +datum=WGS84": Box(-20, 30, 25, 60),
    AEQD: Box(2, 48, 3, 49),
    OWN_SHIFT: Box(-3, 51, 0, 53),
}


@lru_cache
def switching(crs: str) -> Transformer:
    """What planes used: PROJ chooses an operation for every place."""
    return Transformer.from_crs("OGC:CRS84", crs, always_xy=True, allow_ballpark=False)


@pytest.mark.parametrize("crs", TORN)
def test_planes_that_need_a_datum_shift_are_not_torn(crs, monkeypatch):
    region, shift = TORN[crs]
    plane = Plane.projected(crs, region, shift=shift)

    def jump():
        generator = np.random.default_rng(11)
        along = planes.largest_jump_m(plane, generator, 256)
        return max(along, planes.border_jump_m(plane, generator))

    assert plane.proven
    assert jump() <= planes.ROUNDING_M
    # The search sees a tear where there is one.
    monkeypatch.setattr(Operation, "transformer", lambda _: switching(crs))
    assert jump() > 0.5


def test_the_tear_of_epsg_31467_is_found_at_nanometres_where_proj_chooses():
    region, shift = TORN["EPSG:31467"]
    plane = Plane.projected("EPSG:31467", region, shift=shift)
    lon, lat = np.array([9.92 - 1e-14, 9.92 + 1e-14]), np.array([51.0, 51.0])
    x, y = switching("EPSG:31467").transform(lon, lat)
    assert math.hypot(x[1] - x[0], y[1] - y[0]) > 0.5
    assert np.ptp(plane.from_degrees(lon, lat).coordinates, axis=0).max() < 1e-8


def test_an_operation_that_needs_a_missing_grid_is_refused_and_a_lesser_one_must_be_named():
    region = Box(-3, 51, 0, 53)
    if available_operations("EPSG:27700", region).best_installed:
        pytest.skip("PROJ's grids are installed here")
    with pytest.raises(InvalidInput, match=r"grid that is not installed.*OSGB36 to WGS 84 \(6\)"):
        Plane.projected("EPSG:27700", region)
    named = Plane.projected("EPSG:27700", region, shift="OSGB36 to WGS 84 (6)")
    own = Plane.projected(OWN_SHIFT, region)
    assert named.scale == own.scale
    with pytest.raises(InvalidInput, match="is not an operation"):
        Plane.projected("EPSG:27700", region, shift="Lisbon to WGS 84 (1)")


@pytest.mark.parametrize(
    ("crs", "region", "words"),
    [
        ("EPSG:28992", Box(3, 50, 7, 54), "no single operation"),
        ("EPSG:2154", Box(100, 0, 101, 1), "knows no operation"),
        ("+proj=tmerc +lon_0=2 +ellps=airy +units=m", Box(1, 50, 2, 51), "knows no operation"),
    ],
)
def test_a_region_that_no_single_operation_covers_is_refused(crs, region, words):
    with pytest.raises(InvalidInput, match=words):
        Plane.projected(crs, region)


def test_the_inverse_is_the_same_operation():
    region, shift = TORN["EPSG:31467"]
    plane = Plane.projected("EPSG:31467", region, shift=shift)
    lon, lat = np.random.default_rng(3).uniform([8, 48], [11, 52], (500, 2)).T
    back = plane.to_degrees(plane.from_degrees(lon, lat))
    assert Geod(ellps="WGS84").inv(lon, lat, *back)[2].max() < 2e-3
    corners = plane.from_degrees([8, 8, 11, 11], [48, 52, 48, 52])
    plane.check_region(corners.coordinates)


def test_the_operation_is_in_the_plane_the_guarantee_and_the_file(tmp_path):
    region, shift = TORN["EPSG:31467"]
    plane = Plane.projected("EPSG:31467", region, shift=shift)
    assert plane.operation is not None
    assert plane.operation.accuracy_m == 3.0
    assert "DHDN to WGS 84 (2)" in plane.operation.name
    guarantee = wh.PlanarLaplace("ln(4)/200 m", plane=plane).guarantee
    assert guarantee.basis is Basis.THEOREM
    assert "DHDN to WGS 84 (2)" in guarantee.source
    assert "(to 3 m)" in guarantee.source
    said = space_to_json(plane)
    assert said["operation"] == {"name": plane.operation.name, "accuracy_m": 3.0}
    assert space_from_json(said) == plane
    assert said["crs"] == "EPSG:31467"
    with pytest.raises(InvalidInput, match="is not an operation"):
        space_from_json({**said, "operation": {"name": "something else", "accuracy_m": 1}})


def test_descriptions_without_an_operation_still_load():
    old = {"kind": "plane", "crs": "EPSG:2154", "region": [2, 48, 3, 49]}
    assert space_from_json(old) == Plane.projected("EPSG:2154", Box(2, 48, 3, 49))
    british = {"kind": "plane", "crs": "EPSG:27700", "region": [-3, 51, 0, 53]}
    loaded = space_from_json(british)
    assert isinstance(loaded, Plane)
    assert loaded.operation is not None
    assert space_from_json({"kind": "plane", "crs": None, "region": None}) == Plane.metres()
    best = Plane.projected("EPSG:2154", Box(2, 48, 3, 49))
    named = Plane.projected("EPSG:2154", Box(2, 48, 3, 49), shift="RGF93 v1 to WGS 84 (1)")
    assert best == named
    assert repr(best) == f"Plane(crs='EPSG:2154', region={best.region!r})"


@pytest.mark.parametrize("crs", FAMILIES)
def test_scale_factors_are_proven_and_tight(crs):
    region = FAMILIES[crs]
    plane = Plane.projected(crs, region)
    wide = widened(region)
    along = np.linspace(0, 1, 4001)
    x, y = wide.x_low + wide.width * along, wide.y_low + wide.height * along
    inside = np.random.default_rng(5).uniform(size=(2, 20_000))
    lon = np.r_[x, x, 0 * x + wide.x_low, 0 * x + wide.x_high, wide.x_low + wide.width * inside[0]]
    lat = np.r_[0 * y + wide.y_low, 0 * y + wide.y_high, y, y, wide.y_low + wide.height * inside[1]]
    operation = plane.operation
    assert operation is not None
    largest = stretch_at(operation, lon, lat).max()
    assert plane.proven
    # Differences of PROJ's doubles over 22 m are good to a few times 1e-10.
    assert largest * (1 + 5e-10) <= plane.scale <= largest * (1 + 1e-6)


@pytest.mark.parametrize("crs", FAMILIES)
def test_no_short_segment_is_stretched_beyond_the_charge(crs):
    plane = Plane.projected(crs, FAMILIES[crs])
    generator = np.random.default_rng(7)
    assert planes.largest_stretch(plane, 20_000, generator) <= plane.scale


@pytest.mark.parametrize("reach", [1.0, 3_000.0, 100_000.0])
@pytest.mark.parametrize("crs", FAMILIES)
def test_the_smallest_factor_is_proven_and_tight(crs, reach):
    """Around the region, against differences; between its middles no cell is overlooked."""
    plane = Plane.projected(crs, FAMILIES[crs])
    found = plane.contraction(reach)
    if reach > 1e4 and crs == "EPSG:3031":
        assert found.factor == 0.0  # as wide as half the globe, near the pole
        return
    box = _surroundings(FAMILIES[crs], found.reach_m)
    assert box is not None
    along, inside = np.linspace(0, 1, 1001), np.random.default_rng(6).uniform(size=(2, 4_000))
    u = np.r_[along, along, 0 * along, 0 * along + 1, inside[0]]
    v = np.r_[0 * along, 0 * along + 1, along, along, inside[1]]
    operation = plane.operation
    assert operation is not None
    seen = stretches_at(operation, box.x_low + box.width * u, box.y_low + box.height * v)[1]
    # Datum bounds are coarser: frames that turn; and a least inside is sampled to some 1e-5.
    loose = 1e-4 if found.return_m > 0.005 else 2e-5
    assert found.factor * (1 - 5e-10) <= seen.min() <= found.factor * (1 + loose)


@pytest.mark.parametrize("crs", FAMILIES)
def test_places_on_the_plane_are_no_farther_than_the_factor_says(crs):
    """Reports in every direction around the corners and the middle of a region."""
    region = FAMILIES[crs]
    plane = Plane.projected(crs, region)
    lon, lat = (
        np.repeat([low, (low + high) / 2, high], 400)
        for low, high in ((region.x_low, region.x_high), (region.y_low, region.y_high))
    )
    start = plane.from_degrees(lon, lat).coordinates
    ways, reach = np.random.default_rng(9).uniform(0, 2 * np.pi, len(lon)), 20_000.0
    found = plane.contraction(reach / 0.8)
    assert reach / found.factor <= found.reach_m
    there = start + reach * np.column_stack([np.cos(ways), np.sin(ways)])
    true = Geod(ellps="WGS84").inv(lon, lat, *plane.to_degrees(wh.Points(there, plane)))[2]
    assert true.max() <= reach / found.factor + found.return_m
    # As long in the worst direction of the worst place, but for the factor's width over the box.
    assert true.max() >= reach / plane.scale


@pytest.mark.parametrize("crs", TORN)
def test_places_return_from_a_shifted_plane_within_the_stated_error(crs):
    region, shift = TORN[crs]
    plane = Plane.projected(crs, region, shift=shift)
    lon, lat = (
        np.random.default_rng(4)
        .uniform([region.x_low, region.y_low], [region.x_high, region.y_high], (500, 2))
        .T
    )
    back = plane.to_degrees(plane.from_degrees(lon, lat))
    away = Geod(ellps="WGS84").inv(lon, lat, *back)[2].max()
    assert away <= plane.contraction(100.0).return_m < 2.0


def test_a_smallest_factor_without_a_proof_is_estimated_with_care():
    plane = Plane.projected("+proj=bonne +lat_1=60 +datum=WGS84", Box(0, 50, 10, 60))
    found = plane.contraction(1000.0)
    assert not plane.proven
    operation = plane.operation
    assert operation is not None
    lon, lat = np.random.default_rng(8).uniform([0, 50], [10, 60], (5_000, 2)).T
    least = stretches_at(operation, lon, lat)[1].min()
    assert 0.98 * least <= found.factor <= least


def test_the_charge_keeps_its_margin_above_the_largest_stretch():
    """Web Mercator's largest factor in ball arithmetic: the charge is above it by the margin."""
    region = Box(2, 48, 3, 49)
    plane = Plane.projected("EPSG:3857", region)
    north = arb(widened(region).y_high) / 180
    flattening = 1 / arb("298.257223563")
    e2 = flattening * (2 - flattening)
    true = (1 - e2 * north.sin_pi() ** 2) ** 1.5 / ((1 - e2) * north.cos_pi())
    excess = arb(plane.scale) / true - 1
    assert 0.9 * MARGIN < excess < 1.1 * MARGIN
    assert MARGIN >= 1e-10  # PROJ's nanometres over tens of metres


def test_wide_regions_hold_their_geodesics():
    """A geodesic along 45 degrees of latitude, 90 wide, rises above the great circle's bulge."""
    region = Box(0, 30, 90, 45)
    geod = Geod(ellps="WGS84")
    way = np.array(geod.npts(0, 45, 90, 45, 2001))
    assert way[:, 1].max() <= widened(region).y_high
    sphere = math.degrees(math.atan(1 / math.cos(math.radians(45))))
    assert way[:, 1].max() > sphere + 1e-2  # what was widened to


@pytest.mark.parametrize(
    ("crs", "box"),
    [
        ("+proj=peirce_q +shape=square +lon_0=25 +datum=WGS84", Box(-20, 5, 25, 60)),
        ("+proj=bonne +lat_1=60 +datum=WGS84", Box(-20, 30, 25, 60)),
        ("+proj=robin +datum=WGS84", Box(0, 30, 10, 40)),
        ("+proj=tmerc +approx +lon_0=2 +datum=WGS84", Box(0, 30, 10, 40)),
    ],
)
def test_a_scale_without_a_proof_says_so_and_is_refused_for_release(crs, box):
    plane = Plane.projected(crs, box)
    assert not plane.proven
    mechanism = wh.PlanarLaplace("ln(4)/200 m", plane=plane)
    assert mechanism.guarantee.basis is Basis.ESTIMATED
    assert "estimated" in mechanism.guarantee.source
    frame = pd.DataFrame({"lon": [1.0], "lat": [35.0]})
    with pytest.raises(InvalidInput, match="only estimated"):
        wh.sanitize(frame, mechanism=mechanism, lon="lon", lat="lat")


def test_closed_forms_are_believed_only_where_proj_follows_them(monkeypatch):
    region = Box(2, 48, 3, 49)
    operation = operation_for("EPSG:32630", region)
    assert stretch._proven(operation, widened(region)) is not None
    # Were the formula of another zone taken for this one, PROJ's results would tell.
    other = steps_of(operation.pipeline.replace("zone=30", "zone=31"))
    monkeypatch.setattr(Operation, "steps", property(lambda _: other))
    assert stretch._proven(operation, widened(region)) is None


@pytest.mark.parametrize("crs", [*FAMILIES, "+proj=robin +datum=WGS84"])
def test_reports_outside_the_domain_are_clamped(crs):
    """With almost no budget, reports fly beyond every projection: each still has degrees."""
    region = FAMILIES.get(crs, Box(0, 30, 10, 40))
    plane = Plane.projected(crs, region)
    mechanism = wh.PlanarLaplace("1e-8/m", resolution="1 km", plane=plane)
    lon, lat = (region.x_low + region.x_high) / 2, (region.y_low + region.y_high) / 2
    secrets = plane.from_degrees(np.full(400, lon), np.full(400, lat))
    reports = mechanism.report(secrets, rng=SeededRandomness(5))
    lon, lat = plane.to_degrees(reports)
    assert np.isfinite(lon).all()
    assert (np.abs(lat) <= 90).all()
    assert (np.abs(lon) <= 360).all()
    again = plane.to_degrees(reports)
    assert np.array_equal(lon, again[0])
    assert np.array_equal(lat, again[1])


def test_a_clamped_report_is_moved_towards_the_region_not_across_it():
    plane = Plane.projected("+proj=robin +datum=WGS84", Box(0, 30, 10, 40))
    far = wh.Points(np.array([[1e9, 0.0], [0.0, 1e9]]), plane)
    lon, lat = plane.to_degrees(far)
    assert lon[0] > 150
    assert lat[1] > 80


def test_sampled_epsg_planes_are_neither_torn_nor_stretched_beyond_their_charge():
    found = planes.sample(25, 5_000, np.random.default_rng(2))
    assert found.torn == []
    assert found.exceeded == []
    assert found.shrunk == []
    assert len(found.spare) >= 20
    assert found.proven >= 22
    assert found.refused.total() > 0
