"""Grids in any coordinate system become maps whose levels are where the file says they are.

The reference is rasterio's own sampling at places that pyproj transformed; whereish reads cells
and systems by itself, and goes through its own pinned operations.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whereish.data.density_maps import density_factor, map_from_grid
from whereish.data.rasters import Grid, read_grid
from whereish.data.systems import System
from whereish.data.warp import cell_areas_km2, on_plane
from whereish.errors import InvalidInput, MissingExtra
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("rasterio.shutil")
pyproj = pytest.importorskip("pyproj")
Affine = rasterio.Affine

CITY = (-75.16, 39.95)
BLOCK, BLOCKS = 4, 8
SLOPE, OFFSET = 1e-4, 0.4


def painted(rng: np.random.Generator, bands: int = 1) -> np.ndarray:
    """Whole densities, constant on blocks of cells, all different: a shift shows at once."""
    one = rng.permutation(BLOCKS * BLOCKS * bands) * 37.0 + 11.0
    blocks = one.reshape(bands, BLOCKS, BLOCKS)
    return np.kron(blocks, np.ones((BLOCK, BLOCK)))


@dataclass(frozen=True)
class Case:
    """A raster around the city: its system, its cells, and how it is read."""

    name: str
    crs: str | None = "EPSG:32618"
    step: float = 500.0
    angle: float = 0.0
    south_up: bool = False
    bands: int = 1
    dtype: str = "float32"
    tags: dict[str, str] = field(default_factory=dict)
    driver: str = "GTiff"
    suffix: str = ".tif"
    prj: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    plane: str = "EPSG:32618"
    nodata: float | None = None


CASES = (
    Case("degrees", "EPSG:4326", 1 / 120),
    Case("zone 17 against 18", "EPSG:32617", options={"crs": "EPSG:32618"}),
    Case("zone 17 by itself", "EPSG:32617", plane="EPSG:32617"),
    Case("feet", "EPSG:2272", 1600.0),
    Case("Mollweide", "ESRI:54009", 500.0),
    Case("Web Mercator", "EPSG:3857", 650.0),
    Case("rotated", angle=20.0),
    Case("turned by 90 degrees", angle=90.0),
    Case("pixels are points", tags={"AREA_OR_POINT": "Point"}),
    Case("nodata", nodata=1e20, options={"nodata": "0.4/km"}),
    Case("three bands", bands=3, dtype="uint16", options={"band": 2}),
    Case("south up", south_up=True),
    Case("float64", dtype="float64"),
    Case("ASCII with .prj", driver="AAIGrid", suffix=".asc"),
    Case(
        "ASCII without .prj",
        driver="AAIGrid",
        suffix=".asc",
        prj=False,
        options={"crs": "EPSG:32618"},
    ),
    Case(
        "ASCII in degrees without .prj",
        "EPSG:4326",
        1 / 120,
        driver="AAIGrid",
        suffix=".asc",
        prj=False,
        options={"grid_crs": "EPSG:4326"},
    ),
    Case("ERDAS", driver="HFA", suffix=".img"),
    Case("COG with overviews", driver="COG"),
)


def write(case: Case, folder: Path, rng: np.random.Generator) -> Path:
    values = painted(rng, case.bands).astype(case.dtype)
    if case.nodata is not None:
        values[:, BLOCK : 2 * BLOCK, BLOCK : 2 * BLOCK] = case.nodata
    count = BLOCK * BLOCKS
    to_crs = pyproj.Transformer.from_crs("EPSG:4326", case.crs, always_xy=True)
    x, y = to_crs.transform(*CITY)
    # Off every whole number, so that no centre of a cell of ours is on an edge of one of theirs.
    x, y = x + 0.137 * case.step, y + 0.211 * case.step
    cos, sin = (f(np.radians(case.angle)) * case.step for f in (np.cos, np.sin))
    down = 1.0 if case.south_up else -1.0
    a, b, d, e = cos, -sin * down, sin, cos * down
    transform = Affine(a, b, x - (a + b) * count / 2, d, e, y - (d + e) * count / 2)
    path = folder / f"raster{case.suffix}"
    meta: dict[str, Any] = {
        "driver": "GTiff",
        "height": count,
        "width": count,
        "count": case.bands,
        "dtype": case.dtype,
        "crs": case.crs,
        "transform": transform,
        "nodata": case.nodata,
    }
    plain = folder / "plain.tif"
    with rasterio.open(plain, "w", **meta) as out:
        out.update_tags(**case.tags)
        out.write(values)
    if case.driver == "GTiff":
        return plain
    options = {"BLOCKSIZE": "128", "OVERVIEWS": "IGNORE_EXISTING"} if case.driver == "COG" else {}
    rasterio.shutil.copy(plain, path, driver=case.driver, **options)
    if not case.prj:
        path.with_suffix(".prj").unlink()
        path.with_name(path.name + ".aux.xml").unlink(missing_ok=True)
    return path


def levels_at(made: PrivacyMap, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    places = made.plane.from_degrees(lon, lat).coordinates
    return made.values.ravel()[made.raster.locate(places)] * 1e3


def sampled(path: Path, case: Case, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with rasterio.open(path) as source:
        band = case.options.get("band", 1)
        found = np.array([v[0] for v in source.sample(zip(x, y, strict=True), indexes=band)])
    levels = SLOPE * found.astype(float) + OFFSET
    return np.where(found == case.nodata, 0.4, levels) if case.nodata else levels


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_levels_are_those_of_rasterio_at_the_same_places(case, tmp_path):
    rng = np.random.default_rng(20260914)
    path = write(case, tmp_path, rng)
    made = map_from_grid(path, slope=SLOPE, offset=OFFSET, per="km", **case.options)
    assert made.plane.crs == case.plane
    assert made.plane.proven
    assert made.plane.scale <= 1.01
    # 20 places chosen on the raster: middles of painted blocks.
    with rasterio.open(path) as source:
        at = rng.choice(BLOCKS * BLOCKS, 20, replace=False)
        corner = [(k % BLOCKS + 0.5) * BLOCK for k in at], [(k // BLOCKS + 0.5) * BLOCK for k in at]
        t = source.transform
    column, row = map(np.array, corner)
    x, y = t.a * column + t.b * row + t.c, t.d * column + t.e * row + t.f
    to_degrees = pyproj.Transformer.from_crs(case.crs, "EPSG:4326", always_xy=True)
    lon, lat = to_degrees.transform(x, y)
    np.testing.assert_allclose(levels_at(made, lon, lat), sampled(path, case, x, y), rtol=1e-12)
    # Middles of the map's cells, which may be anywhere on the raster: all that are on it.
    centres = made.raster.centres()
    lon, lat = made.plane.to_degrees(_points(made, centres))
    x, y = pyproj.Transformer.from_crs("EPSG:4326", case.crs, always_xy=True).transform(lon, lat)
    u, v = x - t.c, y - t.f
    column = (t.e * u - t.b * v) / (t.a * t.e - t.b * t.d)
    row = (t.a * v - t.d * u) / (t.a * t.e - t.b * t.d)
    count = BLOCK * BLOCKS
    inside = np.flatnonzero((row > 0) & (row < count) & (column > 0) & (column < count))
    ours = made.values.ravel()[inside] * 1e3
    np.testing.assert_allclose(ours, sampled(path, case, x[inside], y[inside]), rtol=1e-12)
    assert inside.size > 0.4 * count**2
    # Half a cell would show.
    beside = sampled(path, case, x[inside] + 0.6 * (t.a + t.b), y[inside] + 0.6 * (t.d + t.e))
    assert (beside != ours).mean() > 0.05


def _points(made: PrivacyMap, coordinates: np.ndarray) -> Any:
    from whereish.space.points import Points

    return Points(coordinates, made.plane)


def grid(case: Case, folder: Path, **more: Any) -> PrivacyMap:
    path = write(case, folder, np.random.default_rng(1))
    options = {"slope": SLOPE, "offset": OFFSET, "per": "km", **more}
    return map_from_grid(path, **options)


def test_a_contradicted_system_is_refused_naming_both(tmp_path):
    with pytest.raises(InvalidInput, match=r"EPSG:32617.*EPSG:32618"):
        grid(Case("zone", "EPSG:32617"), tmp_path, grid_crs="EPSG:32618")
    same = pyproj.CRS("EPSG:32617").to_wkt("WKT1_ESRI")
    assert grid(Case("zone", "EPSG:32617"), tmp_path, grid_crs=same).plane.crs == "EPSG:32617"


def test_an_undeclared_grid_one_zone_off_is_refused_naming_both(tmp_path):
    case = Case("asc", "EPSG:32617", driver="AAIGrid", suffix=".asc", prj=False)
    region = Box(-75.3, 39.9, -75.0, 40.0)
    with pytest.raises(InvalidInput, match=r"EPSG:32618.*EPSG:4326.*EPSG:32618") as error:
        grid(case, tmp_path, crs="EPSG:32618", region=region)
    assert "75" not in str(error.value).replace("32617", "")
    feet = Case("asc", "EPSG:2272", 1600.0, driver="AAIGrid", suffix=".asc", prj=False)
    with pytest.raises(InvalidInput, match="does not overlap"):
        grid(feet, tmp_path, crs="EPSG:32618", region=region)


def test_regions_swapped_elsewhere_smaller_and_larger(tmp_path):
    case = Case("utm")
    for west, south in ((39.9, -75.2), (2.2, 48.8), (284.8 - 180, 39.9)):
        with pytest.raises(InvalidInput, match="swapped"):
            grid(case, tmp_path, region=Box(west, south, west + 0.1, south + 0.05))
    whole = grid(case, tmp_path)
    small = Box(-75.18, 39.93, -75.15, 39.96)
    part = grid(case, tmp_path, region=small)
    assert part.plane.region == small
    assert part.shape[0] < whole.shape[0] / 3
    lon, lat = np.array([-75.179, -75.16, -75.151]), np.array([39.931, 39.95, 39.959])
    np.testing.assert_array_equal(levels_at(part, lon, lat), levels_at(whole, lon, lat))
    # What the grid does not cover is not in the region: no secret gets a level from nowhere.
    larger = grid(case, tmp_path, region=Box(-76.0, 39.5, -75.16, 40.5))
    assert larger.plane.region is not None
    assert larger.plane.region.x_high == -75.16
    assert larger.plane.region.x_low > -75.3
    with pytest.raises(InvalidInput, match="declared region"):
        larger.plane.from_degrees([-75.9], [39.95])


def test_a_turn_of_longitudes_and_the_antimeridian(tmp_path):
    values = np.arange(36.0 * 18).reshape(18, 36) + 1

    def world(west: float) -> Path:
        path = tmp_path / "world.tif"
        transform = Affine(10.0, 0, west, 0, -10.0, 90.0)
        with rasterio.open(
            path,
            "w",
            driver="GTiff",
            height=18,
            width=36,
            count=1,
            dtype="float64",
            crs="EPSG:4326",
            transform=transform,
        ) as out:
            out.write(values if west == -180 else np.roll(values, 18, axis=1), 1)
        return path

    region = Box(172.0, -25.0, 188.0, -12.0)  # Fiji
    for west in (-180.0, 0.0):
        found = read_grid(world(west), region=region)
        assert found.shape[1] < 12
        placed = on_plane(found, region=region, cell="50 km", resample="nearest")
        assert placed.raster.plane.crs == (
            "+proj=laea +lat_0=-18.5 +lon_0=180.0 +datum=WGS84 +units=m"
        )
        made = PrivacyMap(
            placed.values * 1e-6, placed.raster.cell, placed.raster.origin, placed.raster.plane
        )
        got = levels_at(made, np.array([175.0, 184.0, -175.0]), np.array([-20.5, -15.0, -15.0]))
        expected = np.array([values[11, 35], values[10, 0], values[10, 0]])
        np.testing.assert_allclose(got, expected * 1e-3)
    with pytest.raises(InvalidInput, match="90 degrees wide"):
        map_from_grid(world(-180.0), slope=1.0, offset=1.0, per="km")


def test_cells_without_data_are_refused_nearest_or_at_a_level(tmp_path):
    case = Case("nodata", nodata=-9999.0)
    with pytest.raises(InvalidInput, match=r"16 of 1,024 cells of the map have no data"):
        grid(case, tmp_path)
    hole = (slice(6 * BLOCK, 7 * BLOCK), slice(BLOCK, 2 * BLOCK))
    tight = grid(case, tmp_path, nodata="0.05/km").values
    assert (tight[hole] == 0.05e-3).all()
    assert tight.min() == 0.05e-3
    assert (tight == 0.05e-3).sum() == BLOCK**2
    near = grid(case, tmp_path, nodata="nearest").values
    around = {float(near[6 * BLOCK - 1, BLOCK]), float(near[7 * BLOCK, BLOCK])}
    around |= {float(near[6 * BLOCK, BLOCK - 1]), float(near[6 * BLOCK, 2 * BLOCK])}
    assert set(np.unique(near[hole])) <= around
    np.testing.assert_array_equal(
        np.delete(near, np.s_[6 * BLOCK : 7 * BLOCK], 0),
        np.delete(tight, np.s_[6 * BLOCK : 7 * BLOCK], 0),
    )
    # A region beside the hole asks for nothing.
    far = grid(case, tmp_path, region=Box(-75.16, 39.90, -75.12, 39.94))
    assert np.isfinite(far.values).all()
    with pytest.raises(InvalidInput, match="level per length"):
        grid(case, tmp_path, nodata="zero")
    empty = Grid(np.full((3, 3), np.nan), (1e3, 1e3), (0.0, 0.0))
    with pytest.raises(InvalidInput, match="no cell of the grid has data"):
        map_from_grid(empty, slope=1.0, offset=1.0, per="km", nodata="nearest")


def test_marks_without_a_declaration_are_no_densities(tmp_path):
    path = write(Case("nodata", nodata=1e20), tmp_path, np.random.default_rng(1))
    with rasterio.open(path, "r+") as source:
        source.nodata = None
    with pytest.raises(InvalidInput, match="marks of cells without data"):
        map_from_grid(path, slope=SLOPE, offset=OFFSET, per="km")


def test_nothing_is_clipped_unless_asked(tmp_path):
    values = np.array([[0.0, 1e5]])
    made = Grid(values, (1e3, 1e3), (0.0, 0.0))
    free = map_from_grid(made, slope=1e-4, offset=0.4, per="km").values * 1e3
    np.testing.assert_allclose(free, [[0.4, 10.4]])
    asked = map_from_grid(made, slope=1e-4, offset=0.4, per="km", high=2.0).values * 1e3
    np.testing.assert_allclose(asked, [[0.4, 2.0]])


def test_density_units(tmp_path):
    assert density_factor("people/mi2") == pytest.approx(0.386102159)
    for good in ("people/km2", "inhabitants / km²", "people per km^2"):
        assert density_factor(good) == 1.0
    for bad in ("people", "km2", "people/km", "people/acre", "people/ha2", "people/cell"):
        with pytest.raises(InvalidInput, match="density unit"):
            density_factor(bad)
    made = Grid(np.array([[100.0]]), (500.0, 500.0), (0.0, 0.0))
    common: dict[str, Any] = {"slope": 1e-3, "offset": 0.0, "per": "km"}
    for unit, formula, level in (
        ("people/km2", None, 0.1),
        ("people/mi2", None, 0.1),
        ("people/mi2", "people/km2", 0.0386102159),
        ("people/ha", "people/km2", 10.0),
        ("people/cell", None, 0.4),
        ("people/cell", "people/ha", 0.004),
    ):
        found = map_from_grid(made, density_unit=unit, formula_unit=formula, **common)
        assert found.values[0, 0] * 1e3 == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize(("crs", "step"), [("EPSG:4326", 0.05), ("EPSG:32618", 5e3)])
def test_areas_of_cells_are_those_of_the_ellipsoid(crs, step):
    system = System.of(crs)
    x, y = system.from_degrees(np.array([-75.16]), np.array([39.95]))
    made = Grid(np.ones((9, 7)), (step, step), (float(x[0]), float(y[0])), system=system)
    areas = cell_areas_km2(made)
    geod = pyproj.Geod(ellps="WGS84")
    for row, column in ((0, 0), (8, 6), (4, 2)):
        at = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) + np.array([column, row])
        lon, lat = system.to_degrees(*made.places(at[:, 0].astype(float), at[:, 1].astype(float)))
        area, _ = geod.polygon_area_perimeter(lon, lat)
        assert areas[row, column] == pytest.approx(abs(area) / 1e6, rel=2e-6)


def test_bicubic_is_that_of_gdal(tmp_path):
    """At places inside: GDAL's warper with the same kernel, on the same finer cells."""
    from rasterio.warp import Resampling, reproject

    rng = np.random.default_rng(3)
    x, y = np.meshgrid(np.arange(12.0), np.arange(12.0))
    smooth = 100 + 3 * x + y**2 / 5 + np.sin(x) + np.cos(y) + rng.normal(size=(12, 12)) / 9
    made = PrivacyMap(smooth / 1e5, "500 m")
    finer = made.supersampled(3, method="bicubic")
    theirs = np.empty((36, 36))
    src = Affine(500.0, 0, 0, 0, -500.0, 6000.0)
    dst = Affine(500 / 3, 0, 0, 0, -500 / 3, 6000.0)
    reproject(
        smooth[::-1].copy(),
        theirs,
        src_transform=src,
        dst_transform=dst,
        src_crs="EPSG:32618",
        dst_crs="EPSG:32618",
        resampling=Resampling.cubic,
    )
    inner = np.s_[6:-6, 6:-6]
    np.testing.assert_allclose(finer.values[inner] * 1e5, theirs[::-1][inner], rtol=1e-6)
    bilinear = made.supersampled(3).values
    assert np.abs(bilinear[inner] * 1e5 - theirs[::-1][inner]).max() > 0.1
    spike = np.full((6, 6), 1e-3)
    spike[3, 3] = 1e-2
    peaked = PrivacyMap(spike, "500 m").supersampled(4, method="bicubic").values
    assert peaked.min() >= 1e-3
    assert peaked.max() <= 1e-2
    with pytest.raises(InvalidInput, match="method"):
        made.supersampled(2, method="lanczos")  # type: ignore[arg-type]


