from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from whereish.errors import InvalidInput, SpaceMismatch
from whereish.space import Box, Line, Plane, Points, Raster, Sites, Sphere
from whereish.space.points import as_points
from whereish.space.sphere import RADIUS_M, great_circle_m

LON = st.floats(-180, 180)
LAT = st.floats(-90, 90)


def test_points_are_copied_frozen_and_say_nothing():
    array = np.array([[1.25, 2.5], [3.0, 4.0]])
    points = Points(array, Plane())
    array[0, 0] = 99
    assert points.coordinates[0, 0] == 1.25
    with pytest.raises(ValueError, match="read-only"):
        points.coordinates[0, 0] = 1
    assert "1.25" not in repr(points) + str(points)
    assert len(points) == 2
    assert np.array_equal(np.asarray(points[1]), [[3.0, 4.0]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_is_refused_without_the_neighbours(bad):
    with pytest.raises(InvalidInput, match="1 of 2 points") as caught:
        Points(np.array([[48.85412, 2.33316], [bad, 1.0]]), Plane())
    assert "48.85" not in str(caught.value)


def test_text_is_refused_without_repeating_it():
    with pytest.raises(InvalidInput, match="must be numbers") as caught:
        as_points([["48.85412x", "2.3"]], Sphere())
    assert "48.85" not in str(caught.value)


class Quoting:
    """A number of somebody else's, which quotes itself where it is none."""

    def __float__(self) -> float:
        raise ValueError("no degrees: 48.85412x")


@pytest.mark.parametrize("bad", [Quoting(), 10**400, Decimal("sNaN"), [1.0]])
def test_what_a_number_says_of_itself_is_not_even_kept(bad):
    """Neither printed nor as the error's context, which a log could print."""
    with pytest.raises(InvalidInput, match="must be numbers") as caught:
        as_points([[bad, 2.3]], Sphere())
    assert "48.85" not in str(caught.value)
    assert caught.value.__context__ is None


def test_shapes():
    assert len(Points([1.0, 2.0], Plane())) == 1
    assert len(Points([1.0, 2.0, 3.0], Line())) == 3
    assert len(Points(np.empty((0, 2)), Sphere())) == 0
    with pytest.raises(InvalidInput, match=r"\(n, 2\)"):
        Points(np.zeros((3, 3)), Plane())


def test_points_of_another_space_are_not_converted_in_silence():
    with pytest.raises(SpaceMismatch, match=r"plane in metres.*globe"):
        as_points(Points([[0, 0]], Plane()), Sphere())


def test_latitudes_beyond_the_poles_are_refused():
    with pytest.raises(InvalidInput, match="swapped"):
        Sphere().from_degrees([2.0], [90.0001])
    with pytest.raises(InvalidInput, match="longitude"):
        Sphere().from_degrees([361.0], [0.0])
    assert len(Sphere().from_degrees([-180, 180, 0, 0], [0, 0, 90, -90])) == 4


@given(LON, LAT, LON, LAT)
def test_the_sphere_never_exceeds_the_geodesic(lon1, lat1, lon2, lat2):
    true = Geod(ellps="WGS84").inv(lon1, lat1, lon2, lat2)[2]
    sphere = great_circle_m(np.array([lon1, lat1]), np.array([lon2, lat2]))
    assert sphere <= true * (1 + 1e-9) + 1e-6


def test_the_sphere_is_tight_at_the_equator_northwards():
    true = Geod(ellps="WGS84").inv(0, -0.01, 0, 0.01)[2]
    assert great_circle_m(np.array([0, -0.01]), np.array([0, 0.01])) == pytest.approx(
        true, rel=1e-6
    )


def test_great_circle_closed_forms():
    quarter, pole = RADIUS_M * math.pi / 2, np.array([77.0, 90.0])
    assert great_circle_m(np.array([0, 0]), pole) == pytest.approx(quarter, rel=1e-15)
    assert great_circle_m(np.array([0, 0]), np.array([180, 0])) == pytest.approx(2 * quarter)
    assert great_circle_m(np.array([179.999, 0]), np.array([-179.999, 0])) == pytest.approx(
        RADIUS_M * math.radians(0.002), rel=1e-9
    )
    assert great_circle_m(np.array([5, 5]), np.array([5, 5])) == 0
    tiny = great_circle_m(np.array([179.99999, 0]), np.array([-179.99999, 0]))
    assert tiny == pytest.approx(RADIUS_M * math.radians(2e-5), rel=1e-9)
    north = great_circle_m(np.array([7, 48]), np.array([7, 48 + 2**-30]))
    assert north == pytest.approx(RADIUS_M * math.radians(2**-30), rel=1e-14)
    assert great_circle_m(np.array([370, 1]), np.array([10, 1])) == pytest.approx(0, abs=1e-6)


def test_a_plane_charges_more_than_its_worst_stretch():
    plane = Plane.projected("EPSG:2154", Box(-5, 41, 9.5, 51.5))
    generator = np.random.default_rng(0)
    lon, lat = generator.uniform(-5, 9.5, (2, 4000)), generator.uniform(41, 51.5, (2, 4000))
    lon[1], lat[1] = lon[0] + 1e-4, np.clip(lat[0] + generator.normal(0, 1e-4, 4000), 41, 51.5)
    lon[1] = np.minimum(lon[1], 9.5)
    a, b = (plane.from_degrees(x, y).coordinates for x, y in zip(lon, lat, strict=True))
    true = Geod(ellps="WGS84").inv(lon[0], lat[0], lon[1], lat[1])[2]
    stretch = np.hypot(*(a - b).T)[true > 1] / true[true > 1]
    assert stretch.max() <= plane.scale
    assert plane.scale < stretch.max() + 2e-3


def test_web_mercator_metres_are_not_metres():
    assert Plane.projected("EPSG:3857", Box(2, 48.5, 2.6, 49.1)).scale == pytest.approx(
        1.52, abs=0.01
    )


def test_around_a_city_hardly_stretches():
    plane = Plane.around(2.35, 48.85, "30 km")
    assert 1 < plane.scale < 1.0001
    lon, lat = plane.to_degrees(plane.from_degrees([2.4], [48.9]))
    assert (lon[0], lat[0]) == (pytest.approx(2.4, abs=1e-9), pytest.approx(48.9, abs=1e-9))


def test_planes_refuse_what_they_cannot_keep():
    with pytest.raises(InvalidInput, match="PROJ knows"):
        Plane.projected("EPSG:999999", Box(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="metres"):
        Plane.projected("EPSG:4326", Box(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="degrees wide"):
        Plane.projected("EPSG:3857", Box(-170, 0, 170, 1))
    with pytest.raises(InvalidInput, match="no coordinate system"):
        Plane.metres().from_degrees([0], [0])
    with pytest.raises(InvalidInput, match="swapped") as caught:
        Plane.around(2.35, 48.85, "30 km").from_degrees([48.85412], [2.33316])
    assert "48.85412" not in str(caught.value)
    with pytest.raises(InvalidInput, match="GlobeLaplace"):
        Plane.around(0, 88, "10 km")


@pytest.mark.parametrize(
    ("crs", "box"),
    [
        ("EPSG:3857", Box(176, -20, 182.7, -15)),
        ("EPSG:3857", Box(175, -20, 185, -15)),
        (
            "+proj=aea +lat_1=29.5 +lat_2=45.5 +lon_0=-96 +datum=WGS84",
            Box(29.54, -37.65, 89.54, -36.65),
        ),
        ("+proj=igh +datum=WGS84 +units=m +type=crs", Box(-61, 10, -20, 30)),
        ("+proj=healpix +datum=WGS84 +units=m +type=crs", Box(-100.2, 67.8, -11.2, 68.8)),
    ],
    ids=str,
)
def test_a_projection_with_an_edge_in_the_region_is_refused(crs, box):
    with pytest.raises(InvalidInput, match="one piece"):
        Plane.projected(crs, box)


def test_a_plane_across_the_antimeridian_that_is_in_one_piece():
    fiji = Plane.around(179.5, -17.5, "200 km")
    a, b = (fiji.from_degrees([lon], [-17.5]).coordinates for lon in (179.999, -179.999))
    assert np.hypot(*(a - b)[0]) == pytest.approx(212, abs=2)


def test_a_plane_knows_its_scale_however_it_is_made():
    box = Box(2, 48.5, 2.6, 49.1)
    assert Plane("EPSG:3857", box).scale == Plane.projected("EPSG:3857", box).scale > 1.5
    with pytest.raises(TypeError):
        Plane("EPSG:3857", box, 1.0)
    with pytest.raises(InvalidInput, match="both"):
        Plane("EPSG:3857")


def test_boxes_of_degrees_wrap():
    box = Box(170, -10, 190, 10)
    places = np.array([[175.0, 0], [-175, 0], [185, 0], [-160, 0], [-190, 0], [np.nan, 0]])
    assert box.contains_degrees(places).tolist() == [True, True, True, False, True, False]


def test_masks_and_complex_numbers_are_refused():
    for bad in (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), np.array([[1j, 2.0]])):
        with pytest.raises(InvalidInput):
            as_points(bad, Plane())
    with pytest.raises(InvalidInput, match="numbers") as caught:
        Plane.around(2.35, 48.85, "30 km").from_degrees(["2.33316x"], [48.8])
    assert "2.33" not in str(caught.value)


def test_boxes():
    box = Box(0, 0, 2, 1)
    assert box.contains(np.array([[1, 0.5], [2, 1], [2.1, 1]])).tolist() == [True, True, False]
    assert box.clamp(np.array([[5.0, -3.0]])).tolist() == [[2, 0]]
    for bad in [(1, 0, 0, 1), (0, 0, 0, 1), (0, math.nan, 1, 1)]:
        with pytest.raises(InvalidInput):
            Box(*bad)


@given(LON, LAT, st.floats(-179, 179), st.floats(-85, 84), st.floats(0.1, 100), st.floats(0.1, 5))
def test_the_globe_clamps_to_the_closest_place_of_a_box(lon, lat, west, south, width, height):
    box = Box(west, south, west + width, min(south + height, 90))
    place = np.array([[lon, lat]])
    closest = great_circle_m(Sphere.clamp(place, box), place)[0]
    edge_lon, edge_lat = np.meshgrid(
        np.linspace(box.x_low, box.x_high, 41), np.linspace(box.y_low, box.y_high, 41)
    )
    grid = np.column_stack([edge_lon.ravel(), edge_lat.ravel()])
    assert closest <= great_circle_m(grid, place).min() + 1e-3


def test_sites_find_the_nearest_across_the_antimeridian():
    sites = Sites(Points([[179.9, 0], [0, 0], [10, 89.9]], Sphere()))
    assert sites.nearest(np.array([[-179.9, 0.0], [-170.0, 89.99], [1.0, 1.0]])).tolist() == [
        0,
        2,
        1,
    ]
    with pytest.raises(InvalidInput, match="at least one"):
        Sites(Points(np.empty((0, 2)), Plane()))


def test_sites_are_found_from_places_whose_squared_distance_is_beyond_doubles():
    sites = Sites(Points([[0, 0], [80, 0]], Plane()))
    assert set(sites.nearest(np.array([[1e200, 0.0], [-1.7e308, 1.7e308]]))) <= {0, 1}


def test_rasters_locate_their_own_centres():
    raster = Raster(3, 4, (2.0, 5.0), (10.0, -7.0))
    assert raster.locate(raster.centres()).tolist() == list(range(12))
    assert raster.locate(np.array([[10.0, -7.0], [12.0, -7.0], [-99, 99]])).tolist() == [0, 1, 8]
    assert raster.box == Box(10, -7, 18, 8)
    assert Raster.over(Box(0, 0, 1000, 450), "100 m").shape == (5, 10)
    with pytest.raises(InvalidInput):
        Raster(0, 3)
    with pytest.raises(InvalidInput):
        Raster(1, 3, (0.0, 1.0))
