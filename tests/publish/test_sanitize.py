from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import whereish as wh
from whereish.errors import InsecureRandomness, InvalidInput, WhereishWarning
from whereish.privacy import Geodesic, GreatCircle, Guarantee
from whereish.publish.formats.tables import BATCH_ROWS
from whereish.publish.rows.locations import XY
from whereish.publish.sanitize import METADATA_KEY

EPS = "ln(4)/200 m"


def people(count: int = 500) -> pa.Table:
    generator = np.random.default_rng(9)
    return pa.table(
        {
            "id": np.arange(count),
            "lon": generator.uniform(2.2, 2.5, count),
            "lat": generator.uniform(48.8, 48.9, count),
            "altitude": generator.uniform(20, 80, count),
            "name": [f"person {i}" for i in range(count)],
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def source(request, tmp_path):
    path = tmp_path / f"people.{request.param}"
    if request.param == "csv":
        csv.write_csv(people(), path)
    else:
        pq.write_table(people(), path)
    return path


def read(path):
    return csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)


def folder(path):
    return sorted(p.name for p in path.parent.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_reports_replace_places_and_only_named_columns_leave(source, suffix):
    output = source.with_name("out" + suffix)
    plan = {"lon": "lon", "lat": "lat", "epsilon": EPS, "insecure_seed": 1}
    release = wh.sanitize(source, output, keep=["id"], **plan)
    released, true = read(output), people()
    assert release.rows == 500
    assert released.column_names == ["lon", "lat", "id"]
    assert [int(i) for i in released["id"].to_pylist()] == true["id"].to_pylist()
    ours = np.column_stack([released["lon"], released["lat"]])
    theirs = np.column_stack([true["lon"], true["lat"]])
    distances = GreatCircle()(ours, theirs)
    assert distances.mean() == pytest.approx(288.5, rel=0.15)
    assert (np.round(theirs, 5) == ours).all(axis=1).mean() < 0.01
    assert [name for name in folder(output) if "part" in name] == []


def test_the_guarantee_travels_with_the_file(source):
    parquet, text = source.with_name("o.parquet"), source.with_name("o.csv")
    for output in (parquet, text):
        release = wh.sanitize(source, output, lon="lon", lat="lat", epsilon=EPS)
    stored = json.loads(pq.read_schema(parquet).metadata[METADATA_KEY])
    assert Guarantee.from_json(stored["guarantee"]) == release.guarantee
    assert stored["reproducible"] is False
    beside = json.loads((source.parent / "o.csv.whereish.json").read_text())
    assert Guarantee.from_json(beside["guarantee"]) == release.guarantee
    assert beside["rows"] == 500


def test_input_metadata_stays_inside(tmp_path):
    schema = people().schema.with_metadata({"geo": '{"bbox": [2.2, 48.8]}', "pandas": "{}"})
    field = pa.field("name", pa.string(), metadata={"note": "secret"})
    table = people().cast(schema.set(4, field))
    pq.write_table(table, tmp_path / "in.parquet")
    wh.sanitize(
        tmp_path / "in.parquet",
        tmp_path / "o.parquet",
        lon="lon",
        lat="lat",
        epsilon=EPS,
        keep=["name"],
    )
    kept = pq.read_schema(tmp_path / "o.parquet")
    assert set(kept.metadata) == {METADATA_KEY}
    assert b"secret" not in (tmp_path / "o.parquet").read_bytes()


def test_many_batches(tmp_path):
    count = 2 * BATCH_ROWS + 17
    table = pa.table(
        {"lon": np.full(count, 2.3), "lat": np.full(count, 48.8), "i": np.arange(count)}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    seen = []
    release = wh.sanitize(
        tmp_path / "in.parquet",
        tmp_path / "o.parquet",
        lon="lon",
        lat="lat",
        epsilon=EPS,
        keep=["i"],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert release.rows == count
    assert seen[-1] == (count, count)
    assert pq.read_table(tmp_path / "o.parquet")["i"].to_pylist() == list(range(count))


def test_a_seed_must_be_asked_for_and_shows(source):
    outputs = [source.with_name(f"s{i}.parquet") for i in range(3)]
    seeds = [1, 1, None]
    for output, seed in zip(outputs, seeds, strict=True):
        wh.sanitize(source, output, lon="lon", lat="lat", epsilon=EPS, insecure_seed=seed)
    first, second, secure = (pq.read_table(output) for output in outputs)
    assert first.equals(second)
    assert not first.equals(secure)
    assert json.loads(first.schema.metadata[METADATA_KEY])["reproducible"] is True


def test_a_projected_mechanism(source):
    plane = wh.Plane.around(2.35, 48.85, "30 km")
    mechanism = wh.PlanarLaplace(EPS, plane=plane)
    output = source.with_name("o.csv")
    wh.sanitize(source, output, lon="lon", lat="lat", mechanism=mechanism, insecure_seed=1)
    released = read(output)
    ours = np.column_stack([released["lon"], released["lat"]])
    theirs = np.column_stack([people()["lon"], people()["lat"]])
    assert GreatCircle()(ours, theirs).mean() == pytest.approx(288.5, rel=0.15)


def broken(tmp_path, column: str, value: object) -> object:
    table = people().to_pydict()
    table[column][250] = value
    path = tmp_path / "broken.parquet"
    pq.write_table(pa.table(table), path)
    return path


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("lat", float("nan"), "finite"),
        ("lon", float("inf"), "finite"),
        ("lat", 90.5, "within -90..90"),
        ("lat", -91.0, "within -90..90"),
        ("lon", None, "missing"),
    ],
)
def test_bad_rows_are_refused_and_nothing_is_written(tmp_path, column, value, sentence):
    path = broken(tmp_path, column, value)
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wh.sanitize(path, tmp_path / "o.parquet", lon="lon", lat="lat", epsilon=EPS)
    assert folder(path) == ["broken.parquet"]
    assert "48.8" not in str(caught.value)
    assert "2.3" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty"),
        ("lon,lat\n", "no rows"),
        ("lon,lat\n2.33316,48.85412x\n", "cannot be read"),
        ("lon,lat\n2.33316,48.85412,7\n", "cannot be read"),
        ("lon,lat\n2.33316,\n", "missing"),
        ("x,y\n2.33316,48.85412\n", "no column 'lon', 'lat'"),
        ("lon,lat,lat\n2.33316,48.85412,48.85412\n", "two columns"),
        ('lon,lat\n"2.33316,48.85412\n', "cannot be read|no rows"),
    ],
)
def test_bad_csv_is_refused_in_one_sentence_without_coordinates(tmp_path, text, sentence):
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wh.sanitize(path, tmp_path / "o.csv", lon="lon", lat="lat", epsilon=EPS)
    assert folder(path) == ["in.csv"]
    assert "48.854" not in str(caught.value)
    # Nor with what a reader said of the value, which a log of all contexts would print.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_swapped_columns_are_caught_by_the_declared_box(source):
    box = wh.Box(2, 48, 3, 49)
    with (
        pytest.warns(WhereishWarning, match="swapped"),
        pytest.raises(InvalidInput, match="swapped"),
    ):
        wh.sanitize(source, source.with_name("o.csv"), lon="lat", lat="lon", epsilon=EPS, bbox=box)
    wh.sanitize(source, source.with_name("o.csv"), lon="lon", lat="lat", epsilon=EPS, bbox=box)


