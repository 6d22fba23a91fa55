"""No byte of a secret in anything that is released: frames and files, all kinds into all kinds."""

from __future__ import annotations

import pytest

import canaries
import whereish as wh
from canaries import FRAMES, bytes_of, bytes_of_frame, found
from whereish.publish.formats.registry import suffixes

SEEDED = {"epsilon": "ln(4)/200 m", "insecure_seed": 5}


@pytest.mark.parametrize("kind", FRAMES)
def test_no_canary_in_a_released_frame(kind):
    make, kept = FRAMES[kind]
    frame = make()
    where = {} if kind == "geopandas" else {"lon": "lon", "lat": "lat"}
    released = wh.sanitize(frame, keep=kept, **where, **SEEDED)
    assert type(released) is type(frame)
    assert found(bytes_of_frame(released)) == []


@pytest.mark.parametrize("into", suffixes())
@pytest.mark.parametrize("out_of", suffixes())
def test_no_canary_in_a_released_file(tmp_path, out_of, into):
    source, output = tmp_path / f"in{out_of}", tmp_path / f"out{into}"
    where = canaries.write(source)
    before = set(tmp_path.iterdir())
    assert wh.sanitize(source, output, keep=["name"], **where, **SEEDED).rows == canaries.ROWS
    for path in set(tmp_path.iterdir()) - before:
        assert found(bytes_of(path)) == [], path.name
    # What is kept did leave.
    assert b"p11" in bytes_of(output)


@pytest.mark.parametrize(
    ("kind", "planted"),
    [
        (".csv", ["dropped column", "as text"]),
        (".jsonl", ["member", "column name", "as text"]),
        (".ndjson", ["member"]),
        (".parquet", ["schema metadata", "field metadata", "dropped column", "as double"]),
        (
            ".geoparquet",
            [
                *("crs name", "crs remarks", "crs scope", "crs area", "of geo metadata"),
                *("file metadata", "as double", "as text"),
            ],
        ),
        (".gpkg", ["crs name", "of srs", "layer", "description", "of metadata", "as double"]),
        (".geojson", ["foreign member", "foreign member of", "collection", "id", "as text"]),
        (".fgb", ["layer", "title", "description", "dropped column", "as double"]),
        (".gpx", ["xml comment", "creator", "metadata name", "track", "extension", "as text"]),
    ],
)
def test_the_canaries_are_in_the_files_that_are_read(tmp_path, kind, planted):
    """The search finds them: otherwise their absence would say nothing."""
    canaries.write(tmp_path / f"in{kind}")
    there = "\n".join(found(bytes_of(tmp_path / f"in{kind}")))
    assert [what for what in planted if what not in there] == []


@pytest.mark.parametrize(
    ("kind", "planted"),
    [
        ("pandas", ["outside", "category", "index", "index name", "attribute", "as double"]),
        ("geopandas", ["crs remarks", "crs scope", "crs area", "index", "attribute", "as double"]),
        ("polars", ["category", "dropped", "as double"]),
        ("arrow", ["outside", "under null", "category", "schema metadata", "field metadata"]),
        ("batch", ["outside", "under null", "category", "schema metadata", "field metadata"]),
        ("duckdb", ["dropped", "as double"]),
    ],
)
def test_the_canaries_are_in_the_frames_that_are_read(kind, planted):
    there = "\n".join(found(bytes_of_frame(FRAMES[kind][0]())))
    assert [what for what in planted if what not in there] == []
