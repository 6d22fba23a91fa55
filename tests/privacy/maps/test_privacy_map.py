"""Privacy maps: what they accept, where they come from, and their curvature."""

from __future__ import annotations

import json

import numpy as np
import pytest

from whereish.data.grids import map_from_zones, read_grid, tract_values
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.raster import Raster


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.0, 1e-3]], "above zero"),
        ([[-1e-3, 1e-3]], "above zero"),
        ([[np.nan, 1e-3]], "fill holes"),
        ([[np.inf, 1e-3]], "NaN or infinite"),
        ([[2e4, 1e-3]], "unit right"),
        ([[[1e-3]]], "shape"),
        ([], "shape"),
        ([["a"]], "numbers"),
    ],
)
def test_bad_levels_are_refused(values, words):
    with pytest.raises(InvalidInput, match=words):
        PrivacyMap(values, cell="100 m")


def test_a_cell_needs_its_unit_and_a_positive_side():
    with pytest.raises(InvalidInput, match="unit"):
        PrivacyMap([[1e-3]], cell=100)
    with pytest.raises(InvalidInput, match="greater than zero"):
        PrivacyMap([[1e-3]], cell="0 m")
    with pytest.raises(InvalidInput, match="finite and > 0"):
        PrivacyMap([[1e-3]], cell=(1.0, -1.0))


def test_maps_are_immutable_and_know_their_place():
    values = np.full((2, 3), 1e-3)
    m = PrivacyMap(values, (10.0, 20.0), (5.0, 6.0))
    values[0, 0] = 5.0
    assert m.values[0, 0] == 1e-3
    assert not m.values.flags.writeable
    assert m.raster.box == Box(5, 6, 35, 46)
    again = PrivacyMap.from_json(json.loads(json.dumps(m.to_json())), m.values)
    assert again.digest() == m.digest()
    with pytest.raises(InvalidInput, match="not those"):
        PrivacyMap.from_json(m.to_json(), m.values * 2)


def test_density_formula_and_clipping():
    m = PrivacyMap.from_density(
        [[0.0, 5_000.0, 1e6]], slope=1e-4, offset=0.4, high=2.0, per="km", cell="1 km"
    )
    np.testing.assert_allclose(m.values, [[0.0004, 0.0009, 0.002]])
    with pytest.raises(InvalidInput, match="density"):
        PrivacyMap.from_density([[-1.0]], slope=1, offset=1, per="km", cell="1 km")
    with pytest.raises(InvalidInput, match="per must be"):
        PrivacyMap.from_density([[1.0]], slope=1, offset=1, per="league", cell="1 km")


def test_curvature_of_constant_curvature_metrics():
    """eps = 2/(1 + c·r²/...) is a sphere (K = 1), its mirror image a hyperbolic disc (K = -1)."""
    x = (np.arange(200) - 99.5) * 0.005
    r2 = x[:, None] ** 2 + x[None] ** 2
    for sign in (1.0, -1.0):
        m = PrivacyMap(2 / (1 + sign * r2), (0.005, 0.005))
        inner = m.curvature()[5:-5, 5:-5]
        np.testing.assert_allclose(inner, sign, rtol=1e-2)
    assert not PrivacyMap(np.full((5, 5), 0.1), "1 m").too_curved().any()
    step = np.where(np.arange(40) < 20, 0.1, 1.0)[None].repeat(40, axis=0)
    assert PrivacyMap(step, "1 m").too_curved().any()


def test_supersampling_and_smoothing_keep_what_they_must():
    x = np.linspace(1e-3, 2e-3, 8)
    m = PrivacyMap(np.tile(x, (6, 1)), "300 m")
    fine = m.supersampled(3)
    assert fine.shape == (18, 24)
    assert fine.raster.box == m.raster.box
    np.testing.assert_allclose(fine.values[1::3, 1::3], m.values)
    smooth = PrivacyMap(np.where(x < 1.5e-3, 1e-3, 2e-3)[None].repeat(6, 0), "300 m").smoothed(
        "600 m"
    )
    assert 1e-3 <= smooth.values.min() < smooth.values.max() <= 2e-3
    assert np.abs(np.diff(np.log(smooth.values), axis=1)).max() < 0.3


@pytest.mark.parametrize("radius", ["100 m", "450 m", "2 km"])
def test_a_blur_from_below_raises_no_level(radius):
    levels = np.exp(np.random.default_rng(2).uniform(np.log(1e-4), np.log(1e-2), (9, 12)))
    m = PrivacyMap(levels, "300 m")
    lower = m.smoothed(radius, below=True)
    assert (lower.values <= levels).all()
    assert lower.values.min() == pytest.approx(levels.min())
    if radius != "100 m":  # a third of a cell: nothing to blur
        assert (m.smoothed(radius).values > levels).any()
        steps = [np.abs(np.diff(np.log(one.values))).max() for one in (m, lower)]
        assert steps[1] < steps[0]
    line = PrivacyMap(levels[0], "300 m").smoothed(radius, below=True)
    assert (line.values <= levels[:1]).all()


def test_a_line_of_levels():
    m = PrivacyMap([1e-3, 2e-3, 3e-3], cell="1 m")
    assert isinstance(m.space, Line)
    assert m.shape == (1, 3)
    assert m.supersampled(2).shape == (1, 6)


ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"epsilon": "0.5/km"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[100, 100], [500, 100], [500, 500], [100, 500], [100, 100]],
                    [[200, 200], [300, 200], [300, 300], [200, 300], [200, 200]],
                ],
            },
        },
        {
            "type": "Feature",
            "properties": {"epsilon": "0.2/km"},
            "geometry": {
                "type": "MultiPolygon",
                "coordinates": [[[[400, 400], [900, 400], [900, 900], [400, 900], [400, 400]]]],
            },
        },
    ],
}


