"""Every kind of file, in and out; real readers of what comes out; damaged input."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
from xml.etree import ElementTree

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

import whereish as wh
from stress.damage import (
    DAMAGES,
    EPS,
    ROWS,
    TRUE_PLACE,
    geo_people,
    misfits,
    people,
    sanitised,
    write,
)
from stress.damage import KINDS as KINDS_READ
from stress.ogrinfo import POINT, layer, ogrinfo, ogrinfo_lacks
from whereish.errors import InvalidInput
from whereish.privacy import GreatCircle, Guarantee
from whereish.publish.formats.registry import suffixes
from whereish.publish.formats.tables import Wanted, open_table


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
    release = wh.sanitize(source, output, epsilon=EPS, **where)
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


# Real readers


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


# What is refused


def refused(source, output, sentence, **plan):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wh.sanitize(source, output, epsilon=EPS, **plan)
    assert not re.search(r"\d\.\d{3}", str(caught.value).replace("0.00693", ""))
    assert not output.exists()


@pytest.mark.parametrize("kind", [".parquet", ".gpkg", ".fgb"])
def test_another_coordinate_system(tmp_path, kind):
    source = tmp_path / f"in{kind}"
    frame = geo_people().to_crs(2154)
    frame.to_parquet(source) if kind == ".parquet" else frame.to_file(source)
    refused(source, tmp_path / "o.parquet", "Lambert.*must be in WGS84")


def test_an_undeclared_coordinate_system(tmp_path):
    frame = geo_people().set_crs(None, allow_override=True)
    frame.to_parquet(tmp_path / "in.parquet")
    refused(tmp_path / "in.parquet", tmp_path / "o.parquet", "does not say")
    plain = pa.table({"geometry": frame.geometry.to_wkb().tolist()})
    pq.write_table(plain, tmp_path / "plain.parquet")
    refused(
        tmp_path / "plain.parquet", tmp_path / "o.parquet", "not described", geometry="geometry"
    )


def test_shapes_that_are_no_points(tmp_path):
    frame = geo_people()
    frame.geometry = [shapely.box(2, 48, 3, 49)] * ROWS
    frame.to_parquet(tmp_path / "in.parquet")
    refused(tmp_path / "in.parquet", tmp_path / "o.parquet", "must hold points")


def test_no_rows_and_twice_the_same_name(tmp_path):
    out = tmp_path / "o.parquet"
    where = {"lon": "lon", "lat": "lat"}
    people(0).to_parquet(tmp_path / "none.parquet")
    refused(tmp_path / "none.parquet", out, "no rows", **where)
    geo_people(0).to_parquet(tmp_path / "none.geoparquet")
    refused(tmp_path / "none.geoparquet", out, "no rows")
    table = pa.Table.from_pandas(people(5))
    pq.write_table(table.append_column("speed", table["speed"]), tmp_path / "twice.parquet")
    refused(tmp_path / "twice.parquet", out, "two columns named 'speed'", **where)
    (tmp_path / "mixed.jsonl").write_text('{"lon": 2.31234, "lat": 48}\n{"lon": "x", "lat": 48}\n')
    refused(tmp_path / "mixed.jsonl", out, "cannot be read", **where)
    (tmp_path / "list.jsonl").write_text('{"lon": 2.31234, "lat": [48.85432]}\n')
    refused(tmp_path / "list.jsonl", out, "cannot be read", **where)
    (tmp_path / "empty.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    refused(tmp_path / "empty.geojson", out, "no rows|does not say|cannot be read|layer")


def test_layers(tmp_path):
    source = tmp_path / "in.gpkg"
    geo_people(20).to_file(source, layer="homes")
    geo_people(30).to_file(source, layer="works")
    refused(source, tmp_path / "o.csv", "'homes', 'works': choose one")
    refused(source, tmp_path / "o.csv", "layer must be one of", layer="nowhere")
    assert wh.sanitize(source, tmp_path / "o.csv", epsilon=EPS, layer="works").rows == 30


def test_a_track_with_heights(tmp_path):
    points = "".join(
        f'<trkpt lat="48.85{i}" lon="2.35"><ele>{i}</ele>'
        f"<time>2026-01-01T10:0{i}:00Z</time></trkpt>"
        for i in range(5)
    )
    (tmp_path / "in.gpx").write_text(
        '<?xml version="1.0"?><gpx version="1.1" creator="t"'
        ' xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
        f"{points}</trkseg></trk></gpx>"
    )
    release = wh.sanitize(
        tmp_path / "in.gpx", tmp_path / "out.gpx", epsilon=EPS, coarsen={"time": "1 h"}
    )
    assert release.rows == 5
    text = (tmp_path / "out.gpx").read_text()
    assert "<ele>" not in text
    assert text.count("<time>2026-01-01T10:00:00Z</time>") == 5
    refused(tmp_path / "in.gpx", tmp_path / "o.gpx", "no room for 'track_fid'", keep=["track_fid"])


def gpx(*points: str, head: str = "", encoding: str = "UTF-8") -> str:
    return (
        f'<?xml version="1.0" encoding="{encoding}"?>{head}<gpx version="1.1" creator="t"'
        f' xmlns="http://www.topografix.com/GPX/1/1">{"".join(points)}</gpx>'
    )


WAYPOINT = '<wpt lat="48.85432" lon="2.31234"/>'


@pytest.mark.parametrize(
    "point",
    [
        '<wpt lat="48.8x543" lon="2.31234"/>',
        '<wpt lat="x" lon="2.31234"/>',
        '<wpt lat="48.85432" lon=""/>',
        '<wpt lat="48.85432"/>',
        '<wpt lat="48.85432" lon="2,31234"/>',
        '<wpt lat="48.85432" lon="0x2"/>',
        '<wpt lat="48.85432" lon="nan"/>',
        '<wpt lat="48.85432" lon="٢"/>',
        '<wpt lat="48.85432" lon="2.31234"><ele>3x</ele></wpt>',
        '<rte><rtept lat="48.85432" lon="- 2.31234"/></rte>',
        '<trk><trkseg><trkpt lat="48.85432" lon="2.3.1234"/></trkseg></trk>',
    ],
)
def test_a_number_that_is_none_in_gpx(tmp_path, point):
    """GDAL would read the leading digits, or 0."""
    sound = '<wpt lat="48.85432" lon=" +2.3e0 "><ele>35</ele></wpt>'
    (tmp_path / "in.gpx").write_text(gpx(sound, point))
    out = tmp_path / "o.csv"
    refused(
        tmp_path / "in.gpx", out, "must have numbers.*; 1 are none", keep=["ele"], layer="waypoints"
    )
    (tmp_path / "in.gpx").write_text(gpx(sound))
    assert wh.sanitize(tmp_path / "in.gpx", out, epsilon=EPS, keep=["ele"]).rows == 1


@pytest.mark.parametrize(
    ("between", "sentence"),
    [
        (f"<!-- {'x' * 200_000} -->", "must have 2 rows.*GDAL reads 1"),
        (WAYPOINT.replace("/>", f"><desc>{'x' * 900_000}</desc></wpt>"), "must have 3 rows.* 1:"),
        (WAYPOINT.replace("wpt", 'g:wpt xmlns:g="http://www.topografix.com/GPX/1/1"'), "1 are el"),
        (WAYPOINT.replace("/>", f">{WAYPOINT}</wpt>"), "1 are elsewhere"),
        (f"<extensions>{WAYPOINT}</extensions>", "1 are elsewhere"),
        (WAYPOINT.replace("wpt", "trkpt"), "1 are elsewhere"),
        (WAYPOINT.replace("wpt", "wqt"), "1 are elsewhere"),
    ],
)
def test_points_that_gdal_passes_over(tmp_path, between, sentence):
    (tmp_path / "in.gpx").write_text(gpx(WAYPOINT, between, WAYPOINT))
    plan = {"layer": "waypoints"}
    refused(tmp_path / "in.gpx", tmp_path / "o.csv", sentence, **plan)
    assert [path.name for path in tmp_path.iterdir()] == ["in.gpx"]


def test_a_layer_that_gdal_does_not_reach(tmp_path):
    """The track behind the long comment is there, so a layer must be chosen."""
    track = f"<trk><trkseg>{WAYPOINT.replace('wpt', 'trkpt')}</trkseg></trk>"
    (tmp_path / "in.gpx").write_text(gpx(WAYPOINT, f"<!-- {'x' * 200_000} -->", track))
    refused(tmp_path / "in.gpx", tmp_path / "o.csv", "'waypoints', 'track_points': choose one")


@pytest.mark.parametrize("encoding", ["UTG-8", "utf-7", "gbk", "utf-16", "idna", "hex"])
def test_an_encoding_that_is_none(tmp_path, encoding):
    (tmp_path / "in.gpx").write_text(gpx(WAYPOINT, encoding=encoding))
    refused(tmp_path / "in.gpx", tmp_path / "o.csv", "cannot be read as gpx")


FEATURE = (
    '{"type": "Feature", "properties": {"who": "p1"},'
    ' "geometry": {"type": "Point", "coordinates": [2.31234, 48.85432]}}'
)


def collection(*features: str, end: str = "}") -> str:
    return f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]{end}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (collection(FEATURE, FEATURE.replace('"p1"', '"p1", "who": "p2"')), "two members"),
        (collection(FEATURE, FEATURE.replace("[", '[1.31234, 48], "coordinates": [')), "two me"),
        (collection(FEATURE, end=', "features": []}'), "two members"),
        (collection(FEATURE, FEATURE.replace('"Feature"', '"Featur"')), "nothing but Features"),
        (collection(FEATURE, "null"), "nothing but Features"),
        (collection(FEATURE, FEATURE.replace("2.31234", '"2.31234"')), "must have numbers"),
        (collection(FEATURE, FEATURE.replace("2.31234", "true")), "must have numbers"),
        (collection(FEATURE, FEATURE.replace("2.31234", "NaN")), "cannot be read"),
        (collection(FEATURE, end="} {}"), "cannot be read"),
        (collection(FEATURE, end=""), "cannot be read"),
        ('{"type": "FeatureCollection"}', "must be a FeatureCollection"),
        (f"{FEATURE}\n{FEATURE}", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_features_that_gdal_passes_over_or_mends(tmp_path, text, sentence):
    (tmp_path / "in.geojson").write_text(text)
    refused(tmp_path / "in.geojson", tmp_path / "o.csv", sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["in.geojson"]


def test_features_across_the_blocks_that_are_read(tmp_path):
    """A feature longer than a block, and many that lie across the ends of blocks."""
    long = FEATURE.replace("p1", "x" * 2_500_000)
    text = "\ufeff" + collection(*[FEATURE] * 9000, long, *[FEATURE] * 9000, end=' , "more": 1}\n')
    (tmp_path / "in.geojson").write_text(text)
    (tmp_path / "one.geojson").write_text(FEATURE)
    plan = {"epsilon": EPS, "keep": ["who"]}
    assert wh.sanitize(tmp_path / "in.geojson", tmp_path / "o.parquet", **plan).rows == 18001
    kept = pq.read_table(tmp_path / "o.parquet")["who"].to_pylist()
    assert [len(who) for who in kept] == [2] * 9000 + [2_500_000] + [2] * 9000
    assert wh.sanitize(tmp_path / "one.geojson", tmp_path / "one.csv", epsilon=EPS).rows == 1


def test_a_geopackage_that_says_another_number_of_rows(tmp_path):
    source = tmp_path / "in.gpkg"
    geo_people(20).to_file(source)
    with contextlib.closing(sqlite3.connect(source)) as database, database:
        database.execute("UPDATE gpkg_ogr_contents SET feature_count = 21")
    refused(source, tmp_path / "o.csv", "must have 21 rows.*GDAL reads 20")


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_geopackage_with_changes_beside_it(tmp_path, ending):
    source = tmp_path / "in.gpkg"
    geo_people(20).to_file(source)
    beside = tmp_path / f"in.gpkg{ending}"
    beside.write_bytes(b"\0" * 512)
    refused(source, tmp_path / "o.csv", f"unmerged changes in in.gpkg{ending} beside it")
    beside.write_bytes(b"")
    assert wh.sanitize(source, tmp_path / "o.csv", epsilon=EPS).rows == 20


def test_rows_that_wait_in_a_write_ahead_log(tmp_path):
    source = tmp_path / "in.gpkg"
    geo_people(20).to_file(source)
    with contextlib.closing(sqlite3.connect(source)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE gpkg_contents SET description = 'new'")
        database.commit()
        refused(source, tmp_path / "o.csv", "unmerged changes")
    assert wh.sanitize(source, tmp_path / "o.csv", epsilon=EPS).rows == 20


def test_entities_in_gpx(tmp_path):
    laughs = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
    head = f'<!DOCTYPE gpx [<!ENTITY a0 "ha">{laughs}]>'
    (tmp_path / "in.gpx").write_text(
        gpx('<wpt lat="48" lon="2"><name>&a9;</name></wpt>', head=head)
    )
    refused(tmp_path / "in.gpx", tmp_path / "o.csv", "has a document type")


@pytest.mark.parametrize("damage", DAMAGES)
def test_200_damaged_files(tmp_path, damage, caplog, capfd):
    """Refused in one sentence without a trace; or not to be told from whole, and charged."""
    caplog.set_level(logging.DEBUG)
    generator = np.random.default_rng(11)
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1000/m")
    folder = tmp_path / "here"
    folder.mkdir()
    whole = {}
    for kind in KINDS_READ:
        plan = write(tmp_path / f"whole{kind}", 60)
        whole[kind] = (tmp_path / f"whole{kind}").read_bytes(), plan
    refusals = dict.fromkeys(KINDS_READ, 0)
    for number in range(200):
        kind = KINDS_READ[number % len(KINDS_READ)]
        raw, plan = whole[kind]
        source = folder / f"in{kind}"
        source.write_bytes(damage(raw, generator))
        known = {**plan, "sha256": hashlib.sha256(raw).hexdigest()}
        assert not sanitised(source, known, ledger), "the SHA-256 tells every damage"
        refusals[kind] += not sanitised(source, plan, ledger)
        source.unlink()
    logged = caplog.text + "".join(capfd.readouterr())
    assert not TRUE_PLACE.search(logged), logged[:500]
    assert refusals[".parquet"] >= 15
    assert refusals[".gpx"] >= 20
    assert refusals[".gpkg"] >= 10 or damage.__name__ != "truncated"


def test_the_digest_of_a_whole_file(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "o.csv"
    plan = write(source, 30)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    release = wh.sanitize(source, output, epsilon=EPS, sha256=digest.upper(), **plan)
    assert release.rows == 30
    wrong = "0" * 64
    for asked, path, said in (
        (wrong, source, "not the file of this SHA-256"),
        (digest[:40], source, "64 hexadecimal digits"),
        (digest, tmp_path, "digits of one file"),
    ):
        with pytest.raises(InvalidInput, match=said):
            wh.sanitize(path, tmp_path / "new.csv", epsilon=EPS, sha256=asked, **plan)
    assert not (tmp_path / "new.csv").exists()
    with pytest.raises(InvalidInput, match="are for files"):
        wh.sanitize(people(3), epsilon=EPS, sha256=digest, **plan)


def test_whole_files_that_are_not_what_they_must_be(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1000/m")
    folder = tmp_path / "here"
    folder.mkdir()
    seen = []
    for what, source, plan in misfits(folder):
        assert not sanitised(source, plan, ledger), (what, source.suffix)
        seen.append(what)
        source.unlink()
    assert len(seen) == 30
    assert not TRUE_PLACE.search(caplog.text + "".join(capfd.readouterr()))


def test_a_bit_that_flips_in_a_page_with_a_checksum(tmp_path):
    """What we write has checksums, and no flipped page is read as something else."""
    source = tmp_path / "in.parquet"
    people(500).to_parquet(source)
    plan = {"lon": "lon", "lat": "lat", "epsilon": EPS}
    wh.sanitize(source, tmp_path / "whole.parquet", **plan)
    raw = bytearray((tmp_path / "whole.parquet").read_bytes())
    whole = pq.read_table(tmp_path / "whole.parquet")
    columns = [pq.read_metadata(tmp_path / "whole.parquet").row_group(0).column(i) for i in (0, 1)]
    generator = np.random.default_rng(7)
    refusals = 0
    for number in range(200):
        column = columns[number % 2]
        start = column.data_page_offset
        at = int(generator.integers(start, start + column.total_compressed_size))
        raw[at] ^= (bit := 1 << int(generator.integers(0, 8)))
        (tmp_path / "flipped.parquet").write_bytes(raw)
        raw[at] ^= bit
        try:
            with open_table(tmp_path / "flipped.parquet", Wanted(("lon", "lat"))) as table:
                read = pa.Table.from_batches(table.batches)
        except InvalidInput:
            refusals += 1
        else:
            assert read.select(["lon", "lat"]).equals(whole.select(["lon", "lat"]))
    assert refusals >= 190


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
