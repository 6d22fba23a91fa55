"""Files that are read wrongly elsewhere, or not at all, are refused in a sentence."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import shapely

import whereish as wh
from stress.damage import (
    EPS,
    ROWS,
    geo_people,
    people,
)
from whereish.errors import InvalidInput


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


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('lon,lat,name\n2.35,48.85,"ab\n2.36,48.86,c\n', 1),  # nothing closes it
        ('lon,lat,name\n2.35,48.85,x\n2.36,48.86,"ab\n2.37,48.87,c"\n', 2),
        ('lon,lat,name\r\n2.35,48.85,"ab\r\n2.36,48.86,c\r\n2.37,48.87,d"\r\n', 1),
        ('name,lon,lat\n"ab,2.35,48.85\nc",2.36,48.86\n', 1),
        ('lon,name,lat\n2.35,"ab,48.85\n2.36,c",48.86\n', 1),
    ],
)
def test_a_lost_quotation_mark_does_not_publish_the_rows_that_it_takes_in(tmp_path, text, row):
    source, output = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text(text, newline="")
    plan = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["name"]}
    with pytest.raises(InvalidInput, match=f"column 'name' of row {row}: is a quotation mark"):
        wh.sanitize(source, output, **plan)
    assert not output.exists()


def test_values_of_several_lines_are_kept(tmp_path):
    source, output = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text('lon,lat,home\n2.35,48.85,"5, rue A\nParis"\n2.36,48.86,"b\nc"\n')
    wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km", keep=["home"])
    assert pa_csv.read_csv(output, parse_options=pa_csv.ParseOptions(newlines_in_values=True))[
        "home"
    ].to_pylist() == ["5, rue A\nParis", "b\nc"]