def test_larger_cells_average(tmp_path):
    rng = np.random.default_rng(5)
    values = rng.integers(0, 9000, (32, 32)).astype(float)
    system = System.of("EPSG:32618")
    made = Grid(values, (500.0, 500.0), (480_000.0, 4_400_000.0), system=system)
    coarse = on_plane(made, cell="2000 m").values
    np.testing.assert_allclose(coarse, values.reshape(8, 4, 8, 4).mean(axis=(1, 3)), rtol=1e-12)
    values[:2, :4] = np.nan
    holed = on_plane(made, cell="2000 m").values
    assert holed[0, 0] == pytest.approx(np.nanmean(values[:4, :4]))
    values[:3, :4] = np.nan
    assert np.isnan(on_plane(made, cell="2000 m").values[0, 0])
    with pytest.raises(InvalidInput, match="resample"):
        on_plane(made, cell="2000 m", resample="best")  # type: ignore[arg-type]


def test_bands_drivers_and_what_is_no_grid(tmp_path):
    path = write(Case("bands", bands=3), tmp_path, np.random.default_rng(1))
    assert "band 1 of 3" in repr(read_grid(path))
    for band in (0, 4):
        with pytest.raises(InvalidInput, match="from 1 to 3"):
            read_grid(path, band=band)
    # A file that sends GDAL elsewhere is none of the formats, whatever its name.
    vrt = tmp_path / "other.tif"
    vrt.write_text(f"<VRTDataset rasterXSize='1' rasterYSize='1'>{path}</VRTDataset>")
    with pytest.raises(InvalidInput, match="cannot be read as a grid"):
        read_grid(vrt)
    plain = tmp_path / "picture.tif"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(
            plain, "w", driver="GTiff", height=2, width=2, count=1, dtype="uint8"
        ) as out:
            out.write(np.ones((1, 2, 2), np.uint8))
    with pytest.raises(InvalidInput, match="pixel scale"):
        read_grid(plain)
    with pytest.raises(InvalidInput, match="at most 100 cells"):
        read_grid(path, most_cells=100)
    assert read_grid(path, most_cells=500, region=Box(-75.17, 39.94, -75.15, 39.95)).shape < (16,)
    with pytest.raises(InvalidInput, match="geographic or projected"):
        read_grid(path, crs="EPSG:5773")