def test_questions_that_make_no_sense(source):
    out = source.with_name("o.parquet")
    good = {"lon": "lon", "lat": "lat", "epsilon": EPS}
    for change, sentence in [
        ({"epsilon": None}, "either a level"),
        ({"mechanism": wh.GlobeLaplace(EPS)}, "not both"),
        ({"lat": "lon"}, "two columns"),
        ({"keep": ["lat"]}, "own columns"),
        ({"keep": ["nonsense"]}, "no column"),
        ({"lon": "name"}, "number"),
        ({"epsilon": "0/m"}, "> 0"),
        ({"epsilon": None, "mechanism": wh.PlanarLaplace(EPS)}, "projected"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            wh.sanitize(source, out, **(good | change))
        assert not out.exists()
    for output, sentence in [
        (source.with_name("o.xlsx"), "must end in"),
        (source.parent / "nowhere" / "o.csv", "does not exist"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            wh.sanitize(source, output, **good)
    with pytest.raises(InvalidInput, match="not a file"):
        wh.sanitize(source.with_name("absent.csv"), out, **good)
    odd = source.with_name("in.txt")
    odd.write_text("x")
    with pytest.raises(InvalidInput, match="must end in"):
        wh.sanitize(odd, out, **good)


def test_an_existing_output_is_safe(source):
    out = source.with_name("o.csv")
    out.write_text("precious")
    with pytest.raises(InvalidInput, match="exists"):
        wh.sanitize(source, out, lon="lon", lat="lat", epsilon=EPS)
    assert out.read_text() == "precious"
    with pytest.raises(InvalidInput, match="another file"):
        wh.sanitize(source, source, lon="lon", lat="lat", epsilon=EPS, overwrite=True)
    wh.sanitize(source, out, lon="lon", lat="lat", epsilon=EPS, overwrite=True)
    assert "precious" not in out.read_text()


def test_damaged_parquet(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(people(), path)
    whole = path.read_bytes()
    generator = np.random.default_rng(1)
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(whole)
        if generator.random() < 0.5:
            damaged = damaged[: int(generator.integers(0, len(whole)))]
        else:
            for at in generator.integers(0, len(whole), 40):
                damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        out = tmp_path / "o.parquet"
        try:
            wh.sanitize(path, out, lon="lon", lat="lat", epsilon=EPS, overwrite=True)
            outcomes.add("read")
        except InvalidInput as error:
            outcomes.add("refused")
            assert not out.exists()
            outcomes.update({"told"} if "48.8" in str(error) else ())
        out.unlink(missing_ok=True)
        assert not list(tmp_path.glob("*.part"))
        assert not list(tmp_path.glob(".*"))
    assert "refused" in outcomes
    assert "told" not in outcomes


def test_real_check_ins(data_file, tmp_path):
    path = data_file("gowalla_nyc_checkins.parquet")
    names = pq.read_schema(path).names
    lon, lat = (next(n for n in names if n.startswith(prefix)) for prefix in ("lo", "la"))
    out = tmp_path / "nyc.parquet"
    release = wh.sanitize(path, out, lon=lon, lat=lat, epsilon=EPS, bbox=wh.Box(-76, 39, -72, 43))
    assert release.rows == pq.read_metadata(path).num_rows
    true, ours = pq.read_table(path, columns=[lon, lat]), pq.read_table(out)
    distances = GreatCircle()(*(np.column_stack([t[lon], t[lat]]) for t in (true, ours)))
    assert distances.mean() == pytest.approx(288.5, rel=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "48.85412,2.33316\n48.86,2.34\n",
        "48.85412;2.33316\n",
        "2.33316,48.85412,2.33316,48.85412\n1,2,3,4\n",
    ],
)
def test_a_file_without_a_header_is_not_repeated(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="header") as caught:
        wh.sanitize(path, tmp_path / "o.csv", lon="lon", lat="lat", epsilon=EPS)
    assert "48.8" not in str(caught.value)


def test_numbers_that_do_not_fit_are_not_repeated(tmp_path):
    table = pa.table({"lon": [2**60 + 1], "lat": [1]})
    with pytest.raises(InvalidInput) as caught:
        wh.sanitize(table, lon="lon", lat="lat", epsilon=EPS)
    assert str(2**60)[:6] not in str(caught.value)


class Seeded:
    """A careless mechanism that brings its own seed."""

    inner = wh.GlobeLaplace(EPS)
    space, guarantee = inner.space, inner.guarantee

    def report(self, secrets, *, rng=None):
        return self.inner.report(secrets, rng=wh.SeededRandomness(1))


def test_noise_that_somebody_could_draw_again_is_refused(source):
    output = source.with_name("o.csv")
    with pytest.raises(InsecureRandomness, match="protects nobody"):
        wh.sanitize(source, output, lon="lon", lat="lat", mechanism=Seeded())
    assert not output.exists()


def test_a_projected_release_promises_true_metres(source):
    mechanism = wh.PlanarLaplace(EPS, plane=wh.Plane.projected("EPSG:3857", wh.Box(2, 48, 3, 49)))
    output = source.with_name("o.parquet")
    release = wh.sanitize(source, output, lon="lon", lat="lat", mechanism=mechanism)
    stored = json.loads(pq.read_schema(output).metadata[METADATA_KEY])
    assert Guarantee.from_json(stored["guarantee"]) == release.guarantee
    assert release.guarantee.metric == mechanism.epsilon * Geodesic()


def test_metadata_within_a_struct_stays_inside(tmp_path):
    inner = pa.field("note", pa.string(), metadata={"bbox": "2.33316,48.85412"})
    kind = pa.struct([inner])
    table = pa.table(
        {"lon": [2.3], "lat": [48.8], "extra": pa.array([{"note": "x"}], type=kind)},
        schema=pa.schema([("lon", pa.float64()), ("lat", pa.float64()), ("extra", kind)]),
    )
    pq.write_table(table, tmp_path / "in.parquet")
    out = tmp_path / "o.parquet"
    wh.sanitize(tmp_path / "in.parquet", out, lon="lon", lat="lat", epsilon=EPS, keep=["extra"])
    assert b"48.85412" not in out.read_bytes()
    assert pq.read_table(out)["extra"].to_pylist() == [{"note": "x"}]


def test_a_box_may_cross_the_antimeridian(tmp_path):
    table = pa.table({"lon": [179.9, -179.9], "lat": [-17.0, -17.5]})
    released = wh.sanitize(
        table, lon="lon", lat="lat", epsilon=EPS, bbox=wh.Box(175, -20, 185, -15)
    )
    assert len(released) == 2


def test_subjects_are_spelled_in_one_way_and_are_no_place(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    place = {"lon": [2.33316, 2.34], "lat": [48.85412, 48.86]}
    plan = {"lon": "lon", "lat": "lat", "epsilon": EPS, "ledger": ledger}
    for who in ([1.5, 2.0], ["", "bob"], [None, "bob"]):
        table = pa.table({**place, "who": who})
        with pytest.raises(InvalidInput, match="who"):
            wh.sanitize(table, subject="who", **plan)
    with pytest.raises(InvalidInput, match="location"):
        wh.sanitize(pa.table(place), subject="lat", **plan)
    names = pa.array(["ann", "ann"]).dictionary_encode()
    wh.sanitize(pa.table({**place, "who": names}), subject="who", **plan)
    assert ledger.statement("ann").entries[0].times == 2


def test_levels_of_rows_are_capped_at_epsilon_and_charged_in_true_metres(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    table = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0], "e": [0.01, 0.005], "who": ["a", "b"]})
    plan = {"locations": [XY("x", "y")], "epsilon": "0.01/m", "mechanism": "manhattan-laplace"}
    wh.sanitize(table, epsilon_column="e", subject="who", ledger=ledger, **plan)
    assert ledger.statement("a").spent_per_m == pytest.approx(0.01 * 2**0.5)
    assert ledger.statement("b").spent_per_m == pytest.approx(0.005 * 2**0.5)
    above = table.set_column(2, "e", pa.array([0.012, 0.005]))
    with pytest.raises(InvalidInput, match="at most epsilon"):
        wh.sanitize(above, epsilon_column="e", subject="who", ledger=ledger, **plan)


def test_values_of_rows_that_are_not_there_do_not_leave(tmp_path):
    words = pa.array(["SECRET-CLINIC", "park", "park"]).dictionary_encode()
    table = pa.table({"lon": [2.3] * 3, "lat": [48.8] * 3, "t": words}).slice(1)
    pq.write_table(table, tmp_path / "in.parquet")
    released = wh.sanitize(table, lon="lon", lat="lat", epsilon=EPS, keep=["t"])
    assert "SECRET" not in str(released["t"].type) + str(released["t"].chunks)


def test_the_extent_of_true_geometries_cannot_be_kept():
    box = pa.array([{"xmin": 2.3, "ymin": 48.8, "xmax": 2.3, "ymax": 48.8}])
    table = pa.table({"lon": [2.3], "lat": [48.8], "bbox": box})
    with pytest.raises(InvalidInput, match="extent"):
        wh.sanitize(table, lon="lon", lat="lat", epsilon=EPS, keep=["bbox"])


def test_a_failing_remap_is_not_quoted():
    def broken(reports):
        raise ValueError(f"cannot move {reports}")

    table = pa.table({"lon": [2.33316], "lat": [48.85412]})
    with pytest.raises(InvalidInput, match="ValueError") as caught:
        wh.sanitize(table, lon="lon", lat="lat", epsilon=EPS, remap=broken)
    assert "48." not in str(caught.value)


def test_hidden_folders_are_not_released(tmp_path):
    for name in ("in/a.csv", "in/_temporary/0/b.csv", "in/.checkpoints/c.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("lon,lat\n2.3,48.8\n")
    release = wh.sanitize(tmp_path / "in", tmp_path / "out", lon="lon", lat="lat", epsilon=EPS)
    assert release.rows == 1
