"""Every kind of file, in and out."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest

import whereish as wh
from stress.damage import (
    EPS,
    ROWS,
    geo_people,
    people,
    write,
)
from whereish.errors import InvalidInput
from whereish.privacy import GreatCircle, Guarantee
from whereish.publish.formats.registry import suffixes


def places(path) -> np.ndarray:
    """The (n, 2) degrees of a file."""
    if path.suffix in (".gpkg", ".geojson", ".fgb", ".gpx"):
        layer = {"layer": "waypoints"} if path.suffix == ".gpx" else {}
        return gpd.read_file(path, **layer).get_coordinates().to_numpy()
    if path.suffix == ".geoparquet":
        return gpd.read_parquet(path).get_coordinates().to_numpy()
    if path.suffix == ".parquet":
        if "geometry" in pq.read_schema(path).names:
            return gpd.read_parquet(path).get_coordinates().to_numpy()
        return pd.read_parquet(path)[["lon", "lat"]].to_numpy()
    if {".csv", ".tsv"} & set(path.suffixes):
        frame = pd.read_csv(path, sep="\t" if ".tsv" in path.suffixes else ",")
    else:
        frame = pd.read_json(path, lines=True)
    return frame[["lon", "lat"]].to_numpy()


def stated(path) -> dict:
    """The statement in, or beside, a file."""
    beside = path.with_name(path.name + ".whereish.json")
    if path.suffix in (".parquet", ".geoparquet"):
        return json.loads(pq.read_schema(path).metadata[b"whereish"])
    if path.suffix == ".gpkg":
        return json.loads(pyogrio.read_info(path)["dataset_metadata"]["whereish"])
    if path.suffix == ".geojson":
        return json.loads(path.read_text())["whereish"]
    if path.suffix == ".fgb":
        return json.loads(pyogrio.read_info(path)["layer_metadata"]["DESCRIPTION"])
    if path.suffix == ".gpx":
        text = ElementTree.parse(path).findtext(".//{*}metadata/{*}desc")
        return json.loads(text)
    return json.loads(beside.read_text())


@pytest.mark.parametrize("into", suffixes())
@pytest.mark.parametrize("out_of", suffixes())
def test_every_kind_into_every_kind(tmp_path, out_of, into):
    source, output = tmp_path / f"in{out_of}", tmp_path / f"out{into}"
    where = write(source)
    release = wh.sanitize(source, output, epsilon=EPS, insecure_seed=1, **where)
    assert release.rows == ROWS
    true, released = people()[["lon", "lat"]].to_numpy(), places(output)
    apart = GreatCircle()(true, released)
    assert apart.mean() == pytest.approx(288.5, rel=0.2)
    assert apart.min() > 0
    assert Guarantee.from_json(stated(output)["guarantee"]) == release.guarantee
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize(
    "kind", [".csv", ".jsonl", ".parquet", ".geoparquet", ".gpkg", ".geojson", ".fgb"]
)
def test_only_what_is_named_leaves(tmp_path, kind):
    source, output = tmp_path / f"in{kind}", tmp_path / f"out{kind}"
    where = write(source)
    wh.sanitize(source, output, epsilon=EPS, keep=["who"], coarsen={"time": "1 d"}, **where)
    raw = output.read_bytes()
    assert b"speed" not in raw
    if kind == ".csv":
        frame = pd.read_csv(output)
    elif kind == ".jsonl":
        frame = pd.read_json(output, lines=True)
    elif kind == ".parquet":
        frame = pd.read_parquet(output)
    else:
        frame = gpd.read_parquet(output) if kind == ".geoparquet" else gpd.read_file(output)
    assert set(frame.columns) - {"lon", "lat", "geometry"} == {"who", "time"}
    assert frame["who"].tolist() == people()["who"].tolist()
    times = pd.to_datetime(frame["time"], utc=True)
    assert times.tolist() == people()["time"].dt.floor("D").tolist()


def test_a_folder_of_files(tmp_path):
    source = tmp_path / "in"
    (source / "2026").mkdir(parents=True)
    people().to_parquet(source / "a.parquet")
    people(100).to_csv(source / "2026" / "b.csv", index=False)
    (source / "_SUCCESS").write_text("")
    ledger = wh.open_ledger(tmp_path / "l.db", cap="10/m")
    release = wh.sanitize(
        source, tmp_path / "out", lon="lon", lat="lat", epsilon=EPS, ledger=ledger, subject="who"
    )
    assert release.rows == ROWS + 100
    names = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert names == ["2026/b.csv", "2026/b.csv.whereish.json", "a.parquet"]
    assert ledger.statement("p3").entries[0].times == 40
    with pytest.raises(InvalidInput, match="exists"):
        wh.sanitize(source, tmp_path / "out", lon="lon", lat="lat", epsilon=EPS, overwrite=True)
    (source / "notes.docx").write_text("x")
    with pytest.raises(InvalidInput, match=r"no tables, such as notes\.docx"):
        wh.sanitize(source, tmp_path / "out2", lon="lon", lat="lat", epsilon=EPS)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match="no tables in it"):
        wh.sanitize(empty, tmp_path / "out2", lon="lon", lat="lat", epsilon=EPS)


def test_one_bad_file_of_a_folder_releases_nothing(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    people().to_parquet(source / "a.parquet")
    (source / "b.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(InvalidInput, match=r"b\.parquet cannot be read"):
        wh.sanitize(source, tmp_path / "out", lon="lon", lat="lat", epsilon=EPS)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_two_geometries_are_both_described(tmp_path):
    frame = geo_people().assign(work=lambda f: f.geometry.translate(0.1, 0.05))
    frame.to_parquet(tmp_path / "in.parquet")
    plan = {"locations": ["geometry", "work"], "epsilon": EPS}
    wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.parquet", **plan)
    released = gpd.read_parquet(tmp_path / "out.parquet")
    assert released["work"].crs == released.crs == "EPSG:4326"
    assert released.geometry.name == "geometry"
    wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.gpkg", **plan)
    assert {"work_lon", "work_lat"} <= set(gpd.read_file(tmp_path / "out.gpkg").columns)


def test_kept_columns_of_every_number_and_time_come_back(tmp_path):
    kinds = [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.date32(), pa.time32("ms"), pa.time64("us"), pa.bool_(), pa.float32()),
        *(pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("us")),
    ]
    values = [0, 1, None, 127, 5] * 20
    kept = {
        str(kind): pa.array(values, pa.int64()).cast(kind, safe=False)
        if not pa.types.is_date32(kind) and not pa.types.is_time32(kind)
        else pa.array(values, pa.int32()).cast(kind)
        for kind in kinds
    }
    frame = people(100)
    table = pa.table({"lon": frame["lon"], "lat": frame["lat"], **kept})
    pq.write_table(table, tmp_path / "in.parquet")
    plan = {"lon": "lon", "lat": "lat", "epsilon": EPS, "keep": list(kept)}
    wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.parquet", **plan)
    released = pq.read_table(tmp_path / "out.parquet")
    for name, column in kept.items():
        assert released[name].combine_chunks().equals(column), name