def test_scales_and_offsets_of_a_band_are_used(tmp_path):
    path = write(Case("scaled", dtype="uint16"), tmp_path, np.random.default_rng(1))
    raw = read_grid(path).values
    with rasterio.open(path, "r+") as source:
        source.scales, source.offsets = (0.5,), (3.0,)
    np.testing.assert_array_equal(read_grid(path).values, raw * 0.5 + 3.0)


def test_without_rasterio_the_extra_is_named(tmp_path, monkeypatch):
    import sys

    path = write(Case("utm"), tmp_path, np.random.default_rng(1))
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingExtra, match=r"rasterio.*whereish\[geo\]"):
        read_grid(path)


@pytest.mark.parametrize(
    ("text", "crs"),
    [
        ("Projection UTM\nZone 18\nDatum WGS84\nUnits METERS\nParameters\n", "EPSG:32618"),
        ("Projection UTM\nZone -18\nDatum WGS84\nUnits METERS\nParameters\n", "EPSG:32718"),
        ("Projection GEOGRAPHIC\nDatum WGS84\nUnits DD\nParameters\n", "OGC:CRS84"),
        (pyproj.CRS("EPSG:2272").to_wkt("WKT1_ESRI"), "EPSG:2272"),
        ("Projection LAMBERT\nDatum NAD27\n", None),
        ("a projection", None),
        ("", None),
    ],
)
def test_prj_files(tmp_path, text, crs):
    path = tmp_path / "grid.asc"
    path.write_text("ncols 1\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n5\n")
    path.with_suffix(".prj").write_text(text)
    if crs is None:
        with pytest.raises(InvalidInput, match=r"grid\.prj must hold"):
            read_grid(path)
    else:
        found = read_grid(path).system
        assert found is not None
        assert found.text == crs


def test_the_proposed_plane_is_proven_and_close_to_one():
    for region, crs in (
        (Box(-75.5, 39.7, -74.8, 40.2), "EPSG:32618"),
        (Box(151.0, -34.1, 151.4, -33.6), "EPSG:32756"),
        (Box(179.0, -18.0, 181.0, -17.0), None),  # between two zones, across the antimeridian
        (Box(177.1, -18.2, 179.0, -17.0), "EPSG:32760"),
        (Box(-10.0, 36.0, 3.0, 44.0), None),
        (Box(20.0, 84.5, 30.0, 86.0), None),
        (Box(5.5, 60.0, 6.5, 60.5), None),
    ):
        plane = Plane.over(region)
        assert plane.proven
        assert plane.scale < 1.01
        if crs is not None:
            assert plane.crs == crs
