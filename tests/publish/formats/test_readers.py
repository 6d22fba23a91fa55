"""Real readers of what comes out: GeoPandas, DuckDB, GDAL and its ogrinfo."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import geopandas as gpd
import pyarrow.parquet as pq
import pyogrio
import pytest

import whereish as wh
from stress.damage import (
    EPS,
    ROWS,
    people,
    write,
)
from stress.ogrinfo import POINT, layer, ogrinfo, ogrinfo_lacks


@pytest.fixture(scope="module")
def geoparquet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    write(folder / "in.geoparquet")
    wh.sanitize(folder / "in.geoparquet", folder / "out.parquet", epsilon=EPS, keep=["who"])
    return folder / "out.parquet"


def test_geopandas_reads_it(geoparquet):
    frame = gpd.read_parquet(geoparquet)
    assert frame.crs == "EPSG:4326"
    assert len(frame) == ROWS
    assert set(frame.geom_type) == {"Point"}
    assert frame["who"].tolist() == people()["who"].tolist()


def test_duckdb_reads_it(geoparquet):
    import duckdb

    kind, count = duckdb.sql(
        f"SELECT any_value(typeof(geometry)), count(*) FROM '{geoparquet}'"
    ).fetchall()[0]
    assert count == ROWS
    assert kind.startswith("GEOMETRY")
    assert "WGS 84" in kind or "4326" in kind


GDAL_INFO = """
import json, sys, pyogrio
info = pyogrio.read_info(sys.argv[1], force_feature_count=True)
frame = pyogrio.read_arrow(sys.argv[1])[1]
told = [info[name] for name in ("driver", "features", "crs", "geometry_type")]
print(json.dumps([*told, len(frame)]))
"""


def test_gdal_reads_it(geoparquet, tmp_path):
    """GDAL's ADBC driver reads GeoParquet through DuckDB's library, which Python ships."""
    if "ADBC" not in pyogrio.list_drivers() and "Parquet" not in pyogrio.list_drivers():
        pytest.skip("this GDAL has neither the Parquet nor the ADBC driver")
    import _duckdb

    (tmp_path / "libduckdb.so").symlink_to(_duckdb.__file__)
    done = subprocess.run(
        [sys.executable, "-c", GDAL_INFO, str(geoparquet)],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    driver, features, crs, kind, rows = json.loads(done.stdout.splitlines()[-1])
    assert driver in ("ADBC", "Parquet")
    assert (features, crs, kind, rows) == (ROWS, "EPSG:4326", "Point", ROWS)


@pytest.fixture(scope="module")
def ogrinfo_with_parquet():
    if lacks := ogrinfo_lacks():
        pytest.skip(lacks)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (None, "no ogrinfo is installed"),
        ("echo it broke >&2; exit 127", "ogrinfo does not run: it broke"),
        ("echo '  GPX -vector-'", "has no Parquet driver"),
        ("echo '  Parquet -vector-'", None),
    ],
)
def test_an_ogrinfo_that_is_broken_or_missing(tmp_path, monkeypatch, program, reason):
    if program is not None:
        (tmp_path / "ogrinfo").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "ogrinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = ogrinfo_lacks()
    assert said is None if reason is None else reason in said


@pytest.mark.usefixtures("ogrinfo_with_parquet")
def test_ogrinfo_reads_it(geoparquet):
    said = ogrinfo("-al", "-so", geoparquet)
    assert "using driver `Parquet' successful" in said
    assert layer(said) == ("Point", ROWS, "EPSG:4326")
    assert "\nGeometry Column = geometry\n" in said
    assert "\nwho: String" in said


@pytest.mark.usefixtures("ogrinfo_with_parquet")
def test_ogrinfo_reads_every_report(geoparquet):
    """Read by GDAL row by row, the geometries are the ones that were written."""
    read = [tuple(map(float, p)) for p in POINT.findall(ogrinfo("-al", geoparquet))]
    written = gpd.read_parquet(geoparquet).geometry
    assert read == list(zip(written.x, written.y, strict=True))


def test_the_geo_metadata_says_no_extent(geoparquet):
    geo = json.loads(pq.read_schema(geoparquet).metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert geo["primary_column"] == "geometry"
    column = geo["columns"]["geometry"]
    assert set(column) == {"encoding", "geometry_types", "crs"}
    assert column["crs"]["id"] == {"authority": "EPSG", "code": 4326}
