"""Stores of places: everything within the radius, at poles, antimeridian and equator too."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyproj import Geod

import whereish as wh
from whereish.errors import InvalidInput, NotWritten
from whereish.lbs.sources.source import Places, Source, boxes_around

GEOD = Geod(ellps="WGS84")
CENTRES = [
    (0.0, 0.0),
    (2.35, 48.85),
    (179.9995, 12.0),
    (-180.0, -45.0),
    (359.0, 10.0),
    (77.0, 89.9995),
    (10.0, 90.0),
    (-120.0, -90.0),
    (12.345, -0.0001),
]


@pytest.fixture(scope="module")
def frame():
    """Places in rings about the centres, from a metre to 3,000 km, and all over the Earth."""
    draw = np.random.default_rng(1)
    parts = [np.column_stack([draw.uniform(-180, 180, 3000), draw.uniform(-90, 90, 3000)])]
    for lon, lat in CENTRES:
        away = np.exp(draw.uniform(0, np.log(3e6), 1000))
        ends = GEOD.fwd(np.full(1000, lon), np.full(1000, lat), draw.uniform(0, 360, 1000), away)
        parts.append(np.column_stack(ends[:2]))
    degrees = np.concatenate([*parts, [[180.0, 0.0], [-180.0, 0.0], [0.0, 90.0], [5.0, -90.0]]])
    return pd.DataFrame(
        {"lon": degrees[:, 0], "lat": degrees[:, 1], "number": np.arange(len(degrees))}
    )


@pytest.fixture(scope="module")
def store(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("places") / "places.db"
    return wh.PlaceStore.build(path, frame, keep=["number"])


@pytest.fixture(scope="module")
def memory(frame):
    return wh.MemorySource(frame, keep=["number"])


@pytest.mark.parametrize("centre", CENTRES)
def test_everything_within_the_radius_and_little_more(frame, store, memory, centre):
    lon, lat = centre
    n = len(frame)
    true = GEOD.inv(np.full(n, lon), np.full(n, lat), frame.lon, frame.lat)[2]
    for radius in (0.5, 30.0, 300.0, 984.0, 2e4, 5e5, 2.9e6):
        wanted = set(np.flatnonzero(true <= radius))
        most = set(np.flatnonzero(true <= 1.0102 * radius + 1e-3))
        for source in (store, memory):
            assert isinstance(source, Source)
            found = source.around(lon, lat, radius)
            numbers = set(found.columns["number"])
            assert wanted <= numbers <= most
            assert len(numbers) == len(found)
            assert found.complete


def test_the_whole_earth(frame, store, memory):
    assert len(store.around(3.0, 4.0, 2.1e7)) == len(memory.around(3.0, 4.0, 2.1e7)) == len(frame)
    assert len(store) == len(memory) == len(frame)


def test_boxes_hold_the_circle_and_are_tight():
    draw = np.random.default_rng(3)
    for _ in range(300):
        lon, lat = draw.uniform(-180, 180), draw.uniform(-89.9, 89.9)
        radius = math.exp(draw.uniform(0, math.log(2e6)))
        boxes = boxes_around(lon, lat, radius)
        ways = np.linspace(0, 360, 721)
        x, y, _ = GEOD.fwd(np.full(721, lon), np.full(721, lat), ways, np.full(721, radius))
        held = [(w <= x) & (x <= e) & (s <= y) & (y <= n) for w, s, e, n in boxes]
        assert np.any(held, axis=0).all()
        if len(boxes) == 1 and boxes[0][2] - boxes[0][0] < 300:
            assert boxes[0][3] - boxes[0][1] <= 1.0102 * np.ptp(y) + 1e-8


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "geojson", "gpkg"])
def test_files_of_every_kind(tmp_path, ending):
    table = pa.table(
        {"lon": [2.35, 2.36, -180.0], "lat": [48.85, 48.9, 0.0], "name": ["a", "é", None]}
    )
    path = tmp_path / f"places.{ending}"
    if ending == "csv":
        table.to_pandas().to_csv(path, index=False)
    elif ending == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    elif ending == "parquet":
        pq.write_table(table, path)
    else:
        import geopandas

        points = geopandas.points_from_xy(table["lon"], table["lat"])
        frame = geopandas.GeoDataFrame({"name": table["name"].to_pylist()}, geometry=points)
        frame.set_crs(4326).to_file(path)
    built = wh.PlaceStore.build(tmp_path / "store.db", path, keep=["name"])
    assert built.around(2.3501, 48.8501, 100).columns["name"] == ("a",)
    assert built.around(2.3601, 48.9001, 100).columns["name"] == ("é",)
    far = wh.MemorySource(path, keep=["name"]).around(180.0, 0.0, 100)
    assert len(far) == 1
    assert far.to_arrow().column_names == ["lon", "lat", "name"]


def test_columns_keep_their_names_and_values_whatever_they_are(tmp_path):
    odd = 'x"); DROP TABLE places; --'
    frame = pd.DataFrame(
        {"lon": [1.0], "lat": [2.0], odd: ["Robert'); --"], "cell": [7], "n": [1.5]}
    )
    built = wh.PlaceStore.build(tmp_path / "a.db", frame, keep=[odd, "cell", "n"])
    assert built.around(1.0, 2.0, 10).row(0) == {
        "lon": 1.0,
        "lat": 2.0,
        odd: "Robert'); --",
        "cell": 7,
        "n": 1.5,
    }


def test_what_is_no_store_or_no_place_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no store"):
        wh.PlaceStore(tmp_path / "absent.db")
    (tmp_path / "text.db").write_text("hello")
    with pytest.raises(InvalidInput, match="no store of places"):
        wh.PlaceStore(tmp_path / "text.db")
    canary = 91.2345
    with pytest.raises(InvalidInput, match="1 of 1") as told:
        wh.MemorySource(pd.DataFrame({"lon": [0.0], "lat": [canary]}))
    assert "91" not in str(told.value)
    with pytest.raises(InvalidInput, match="no column"):
        wh.MemorySource(pd.DataFrame({"lon": [0.0]}))
    with pytest.raises(InvalidInput, match="results' own"):
        wh.MemorySource(pd.DataFrame({"lon": [0.0], "lat": [0.0]}), keep=["lon"])
    with pytest.raises(NotWritten, match="cannot be written"):
        wh.PlaceStore.build(
            tmp_path / "no folder" / "a.db", pd.DataFrame({"lon": [0.0], "lat": [0.0]})
        )
    empty = wh.PlaceStore.build(
        tmp_path / "empty.db",
        pa.table({"lon": pa.array([], pa.float64()), "lat": pa.array([], pa.float64())}),
    )
    assert len(empty.around(0, 0, 1000)) == 0
    for query in ((math.nan, 0.0, 1.0), (0.0, 91.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, math.inf)):
        with pytest.raises(InvalidInput):
            empty.around(*query)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_store_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.db"
    first = wh.PlaceStore.build(path, pd.DataFrame({"lon": [1.0], "lat": [2.0]}))
    second = wh.PlaceStore.build(path, pd.DataFrame({"lon": [1.0, 1.0], "lat": [2.0, 2.0]}))
    assert (len(first.around(1, 2, 10)), len(second.around(1, 2, 10))) == (1, 2)


def test_a_repr_shows_no_place():
    places = Places({"lon": [2.345678], "lat": [48.876543]})
    assert "2.3" not in repr(places)
    assert "48" not in repr(places)
