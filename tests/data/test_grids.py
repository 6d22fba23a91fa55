"""What sources of privacy maps refuse: what cannot be meant, before work is done for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whereish as wh
from whereish.data import grids as map_sources
from whereish.data.grids import map_from_zones, read_grid, tract_values
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster

RASTER = Raster(4, 6, (100.0, 100.0))
HEADER = "ncols 3\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\n"


def frame(crs: str | None = None, **columns: Any) -> Any:
    gpd = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    boxes = [shapely.box(0, 0, 300, 400), shapely.box(300, 0, 600, 400)]
    return gpd.GeoDataFrame(columns or {"density": [10.0, 30.0]}, geometry=boxes, crs=crs)


def values(column: str, table: Any, raster: Raster = RASTER, **more: Any) -> Any:
    return tract_values(table, raster, column=column, **more)


def test_a_column_of_identifiers_is_no_density():
    for entries in (
        ["1_1_1", "1_1_2"],
        ["111", "112"],
        [True, False],
        [b"1", b"2"],
        np.array([1 + 1j, 2]),
        np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
    ):
        with pytest.raises(InvalidInput, match="identifiers"):
            values("RADIO_ID", frame(RADIO_ID=entries))


def test_densities_may_be_missing_but_not_negative_or_infinite():
    pd = pytest.importorskip("pandas")
    for entries in ([10, 30], np.array([10, 30], np.float32), pd.array([10, 30], dtype="Int64")):
        assert values("density", frame(density=entries)).max() == 30
    missing = values("density", frame(density=pd.array([10, None], dtype="Int64")))
    assert missing[0, -1] == 0.0  # the tightest
    for wrong in (-1.0, np.inf, -np.inf):
        with pytest.raises(InvalidInput, match="1 of 2"):
            values("density", frame(density=[10.0, wrong]))


def test_a_map_without_a_tract_is_refused():
    far = Raster(4, 6, (100.0, 100.0), (10_000.0, 0.0))
    with pytest.raises(InvalidInput, match="no tract lies on the map"):
        values("density", frame(), far)
    touched = Raster(4, 6, (100.0, 100.0), (500.0, 0.0))
    assert values("density", frame(), touched)[0, 0] == 30


def test_tracts_must_agree_with_the_plane_on_coordinates():
    plane = Plane.projected("EPSG:2154", Box(2.2, 48.8, 2.5, 48.95))
    raster = Raster(4, 6, (100.0, 100.0), (650000.0, 6860000.0), plane)
    with pytest.raises(InvalidInput, match="coordinate system"):
        values("density", frame(), raster)
    with pytest.raises(InvalidInput, match="degrees"):
        values("density", frame("EPSG:4326"))


def test_tracts_are_looked_up_in_blocks_of_rows(monkeypatch):
    table = frame(density=np.array([7.0, 9.0]))
    whole = values("density", table, supersample=2)
    monkeypatch.setattr(map_sources, "_BLOCK", 30)
    np.testing.assert_array_equal(values("density", table, supersample=2), whole)
    np.testing.assert_array_equal(whole, [[7, 7, 7, 9, 9, 9]] * 4)


def test_a_raster_of_too_many_places_is_refused_before_the_file_is_read():
    huge = Raster(5000, 5000, (1.0, 1.0))
    with pytest.raises(InvalidInput, match="places to look up"):
        values("density", "no file.parquet", huge)
    with pytest.raises(InvalidInput, match="places to look up"):
        map_from_zones("no file.geojson", huge, default="1/km")
    for bad in (0, 1.5, "3"):
        with pytest.raises(InvalidInput, match="supersample"):
            values("density", frame(), supersample=bad)
    with pytest.raises(InvalidInput, match="GeoParquet"):
        values("density", "no file.parquet")


def zones(*rings: Any, level: Any = "0.5/km") -> dict[str, Any]:
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"epsilon": level},
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            }
            for ring in rings
        ],
    }


def square(x: float, y: float, side: float) -> list[list[float]]:
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def test_a_zone_that_holds_no_cell_is_refused_since_it_would_be_lost():
    for lost in (square(60, 60, 30), square(10_000, 0, 500)):
        with pytest.raises(InvalidInput, match="zone 1 must hold the centre"):
            map_from_zones(zones(square(0, 0, 200), lost), RASTER, default="1/km")
    made = map_from_zones(zones(square(0, 0, 200), square(40, 40, 30)), RASTER, default="1/km")
    assert made.values[0, 0] == 0.5e-3


def test_zones_of_another_form_are_refused_in_a_sentence(tmp_path: Path):
    path = tmp_path / "zones.geojson"
    for text in ("", "[]", "{}", '{"type": "FeatureCollection"}', json.dumps(zones())):
        path.write_text(text)
        with pytest.raises(InvalidInput, match="FeatureCollection"):
            map_from_zones(path, RASTER, default="1/km")
    for ring in ([["0", "0"]] * 4, [[0, 0], [1, 1], [0, 0]], [0, 1, 2, 3], [[0]] * 4):
        with pytest.raises(InvalidInput, match="zone 0"):
            map_from_zones(zones(ring), RASTER, default="1/km")
    with pytest.raises(InvalidInput, match="zone 0: epsilon must be a level per length"):
        map_from_zones(zones(square(0, 0, 200), level="1_1/km"), RASTER, default="1/km")
    for broken in (7, {"geometry": [1]}, {"geometry": {"type": "Polygon"}}):
        made = zones(square(0, 0, 200))
        made["features"] = [{**made["features"][0], **broken} if broken != 7 else 7]
        with pytest.raises(InvalidInput, match="zone 0 must"):
            map_from_zones(made, RASTER, default="1/km")


def test_a_zone_may_say_its_mean_error():
    def level_of(error: str) -> wh.Epsilon:
        return wh.wanted_level(mean_error=error)

    made = zones(square(0, 0, 200))
    made["features"][0]["properties"] = {"mean_error": "600 m", "name": "clinic"}
    levels = map_from_zones(made, RASTER, default="1/km", of_error=level_of).values
    assert levels[0, 0] == wh.wanted_level(mean_error="600 m").per_m
    assert levels[-1, -1] == 1e-3
    for properties, why in (
        ({"mean_error": "600 m", "epsilon": "1/km"}, "one of them"),
        ({"mean_error": 600}, "such as '300 m'"),
        ({}, "such as '300 m'"),
        (None, "such as '300 m'"),
        ({"mean_error": "600"}, "zone 0: mean_error must be a number and a unit"),
    ):
        made["features"][0]["properties"] = properties
        with pytest.raises(InvalidInput, match=why):
            map_from_zones(made, RASTER, default="1/km", of_error=level_of)
    made["features"][0]["properties"] = {"mean_error": "600 m"}
    with pytest.raises(InvalidInput, match=r"'epsilon' such as '0\.5/km'$"):
        map_from_zones(made, RASTER, default="1/km")


def density(grid: map_sources.Grid) -> PrivacyMap:
    return PrivacyMap.from_density(
        grid.values, slope=1e-4, offset=0.4, high=2.0, per="km", cell=grid.cell
    )


@pytest.mark.parametrize(
    ("mark", "entry"),
    [
        ("1e20", "1.00000002004087734e+20"),  # as single precision is printed by some writers
        ("1.00000002004087734e+20", "1e+20"),
        ("-9999", "-9999.0"),
        ("-3.4028234663852886e+38", "-3.40282347e+38"),
        ("nan", "nan"),
    ],
)
def test_ascii_marks_of_missing_data_are_holes(tmp_path, mark, entry):
    path = tmp_path / "density.asc"
    path.write_text(f"{HEADER}NODATA_value {mark}\n1 2 3\n4 5 {entry}\n")
    grid = read_grid(path)
    assert np.isnan(grid.values).sum() == 1
    assert np.isnan(grid.values[0, 2])
    with pytest.raises(InvalidInput, match="fill holes"):
        density(grid)


def test_ascii_headers_are_numbers_and_sizes_are_checked_first(tmp_path):
    path = tmp_path / "density.asc"
    for wrong in ("ncols 3", "cellsize 5", "xllcorner 10"):
        name, value = wrong.split()
        for bad in (f"{value}_0", "nan", "inf", "٣", "1e999"):
            path.write_text(HEADER.replace(wrong, f"{name} {bad}") + "1 2 3\n4 5 6\n", "utf-8")
            with pytest.raises(InvalidInput, match="ASCII grid"):
                read_grid(path)
    path.write_text(HEADER + "1 2 3\n4 5 6_0\n")
    with pytest.raises(InvalidInput, match="ASCII grid"):
        read_grid(path)
    path.write_text(HEADER.replace("nrows 2", "nrows 1000000") + "never read\n")
    with pytest.raises(InvalidInput, match="at most 4 cells; it has 1000000 x 3"):
        read_grid(path, most_cells=4)


def tiff(path: Path, array: np.ndarray, nodata: str | None = None, keys: Any = None) -> Path:
    image = pytest.importorskip("PIL.Image")
    from PIL import TiffImagePlugin

    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[33550] = (5.0, 5.0, 0.0)
    info[33922] = (0.0, 0.0, 0.0, 100.0, 200.0, 0.0)
    for tag in (33550, 33922):
        info.tagtype[tag] = 12
    if nodata is not None:
        info[42113] = nodata
        info.tagtype[42113] = 2
    if keys is not None:
        info[34735] = keys
        info.tagtype[34735] = 3
    image.fromarray(array).save(path, tiffinfo=info)
    return path


@pytest.mark.parametrize(
    "mark", ["1e20", "1e+20", "1.00000002004087734e+20", "100000000000000000000"]
)
def test_float32_nodata_is_a_hole_and_not_the_loosest_level(tmp_path, mark):
    array = np.array([[4000.0, 5000.0], [6000.0, 1e20]], np.float32)
    grid = read_grid(tiff(tmp_path / "density.tif", array, mark))
    np.testing.assert_array_equal(np.isnan(grid.values), [[False, True], [False, False]])
    with pytest.raises(InvalidInput, match="fill holes"):
        density(grid)
    unmarked = read_grid(tiff(tmp_path / "density.tif", array))
    with pytest.raises(InvalidInput, match="marks of cells without data"):
        density(unmarked)


def test_whole_number_tiffs_keep_their_marks(tmp_path):
    array = np.array([[4, 5], [6, 255]], np.uint8)
    assert np.isnan(read_grid(tiff(tmp_path / "a.tif", array, "255")).values).sum() == 1
    assert not np.isnan(read_grid(tiff(tmp_path / "a.tif", array, "-9999")).values).any()
    with pytest.raises(InvalidInput, match="at most 3 cells"):
        read_grid(tiff(tmp_path / "a.tif", array), most_cells=3)


def test_keys_of_a_tiff_say_its_system_and_whether_pixels_are_points(tmp_path):
    """Written without GDAL: the tie point (100, 200) is a corner, or the middle of a pixel."""
    array = np.full((2, 2), 4000.0, np.float32)

    def keys(*entries: tuple[int, int]) -> tuple[int, ...]:
        return (1, 1, 0, len(entries), *(k for key, value in entries for k in (key, 0, 1, value)))

    for system, stated in (
        ([(1024, 1), (3072, 32618)], "EPSG:32618"),
        ([(1024, 2), (2048, 4326)], "EPSG:4326"),
        ([(1024, 1)], None),
    ):
        for kind, origin in ((1, (100.0, 190.0)), (2, (97.5, 192.5))):
            grid = read_grid(tiff(tmp_path / "a.tif", array, keys=keys(*system, (1025, kind))))
            assert (None if grid.system is None else grid.system.text) == stated
            assert (grid.origin, grid.cell) == (origin, (5.0, 5.0))


def test_tracts_are_read_by_gdal(tmp_path):
    table = frame("EPSG:32618", density=[10.0, 30.0])
    raster = Raster(4, 6, (100.0, 100.0))
    expected = values("density", frame(), raster)
    for name in ("t.gpkg", "t.shp", "t.geojson", "t.fgb", "t.parquet"):
        path = tmp_path / name
        stored = table.to_crs(4326) if name == "t.geojson" else table
        stored.to_parquet(path) if name == "t.parquet" else stored.to_file(path)
        read = map_sources.read_tracts(path)
        region = map_sources.tract_region(read)
        plane = Plane.projected("EPSG:32618", region)
        on = Raster(4, 6, (100.0, 100.0), (0.0, 0.0), plane)
        np.testing.assert_allclose(values("density", read, on), expected)
    other = frame("EPSG:32618", density=[1.0, 2.0])
    other.to_file(tmp_path / "t.gpkg", layer="other")
    assert map_sources.read_tracts(tmp_path / "t.gpkg", layer="other")["density"].max() == 2.0
    for name, layer in (("t.gpkg", "third"), ("none.gpkg", None)):
        with pytest.raises(InvalidInput, match="by GDAL"):
            map_sources.read_tracts(tmp_path / name, layer=layer)
    with pytest.raises(InvalidInput, match="state their coordinate system"):
        map_sources.tract_region(frame())
