"""Every format of the registry, from its value alone: a new one is tested without a line here."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.privacy import Guarantee
from whereish.publish.formats.registry import FORMATS, format_of, suffixes
from whereish.publish.formats.tables import Wanted, Writing, open_table, write_table
from whereish.publish.formats.wkb import points_from_wkb
from whereish.publish.rows.locations import GeometryColumn, LonLat

NAMES = ["ann", "bob", "eve"]
LON, LAT = pa.array([2.3521, -0.1234, 179.9]), pa.array([48.8567, 51.5078, -89.5])
STATEMENT = {"guarantee": 'a "quoted" word, <and> {braces}', "reproducible": False}


def written(path):
    """Three rows in the file, as its format holds them; how they are asked for."""
    kind = format_of(path)
    at = LonLat("lon", "lat") if kind.geometry == "none" else GeometryColumn()
    columns = [*at.write(LON.to_numpy(), LAT.to_numpy()), pa.array(NAMES)]
    schema = pa.schema([*at.fields, pa.field("name", pa.string())])
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    geometries = () if kind.geometry == "none" else at.columns
    write_table(path, Writing(schema, STATEMENT, geometries), iter([batch]))
    numbers = at.columns if kind.geometry == "none" else ()
    return Wanted((*at.columns, "name"), numbers, geometries)


@pytest.mark.parametrize("suffix", suffixes())
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"file{suffix}"
    wanted = written(path)
    with open_table(path, wanted) as table:
        (batch,) = list(table.batches)
    assert batch.column("name").to_pylist() == NAMES
    if wanted.geometries:
        lon, lat = points_from_wkb(batch.column("geometry"), "geometry").T.tolist()
    else:
        lon, lat = (batch.column(name).to_pylist() for name in ("lon", "lat"))
    assert (lon, lat) == (LON.to_pylist(), LAT.to_pylist())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", suffixes())
def test_the_statement_is_in_the_file_or_beside_it(tmp_path, suffix):
    frame = pa.table({"lon": LON, "lat": LAT, "name": NAMES})
    source, output = tmp_path / "in.parquet", tmp_path / f"out{suffix}"
    pq.write_table(frame, source)
    release = wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km", keep=["name"])
    beside = tmp_path / f"out{suffix}.whereish.json"
    assert beside.exists() != format_of(output).carries_statement
    if beside.exists():
        stated = json.loads(beside.read_text())["guarantee"]
        assert Guarantee.from_json(stated) == release.guarantee
    else:
        raw = output.read_bytes().replace(b'\\"', b'"').replace(b"&quot;", b'"')
        assert b'"reproducible": false' in raw or b'"reproducible":false' in raw


@pytest.mark.parametrize("suffix", suffixes())
def test_a_file_of_something_else_is_refused_without_quoting_it(tmp_path, suffix):
    path = tmp_path / f"in{suffix}"
    path.write_bytes(b"\x00lon 2.3521 and lat 48.8567\x00" * 50)
    with pytest.raises(InvalidInput) as caught:
        wh.sanitize(path, tmp_path / "out.csv", lon="lon", lat="lat", epsilon="1/km")
    assert "48.8" not in str(caught.value)
    assert path.name in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_ending_belongs_to_one_format():
    assert len(set(suffixes())) == len(suffixes())
    assert all(suffix.startswith(".") for suffix in suffixes())
    for one in FORMATS:
        module = one.load()
        assert callable(module.open_table)
        assert callable(module.write_table)


def test_an_unknown_ending_is_answered_by_the_list(tmp_path):
    (tmp_path / "in.xlsx").write_bytes(b"x")
    with pytest.raises(
        InvalidInput, match=r"in\.xlsx must end in one of .*\.csv.*\.fgb.*got \.xlsx"
    ):
        wh.sanitize(tmp_path / "in.xlsx", tmp_path / "o.csv", lon="x", lat="y", epsilon="1/km")