def test_zones_with_holes_and_overlaps(tmp_path):
    raster = Raster(10, 10, (100.0, 100.0))
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps(ZONES))
    m = map_from_zones(path, raster, default="2/km")
    per_km = m.values * 1e3
    assert per_km[0, 0] == 2.0
    assert per_km[1, 1] == 0.5
    assert per_km[2, 2] == 2.0  # the hole
    assert per_km[4, 4] == pytest.approx(0.2)  # both zones: the tightest
    bad = {**ZONES, "features": [{**ZONES["features"][0], "properties": {}}]}
    with pytest.raises(InvalidInput, match="property 'epsilon'"):
        map_from_zones(bad, raster, default="2/km")


def test_zones_in_degrees_need_a_plane_with_a_coordinate_system():
    plane = Plane.projected("EPSG:2154", Box(2.2, 48.8, 2.5, 48.95))
    corner = plane.from_degrees(2.3, 48.85).coordinates[0]
    raster = Raster(20, 20, (100.0, 100.0), (corner[0], corner[1]), plane)
    ring = [[2.305, 48.855], [2.32, 48.855], [2.32, 48.862], [2.305, 48.862], [2.305, 48.855]]
    zone = {
        "type": "Feature",
        "properties": {"epsilon": "0.5/km"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    m = map_from_zones({"type": "FeatureCollection", "features": [zone]}, raster, default="2/km")
    area = (m.values < 1e-3).sum() * 1e4
    assert area == pytest.approx(1101 * 778, rel=0.1)


def test_grids_from_files(tmp_path):
    path = tmp_path / "density.asc"
    path.write_text(
        "ncols 3\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\nNODATA_value -9\n1 2 3\n4 5 -9\n"
    )
    grid = read_grid(path)
    np.testing.assert_array_equal(grid.values, [[4, 5, np.nan], [1, 2, 3]])
    assert (grid.cell, grid.origin) == ((5.0, 5.0), (10.0, 20.0))
    (tmp_path / "bad.asc").write_text("ncols two\n")
    with pytest.raises(InvalidInput, match="ASCII grid"):
        read_grid(tmp_path / "bad.asc")
    with pytest.raises(InvalidInput, match="must end in"):
        read_grid(__file__)
    with pytest.raises(InvalidInput, match="not a file"):
        read_grid(tmp_path / "none.tif")


def test_geotiff(tmp_path):
    image = pytest.importorskip("PIL.Image")
    from PIL import TiffImagePlugin

    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[33550] = (5.0, 4.0, 0.0)
    info[33922] = (0.0, 0.0, 0.0, 100.0, 208.0, 0.0)
    for tag in (33550, 33922):
        info.tagtype[tag] = 12
    path = tmp_path / "density.tif"
    image.fromarray(values).save(path, tiffinfo=info)
    grid = read_grid(path)
    np.testing.assert_array_equal(grid.values, values[::-1])
    assert (grid.cell, grid.origin) == ((5.0, 4.0), (100.0, 200.0))
    image.fromarray(values).save(tmp_path / "plain.tif")
    with pytest.raises(InvalidInput, match="pixel scale"):
        read_grid(tmp_path / "plain.tif")


def test_tracts_on_a_raster(data_file):
    gpd = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    frame = gpd.GeoDataFrame(
        {"density": [10.0, 30.0]},
        geometry=[shapely.box(0, 0, 150, 200), shapely.box(150, 0, 200, 200)],
    )
    raster = Raster(2, 2, (100.0, 100.0))
    values = tract_values(frame, raster, column="density", supersample=4)
    np.testing.assert_allclose(values, [[10, 20], [10, 20]])
    with pytest.raises(InvalidInput, match="no column"):
        tract_values(frame, raster, column="people")
    paris = gpd.read_parquet(data_file("paris_iris_2014.parquet"))
    column = next(name for name in paris.columns if "dens" in name.lower())
    plane = Plane.projected("EPSG:2154", Box(2.2, 48.8, 2.5, 48.95))
    x, y = plane.from_degrees(2.30, 48.84).coordinates[0]
    real = tract_values(paris, Raster(10, 10, (500.0, 500.0), (x, y), plane), column=column)
    assert (real > 0).mean() > 0.9


@pytest.mark.parametrize("far", [2e17, -2e17, 1e300, 1.2e11])
@pytest.mark.parametrize("axis", [0, 1])
def test_maps_where_doubles_cannot_tell_places_in_a_cell_are_refused(far, axis):
    """2e17 m away doubles are 32 m apart: laws 14 m beside their levels broke them by 27%."""
    origin = (far, 0.0) if axis == 0 else (0.0, far)
    with pytest.raises(InvalidInput, match=r"within 2\^30 of its cells' sides"):
        PrivacyMap(np.full((2, 3), 1e-3), "100 m", origin)


def test_maps_anywhere_on_earth_lie_near_enough():
    for origin in ((2.1e7, 2.1e7), (-2.1e7, 1e7)):
        assert PrivacyMap(np.full((2, 3), 0.1), "1 m", origin).shape == (2, 3)
