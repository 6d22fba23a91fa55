"""`sanitize --mechanism` and `export`: a saved map in use, and in QGIS."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import whereish as wh
from whereish.errors import InvalidInput, MissingExtra, WhereishError
from whereish.interfaces.cli import cli

REGION = wh.Box(1.62, 48.30, 1.78, 48.40)


def command(*arguments: object) -> None:
    cli.main(list(map(str, arguments)), prog_name="whereish", standalone_mode=False)


def refused(words: str, *arguments: object) -> None:
    with pytest.raises((WhereishError, click.UsageError), match=words):
        command(*arguments)


@pytest.fixture(scope="module")
def made() -> wh.PrivacyMap:
    plane = wh.Plane.over(REGION)
    x, y = plane.from_degrees([1.7], [48.35]).coordinates[0]
    levels = np.random.default_rng(4).uniform(0.4e-3, 2e-3, (8, 10))
    return wh.PrivacyMap(levels, (1000.0, 1250.0), (x - 5000, y - 5000), plane)


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("map") / "map.npz"
    wh.EikonalMechanism.build(made, places="cells").save(path)
    return path


@pytest.fixture
def people(tmp_path) -> Path:
    path = tmp_path / "people.csv"
    rows = pa.table({"lon": [1.7] * 40, "lat": [48.35] * 40, "who": list(range(40))})
    csv.write_csv(rows, path)
    return path


def test_a_saved_map_sanitizes_a_file(saved, people, tmp_path, capsys):
    out = tmp_path / "out.csv"
    columns = ["--lon", "lon", "--lat", "lat"]
    command("sanitize", people, "-o", out, *columns, "--mechanism", saved, "--keep", "who")
    said = capsys.readouterr().out
    assert "cells of a privacy map" in said
    assert said.splitlines()[1].startswith("Levels run from ")  # not one level for all places
    released = csv.read_csv(out)
    assert released["who"].to_pylist() == list(range(40))
    # Every report is the centre of a cell of the map or its frame, in degrees.
    mechanism = wh.load(saved)
    centres = mechanism.reports.centres()
    places = _unchecked(mechanism.map.plane, released["lon"], released["lat"])
    off = np.hypot(*(places[:, None] - centres[None]).transpose(2, 0, 1)).min(axis=1)
    assert off.max() < 0.02
    assert len(np.unique(places.round(), axis=0)) > 5
    refused("say how much noise", "sanitize", people, "-o", tmp_path / "b.csv", *columns)
    both = ["--mechanism", saved, "--epsilon", "1/km"]
    refused("has its own levels", "sanitize", people, "-o", tmp_path / "b.csv", *columns, *both)
    absent = ["--mechanism", tmp_path / "none.npz"]
    refused("no file", "sanitize", people, "-o", tmp_path / "b.csv", *columns, *absent)
    assert not (tmp_path / "b.csv").exists()


def _unchecked(plane: wh.Plane, lon: pa.Array, lat: pa.Array) -> np.ndarray:
    """Reports may lie beyond the region, where from_degrees takes no secrets."""
    operation = plane.operation
    assert operation is not None
    return np.column_stack(operation.transformer().transform(lon.to_numpy(), lat.to_numpy()))


def test_a_saved_map_sanitizes_a_frame_like_the_built_one(saved):
    table = pa.table({"lon": [1.7, 1.68], "lat": [48.35, 48.33]})
    common = {"lon": "lon", "lat": "lat", "insecure_seed": 5}
    built = wh.sanitize(table, mechanism=wh.load(saved), **common)
    for given in (saved, str(saved)):
        assert wh.sanitize(table, mechanism=given, **common).equals(built)
    outside = pa.table({"lon": [48.35], "lat": [1.7]})
    with pytest.raises(InvalidInput, match="declared region"):
        wh.sanitize(outside, mechanism=saved, lon="lon", lat="lat")


def test_a_query_reports_no_places(made, tmp_path):
    path = tmp_path / "halves.npz"
    halves = np.repeat(["east", "west"], 5)[None].repeat(8, 0)
    wh.EikonalMechanism.build(made, query=halves).save(path)
    with pytest.raises(InvalidInput, match="answers, not places"):
        wh.sanitize(pa.table({"lon": [1.7], "lat": [48.35]}), mechanism=path, lon="lon", lat="lat")


def test_levels_are_read_back_by_rasterio_where_they_are(made, saved, tmp_path, capsys):
    rasterio = pytest.importorskip("rasterio")
    from pyproj import CRS, Transformer

    out = tmp_path / "levels.tif"
    command("export", saved, out)
    assert "8 x 10 cells, 2 bands, EPSG:32631" in capsys.readouterr().out
    mechanism = wh.load(saved)
    with rasterio.open(out) as source:
        assert CRS.from_wkt(source.crs.to_wkt()) == CRS("EPSG:32631")
        asked, used = source.read()
        assert source.descriptions == ("level asked for, per km", "level in use, per km")
        assert source.tags()["WHEREISH_MAP_SHA256"] == made.digest()
        np.testing.assert_array_equal(asked, made.values[::-1] * 1e3)
        np.testing.assert_array_equal(used, (made.values * 1e3 * mechanism.lowered)[::-1])
        # At places in degrees, by GDAL's own way.
        rng = np.random.default_rng(2)
        lon, lat = rng.uniform(1.65, 1.75, 20), rng.uniform(48.32, 48.38, 20)
        x, y = Transformer.from_crs(4326, 32631, always_xy=True).transform(lon, lat)
        theirs = [v[0] for v in source.sample(zip(x, y, strict=True), indexes=1)]
    ours = made.values.ravel()[made.raster.locate(made.plane.from_degrees(lon, lat).coordinates)]
    np.testing.assert_allclose(theirs, ours * 1e3, rtol=1e-15)
    # And back into a map: the levels are the formula 1*d.
    again = wh.map_from_grid(out, slope=1.0, offset=0.0, per="km")
    np.testing.assert_allclose(again.values, made.values, rtol=1e-14)
    assert again.raster.cell == made.raster.cell
    np.testing.assert_allclose(again.origin, made.origin, atol=1e-6)
    refused("exists", "export", saved, out)
    command("export", saved, out, "--overwrite", "--per", "m")
    with rasterio.open(out) as source:
        np.testing.assert_array_equal(source.read(1), made.values[::-1])


def test_what_has_no_levels_is_not_exported(tmp_path, monkeypatch, saved):
    import sys

    channel = tmp_path / "channel.npz"
    wh.tight_channel([[0, 0], [100, 0]], "0.01/m").save(channel)
    refused("must hold a mechanism of a privacy map", "export", channel, tmp_path / "a.tif")
    refused("must end in .tif", "export", saved, tmp_path / "a.png")
    line = tmp_path / "line.npz"
    wh.EikonalMechanism.build(wh.PrivacyMap(np.full(9, 1e-3), "1 km")).save(line)
    refused("along a line", "export", line, tmp_path / "a.tif")
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingExtra, match=r"whereish\[geo\]"):
        command("export", saved, tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()
