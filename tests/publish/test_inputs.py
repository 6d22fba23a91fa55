"""Files as people have them: dialects, types, compressed, patterns, partitions, other systems."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import sys

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import whereish as wh
from whereish.errors import InvalidInput, WhereishWarning
from whereish.interfaces.cli.files.public_places import public_places
from whereish.publish.inputs import Inputs

WHERE = {"lon": "lon", "lat": "lat", "epsilon": "1/m"}
PLACES = np.array([[2.35, 48.85], [2.36, 48.86]])


def near(path) -> bool:
    """Whether the reports of a release at 1/m are those of the two places."""
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return bool(np.abs(frame[["lon", "lat"]].to_numpy() - PLACES).max() < 1e-3)


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("lon;lat;who\n2,35;48,85;é\n2,36;48,86;b\n", "utf-8", "semicolons"),
        ("lon;lat;who\n2.35;48.85;é\n2.36;48.86;b\n", "utf-8", "semicolons"),
        ("lon;lat;who\n2,35;48,85;é\n2,36;48,86;b\n", "latin-1", "decimal commas, latin-1"),
        ("lon,lat,who\n2.35,48.85,é\n2.36,48.86,b\n", "utf-8-sig", None),
        ("lon,lat,who\n2.35,48.85,é\n2.36,48.86,b\n", "utf-16", "utf-16"),
        ("lon\tlat\twho\n2,35\t48,85\té\n2,36\t48,86\tb\n", "utf-8", "tabs"),
        ("lon|lat|who\n2.35|48.85|é\n2.36|48.86|b\n", "cp1252", "bars between columns"),
    ],
)
def test_dialects_are_found_and_said(tmp_path, text, encoding, said):
    source, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_bytes(text.encode(encoding))
    release = wh.sanitize(source, output, keep=["who"], **WHERE)
    assert near(output)
    assert pd.read_parquet(output)["who"].tolist() == ["é", "b"]
    assert [note for note in release.notes if "read with" in note] == (
        [] if said is None else [note for note in release.notes if said in note]
    )
    assert bool(release.notes) == (said is not None)


def test_a_dialect_may_be_declared(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_bytes("lon;lat;sum\n2,35;48,85;1\n2,36;48,86;1,5\n".encode("utf-16-le"))
    how = {"delimiter": ";", "decimal": ",", "encoding": "utf-16-le"}
    wh.sanitize(source, output, keep=["sum"], **how, **WHERE)
    assert near(output)
    assert pd.read_parquet(output)["sum"].tolist() == [1.0, 1.5]


def test_kept_columns_keep_their_types_unless_text_is_asked_for(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(
        "lon,lat,n,x,yes,day,at,utc,zip,empty,mixed,big\n"
        "2.35,48.85,1,1.5,true,2026-01-31,2026-01-31T08:15:00,2026-01-31T08:15:00Z,01234,,1,"
        "12345678901234567890\n"
        "2.36,48.86,,2,false,2026-02-28,2026-01-31 09:15,2026-01-31T08:15:00+02:00,99999,,a,1\n"
    )
    keep = ["n", "x", "yes", "day", "at", "utc", "zip", "empty", "mixed", "big"]
    wh.sanitize(source, tmp_path / "typed.parquet", keep=keep, **WHERE)
    table = pq.read_table(tmp_path / "typed.parquet")
    assert {name: str(table.schema.field(name).type) for name in keep} == {
        "n": "int64",
        "x": "double",
        "yes": "bool",
        "day": "date32[day]",
        "at": "timestamp[us]",
        "utc": "timestamp[us, tz=UTC]",
        "zip": "string",
        "empty": "string",
        "mixed": "string",
        "big": "string",
    }
    assert table["n"].to_pylist() == [1, None]
    assert table["at"].to_pylist()[1] == datetime.datetime(2026, 1, 31, 9, 15)
    assert table["utc"].to_pylist()[1].hour == 6
    assert table["zip"].to_pylist() == ["01234", "99999"]
    wh.sanitize(source, tmp_path / "text.parquet", keep=keep, as_text=True, **WHERE)
    schema = pq.read_schema(tmp_path / "text.parquet")
    assert {str(schema.field(name).type) for name in keep} == {"string"}
    wh.sanitize(source, tmp_path / "typed.jsonl", keep=["n", "yes"], **WHERE)
    first = json.loads((tmp_path / "typed.jsonl").read_text().splitlines()[0])
    assert (first["n"], first["yes"]) == (1, True)
    wh.sanitize(source, tmp_path / "same.csv", keep=["x", "zip", "at"], **WHERE)
    assert pd.read_csv(tmp_path / "same.csv", dtype=str)["at"].tolist()[1] == "2026-01-31 09:15"


def test_a_type_is_that_of_the_whole_column(tmp_path):
    rows = [f"2.35,48.85,{i}" for i in range(300_000)]
    (tmp_path / "in.csv").write_text("\n".join(["lon,lat,n", *rows, "2.35,48.85,none"]))
    wh.sanitize(tmp_path / "in.csv", tmp_path / "out.parquet", keep=["n"], **WHERE)
    column = pq.read_table(tmp_path / "out.parquet")["n"]
    assert (str(column.type), column[-1].as_py()) == ("string", "none")


def test_naive_local_times_are_not_stamped_utc(tmp_path):
    (tmp_path / "in.csv").write_text("lon,lat,at\n2.35,48.85,2026-01-31T08:15:00\n")
    for ending in ("parquet", "csv", "jsonl"):
        output = tmp_path / f"out.{ending}"
        wh.sanitize(tmp_path / "in.csv", output, coarsen={"at": "1 h"}, **WHERE)
        if ending == "parquet":
            assert str(pq.read_schema(output).field("at").type) == "timestamp[us]"
        else:
            assert "2026-01-31T08:00:00" in output.read_text()
            assert "Z" not in output.read_text()


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv.gz", ".tsv"])
def test_compressed_text_and_tabs(tmp_path, ending):
    between = "\t" if "tsv" in ending else ","
    raw = f"lon{between}lat\n2.35{between}48.85\n2.36{between}48.86\n".encode()
    source, output = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    source.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    wh.sanitize(source, output, **WHERE)
    written = output.read_bytes()
    text = (gzip.decompress(written) if ending.endswith("gz") else written).decode()
    frame = pd.read_csv(io.StringIO(text), sep=between)
    assert np.abs(frame[["lon", "lat"]].to_numpy() - PLACES).max() < 1e-3
    assert (tmp_path / f"out{ending}.whereish.json").exists()
    if ending.endswith("gz"):
        big = "".join(f"2.35{between}48.{i:06d}\n" for i in range(50_000))
        source.write_bytes(gzip.compress(raw + big.encode())[:-2000])
        with pytest.raises(InvalidInput, match=r"cannot be read"):
            wh.sanitize(source, tmp_path / f"cut{ending}", **WHERE)
        assert not (tmp_path / f"cut{ending}").exists()


def folder_of(tmp_path, names):
    for name in names:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(PLACES, columns=["lon", "lat"]).to_csv(path, index=False)
    return tmp_path / "in"


def released(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.csv"))


def test_patterns_and_lists_go_to_a_folder(tmp_path):
    source = folder_of(tmp_path, ["a-1.csv", "a-2.csv", "b-1.csv", "deep/a-3.csv"])
    wh.sanitize(str(source / "a-*.csv"), tmp_path / "one", **WHERE)
    assert released(tmp_path / "one") == ["a-1.csv", "a-2.csv"]
    wh.sanitize(str(source / "**" / "a-*.csv"), tmp_path / "two", **WHERE)
    assert released(tmp_path / "two") == ["a-1.csv", "a-2.csv", "deep/a-3.csv"]
    wh.sanitize([source / "b-1.csv", source / "deep" / "a-3.csv"], tmp_path / "three", **WHERE)
    assert released(tmp_path / "three") == ["b-1.csv", "deep/a-3.csv"]
    for bad, sentence in [
        (str(source / "c-*.csv"), "no file matches"),
        ([source / "b-1.csv", source / "absent.csv"], "not a file"),
        ([source / "b-1.csv", source / "b-1.csv"], "twice"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            wh.sanitize(bad, tmp_path / "four", **WHERE)


def test_values_in_names_of_folders_leave_only_if_kept(tmp_path):
    source = folder_of(tmp_path, ["city=Paris/a.csv", "city=Rome/b.csv"])
    with pytest.raises(InvalidInput, match=r"column 'city'.*--keep city"):
        wh.sanitize(source, tmp_path / "out", **WHERE)
    wh.sanitize(source, tmp_path / "out", keep=["city"], **WHERE)
    assert released(tmp_path / "out") == ["city=Paris/a.csv", "city=Rome/b.csv"]
    assert pd.read_csv(tmp_path / "out" / "city=Rome" / "b.csv").columns.tolist() == ["lon", "lat"]
    with pytest.raises(InvalidInput, match="can be kept only"):
        wh.sanitize(
            source, tmp_path / "o", keep=["city"], coarsen={}, epsilon_column="city", **WHERE
        )


@pytest.mark.parametrize("address", ["s3://b/x.csv", "gs://b/x.csv", "https://h/x.csv"])
def test_addresses_are_refused_with_the_reason(tmp_path, address):
    with pytest.raises(InvalidInput, match=r"after a crash.*copy the file first"):
        wh.sanitize(address, tmp_path / "o.csv", **WHERE)
    source = folder_of(tmp_path, ["a.csv"]) / "a.csv"
    with pytest.raises(InvalidInput, match="the output must be on a file system"):
        wh.sanitize(source, address, **WHERE)
    assert Inputs.of(source).files == (source,)


def test_a_dry_run_says_all_and_does_nothing(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("lon,lat,who,n\n2.35,48.85,a,1\n2.36,48.86,a,2\n2.36,48.86,b,3\n")
    ledger = wh.open_ledger(tmp_path / "l.db", cap="10/m")
    how = {"keep": ["n"], "ledger": ledger, "subject": "who"}
    before = sorted(tmp_path.iterdir())
    dry = wh.sanitize(source, tmp_path / "o.parquet", dry_run=True, **how, **WHERE)
    assert sorted(tmp_path.iterdir()) == before
    assert ledger.statement("a").entries == ()
    assert (dry.release.rows, dry.kept, dry.dropped) == (3, ("n",), ())
    assert "most exposed subject has 2 reports, together at 2/m" in str(dry)
    assert "nothing was written or charged" in str(dry)
    assert json.loads(json.dumps(dry.to_json()))["would_be"]["rows"] == 3
    source.write_text("lon,lat\n2.35,48.85\n2.36,98.86\n")
    with pytest.raises(InvalidInput, match="row 2"):
        wh.sanitize(source, tmp_path / "o.parquet", dry_run=True, **WHERE)


def geo(crs=4326):
    frame = gpd.GeoDataFrame({"n": [1, 2]}, geometry=shapely.points(PLACES), crs=4326)
    return frame if crs == 4326 else frame.to_crs(crs)


@pytest.mark.parametrize(
    ("ending", "driver"),
    [(".shp", None), (".kml", "KML"), (".gml", "GML"), (".fgb", None), (".tab", "MapInfo File")],
)
def test_what_gdal_reads(tmp_path, ending, driver):
    source, output = tmp_path / f"in{ending}", tmp_path / "out.parquet"
    options = {} if driver is None else {"driver": driver}
    geo().to_file(source, **options)
    release = wh.sanitize(source, output, epsilon="1/m")
    assert release.rows == 2
    found = gpd.read_parquet(output).get_coordinates().to_numpy()
    assert np.abs(np.sort(found, axis=0) - PLACES).max() < 1e-3
    if ending != ".fgb":
        with pytest.raises(InvalidInput, match=r"read, and not written; write \.gpkg"):
            wh.sanitize(source, tmp_path / f"out{ending}", epsilon="1/m")


@pytest.mark.parametrize("ending", [".shp", ".gpkg", ".geoparquet"])
def test_other_systems_are_reprojected_on_request_alone(tmp_path, ending):
    source, output = tmp_path / f"in{ending}", tmp_path / "out.parquet"
    frame = geo(2154)
    frame.to_parquet(source) if ending == ".geoparquet" else frame.to_file(source)
    with pytest.raises(InvalidInput, match=r"Lambert-93.*--reproject"):
        wh.sanitize(source, output, epsilon="1/m")
    release = wh.sanitize(source, output, epsilon="1/m", reproject=True)
    found = gpd.read_parquet(output)
    assert np.abs(found.get_coordinates().to_numpy() - PLACES).max() < 1e-3
    assert found.crs.to_epsg() in (4326, None)
    assert any("reprojected from RGF93" in note for note in release.notes)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (shapely.box(2, 48, 3, 49), r"2 are polygons, in rows 1, 2: .*representative_point"),
        (shapely.LineString([(2, 48), (3, 49)]), r"2 are lines, .*whereish trace"),
        (shapely.MultiPoint([(2, 48), (3, 49)]), r"2 are multipoints, .*explode"),
        (shapely.MultiPolygon([shapely.box(2, 48, 3, 49)]), "2 are multipolygons"),
    ],
)
def test_other_shapes_are_refused_by_their_name_with_the_cure(tmp_path, shape, words):
    frame = gpd.GeoDataFrame(geometry=[shape, shape], crs=4326)
    frame.to_file(tmp_path / "in.gpkg")
    with pytest.raises(InvalidInput, match=words):
        wh.sanitize(tmp_path / "in.gpkg", tmp_path / "out.gpkg", epsilon="1/m")
    with pytest.raises(InvalidInput, match=words):
        wh.sanitize(frame, epsilon="1/m")


def test_reports_stay_in_a_declared_region():
    box = (2.3, 48.8, 2.4, 48.9)
    table = pa.table({"lon": [2.35] * 2000, "lat": [48.85] * 2000})
    how = {"lon": "lon", "lat": "lat", "mean_error": "10 km", "insecure_seed": 1}
    free = wh.sanitize(table, **how).select(["lon", "lat"]).to_pandas().to_numpy()
    kept = wh.sanitize(table, region=box, **how).select(["lon", "lat"]).to_pandas().to_numpy()
    inside = wh.Box(*box).contains(free)
    assert 0 < inside.sum() < 2000
    assert wh.Box(*box).contains(kept).all()
    assert (free[inside] == kept[inside]).all()  # to the last bit
    stated = json.loads(wh.sanitize(table, region=box, **how).schema.metadata[b"whereish"])
    assert "closest place" in stated["clamped"]


def test_a_region_in_another_order_is_warned_of():
    table = pa.table({"lon": [2.35] * 3, "lat": [48.85] * 3})
    how = {"lon": "lon", "lat": "lat", "mean_error": "100 m"}
    with pytest.warns(WhereishWarning, match="west,south,east,north"):
        wh.sanitize(table, region=(48.8, 2.3, 48.9, 2.4), **how)


def test_remaps_that_the_command_line_names(tmp_path):
    import h3

    reports = np.array([[2.35, 48.85], [2.40, 48.90]])
    cells = public_places("h3:7")(reports)
    assert [h3.latlng_to_cell(lat, lon, 7) for lon, lat in cells] == [
        h3.latlng_to_cell(lat, lon, 7) for lon, lat in reports
    ]
    roads = gpd.GeoDataFrame(geometry=[shapely.LineString([(2.3, 48.8), (2.5, 48.8)])], crs=4326)
    roads.to_file(tmp_path / "roads.gpkg")
    moved = public_places(str(tmp_path / "roads.gpkg"))(reports)
    assert np.allclose(moved, [[2.35, 48.8], [2.4, 48.8]])
    geo().to_file(tmp_path / "shops.gpkg")
    assert len(public_places(str(tmp_path / "shops.gpkg")).coordinates) == 2
    for bad, sentence in [("h3:99", "0 to 15"), ("h3", "h3:RESOLUTION"), ("no.gpkg", "not a file")]:
        with pytest.raises(InvalidInput, match=sentence):
            public_places(bad)


def test_standard_input_and_output(tmp_path, monkeypatch, capfdbinary):
    from whereish.interfaces.cli import cli

    def run(*words, given=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        cli(["sanitize", *words], standalone_mode=False)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return out, err

    text = b"lon;lat;who\n2,35;48,85;=1+1\n2,36;48,86;b\n"
    where = ("--lon", "lon", "--lat", "lat", "--epsilon", "1/m")
    out, err = run("-", "-o", "-", *where, "--keep", "who", given=text)
    frame = pd.read_csv(io.BytesIO(out))
    assert np.abs(frame[["lon", "lat"]].to_numpy() - PLACES).max() < 1e-3
    assert frame["who"].tolist() == ["'=1+1", "b"]
    assert err.startswith(b"Two places")
    (tmp_path / "in.csv").write_bytes(text)
    out, _ = run(str(tmp_path / "in.csv"), "-o", "-", *where)
    assert np.abs(pd.read_csv(io.BytesIO(out)).to_numpy() - PLACES).max() < 1e-3
    with pytest.raises(InvalidInput, match="after a crash"):
        run("-", "-o", str(tmp_path / "o.csv"), *where, given=text)
    with pytest.raises(InvalidInput, match="is empty"):
        run("-", "-o", "-", *where)
    with pytest.raises(InvalidInput, match="row 2 has no number"):
        run("-", "-o", "-", *where, given=b"lon,lat\n1,2\n1,x\n")
