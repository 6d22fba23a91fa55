"""Noise asked for in metres, the sentence of a release, and coordinates that are not meant."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest

import whereish as wh
from whereish.errors import InvalidInput, WhereishWarning
from whereish.mechanisms.in_words import in_words
from whereish.mechanisms.wanted_level import wanted_level
from whereish.privacy.norms import Geodesic

WAYS = [{"mean_error": "300 m"}, {"within": "690 m"}, {"within": "500 m", "confidence": 0.9}]
CITY = {"lon": [2.35] * 4, "lat": [48.85] * 4}


@pytest.mark.parametrize("way", WAYS)
def test_floats_in_floats_out_and_arrays_in_arrays_out(way):
    lat, lon = wh.blur(lat=48.85, lon=2.33, **way)
    assert type(lat) is float
    assert type(lon) is float
    assert json.loads(json.dumps({"lat": lat, "lon": lon})) == {"lat": lat, "lon": lon}
    lat, lon = wh.blur(lat=48, lon=2, **way)  # whole numbers are degrees, too
    assert type(lat) is float
    lats, lons = wh.blur(lat=np.full((2, 3), 48.85), lon=np.full((2, 3), 2.33), **way)
    assert lats.shape == lons.shape == (2, 3)
    assert isinstance(lats, np.ndarray)
    lats, lons = wh.blur(lat=[48.85], lon=[2.33], **way)
    assert lats.shape == (1,)


@pytest.mark.parametrize(
    ("way", "low", "high"),
    [
        # The mean of 40,000 distances has a standard error of 0.0035 of itself.
        ({"mean_error": "300 m"}, 0.97, 1.005),
        ({"mean_error": "0.5 miles"}, 0.97, 1.005),
    ],
)
def test_the_mean_error_is_the_one_asked_for(way, low, high):
    rng = wh.SeededRandomness(7)
    place = np.full(40_000, 48.85), np.full(40_000, 2.33)
    lat, lon = wh.blur(lat=place[0], lon=place[1], rng=rng, **way)
    true = np.column_stack([place[1], place[0]])
    moved = Geodesic()(true, np.column_stack([np.asarray(lon), np.asarray(lat)]))
    assert low < moved.mean() / wh.Length.of(way["mean_error"]).m < high


@pytest.mark.parametrize(("chance", "slack"), [(0.5, 0.012), (0.95, 0.006)])
def test_the_radius_holds_as_many_as_asked_for(chance, slack):
    n = 40_000
    lat, lon = wh.blur(
        lat=np.full(n, 48.85),
        lon=np.full(n, 2.33),
        within="500 m",
        confidence=chance,
        rng=wh.SeededRandomness(8),
    )
    true = np.tile([2.33, 48.85], (n, 1))
    share = (Geodesic()(true, np.column_stack([np.asarray(lon), np.asarray(lat)])) <= 500).mean()
    assert chance - slack / 2 < share < chance + slack


def test_blur_and_perturb_draw_the_same_for_the_same_words():
    lat, lon = wh.blur(lat=48.85, lon=2.33, epsilon="1/km", rng=wh.SeededRandomness(3))
    x, y = wh.perturb(2.33, 48.85, epsilon="1/km", rng=wh.SeededRandomness(3))
    assert (lon, lat) == (float(x), float(y))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "give one of epsilon"),
        ({"epsilon": "1/km", "mean_error": "300 m"}, "2 of them"),
        ({"mean_error": "300 m", "confidence": 0.9}, "confidence goes with within"),
        ({"mean_error": 300}, "write '300 m'"),
        ({"mean_error": "300"}, "a unit, such as '200 m'"),
        ({"mean_error": "0 m"}, "greater than zero"),
        ({"mean_error": "30000 km"}, "no epsilon gives"),
        ({"within": "500 m", "confidence": 1.5}, "probability"),
        ({"within": "500 m", "confidence": "95%"}, "probability"),
    ],
)
def test_a_level_is_asked_for_in_one_way(given, sentence):
    for call in (
        lambda: wh.blur(lat=48.85, lon=2.33, **given),
        lambda: wh.blur(lat=[48.85], lon=[2.33], **given),
        lambda: wanted_level(**given),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            call()
    if given:
        with pytest.raises(InvalidInput, match=sentence):
            wh.sanitize(pa.table(CITY), lon="lon", lat="lat", **given)


@pytest.mark.parametrize("way", WAYS)
def test_a_release_is_asked_for_in_metres_and_says_so_first(tmp_path, way):
    level = wanted_level(**way)
    released = wh.sanitize(pa.table(CITY), lon="lon", lat="lat", **way)
    stated = json.loads(released.schema.metadata[b"whereish"])
    assert next(iter(stated)) == "in_words"
    assert stated["guarantee"]["metric"]["factor"] == level.per_m
    source = tmp_path / "in.csv"
    source.write_text("lon,lat\n2.35,48.85\n2.36,48.86\n")
    release = wh.sanitize(source, tmp_path / "out.csv", lon="lon", lat="lat", **way)
    assert release.in_words == stated["in_words"] == in_words(wh.GlobeLaplace(level))
    assert str(release).splitlines()[1] == release.in_words
    beside = json.loads((tmp_path / "out.csv.whereish.json").read_text())
    assert beside["in_words"] == release.in_words


def test_a_named_mechanism_finds_its_own_level():
    plane = wh.Plane.around(2.35, 48.85, "20 km")
    options = {"plane": plane}
    released = wh.sanitize(
        pa.table(CITY),
        lon="lon",
        lat="lat",
        mean_error="300 m",
        mechanism="planar-laplace",
        options=options,
    )
    assert released.num_rows == 4
    found = wanted_level(mean_error="300 m", family=wh.PlanarLaplace, **options)
    assert wh.PlanarLaplace(found, **options).mean_error.m == pytest.approx(300, rel=1e-9)


def test_the_sentence_is_true_of_the_mechanism():
    noise = wh.GlobeLaplace("ln(4)/200 m")
    said = in_words(noise)
    assert said.startswith("Two places 100 m apart stay within a factor 2 of each other")
    assert f"{math.ceil(noise.quantile(0.95).m)} m." in said
    assert "factor 12.2 " in in_words(wh.GlobeLaplace("1/km"), reports=5)  # exp(2.5) = 12.18
    levels = wh.PrivacyMap([[0.001, 0.001, 0.002], [0.001, 0.002, 0.002]], cell="500 m")
    said = in_words(wh.EikonalMechanism.build(levels))
    assert said.startswith("Levels run from 1 to 2 per km: two places 500 m apart")
    assert "factor 1.65 " in said  # exp(0.5), at the lowest level
    assert "2.72 if at the highest" in said
    square = [[0, 0], [0, 100], [100, 0]]
    assert "50 m apart stay within a factor 1.65" in in_words(wh.tight_channel(square, "0.01/m"))


@pytest.mark.parametrize(
    ("lon", "lat", "warned"),
    [
        ("lat", "lon", True),
        ("Latitude", "Longitude", True),
        ("pickup_latitude", "pickup_longitude", True),
        ("startLat", "startLng", True),
        ("lon", "lat", False),
        ("x", "y", False),
        ("platform", "slat", False),
        ("latlon_lon", "latlon_lat", False),
    ],
)
def test_names_of_columns_that_are_swapped_are_warned_of(lon, lat, warned):
    table = pa.table({lon: [2.35], lat: [48.85]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wh.sanitize(table, lon=lon, lat=lat, epsilon="1/km")
    ours = [w for w in caught if issubclass(w.category, WhereishWarning)]
    assert len(ours) == warned
    assert all("--bbox" in str(w.message) for w in ours)


def test_values_that_only_make_sense_swapped_are_refused_by_row_and_unquoted():
    table = pa.table({"a": [48.85, 48.86], "b": [2.35, 102.35]})
    with pytest.raises(InvalidInput, match=r"1 are beyond, in row 2: .*swapped") as caught:
        wh.sanitize(table, lon="a", lat="b", epsilon="1/km")
    assert "102" not in str(caught.value)


def test_longitudes_beyond_180_are_refused_or_wrapped_on_request():
    table = pa.table({"lon": [182.35, -182.5, 2.0], "lat": [48.85] * 3})
    with pytest.raises(InvalidInput, match=r"2 of 3 are beyond: .*wrap=True, or --wrap"):
        wh.sanitize(table, lon="lon", lat="lat", epsilon="1/m")
    wrapped = wh.sanitize(table, lon="lon", lat="lat", epsilon="1/m", wrap=True)
    assert np.allclose(wrapped["lon"], [-177.65, 177.5, 2.0], atol=0.01)
    for call in (wh.perturb, lambda lon, lat, **k: wh.blur(lat=lat, lon=lon, **k)):
        for lon, lat in ((190.0, 1.0), ([190.0], [1.0])):
            with pytest.raises(InvalidInput, match="within -180"):
                call(lon, lat, epsilon="1/m")
            call(lon, lat, epsilon="1/m", wrap=True)
    lat, lon = wh.blur(lat=1.0, lon=190.0, epsilon="1/m", wrap=True)
    assert abs(lon + 170) < 0.01


def test_a_bbox_may_be_its_four_bounds():
    table = pa.table(CITY)
    wh.sanitize(table, lon="lon", lat="lat", epsilon="1/km", bbox=(2, 48, 3, 49))
    for bad, sentence in [((2, 48, 3), "four bounds"), ("2,48,3,49", "four bounds"), (5, "four")]:
        with pytest.raises(InvalidInput, match=sentence):
            wh.sanitize(table, lon="lon", lat="lat", epsilon="1/km", bbox=bad)
    with pytest.raises(InvalidInput, match="outside the declared bbox"):
        wh.sanitize(table, lon="lon", lat="lat", epsilon="1/km", bbox=(3, 48, 4, 49))


def test_the_sentence_of_many_reports_has_a_power_where_no_number_fits():
    assert "stay within a factor e^3466 of each other" in in_words(
        wh.GlobeLaplace("ln(2)/100 m"), reports=5000
    )


def test_a_duckdb_result_belongs_to_the_callers_connection():
    duckdb = pytest.importorskip("duckdb")
    mine = duckdb.connect()
    mine.execute("CREATE TABLE shops AS SELECT 2.35 AS lon, 48.85 AS lat, 'a' AS who")
    released = wh.sanitize(
        mine.table("shops"), lon="lon", lat="lat", mean_error="300 m", keep=["who"]
    )
    joined = mine.sql("SELECT count(*) FROM released JOIN shops USING (who)").fetchall()
    assert joined == [(1,)]
    assert released.fetchall() == released.fetchall()  # no noise is drawn anew
    assert mine.sql("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []


def test_the_factor_that_is_advised_then_passes():
    radii = np.arange(0.0, 6000, 10)
    table, asked = (radii, np.exp(-0.005 * radii)), wh.Distinguishability.linear("0.005/m")
    with pytest.raises(wh.WhereishError, match="scaled") as caught:
        wh.CircularNoise(table, keeps=asked)
    factor = float(str(caught.value).partition("scaled(")[2].partition(")")[0])
    assert 1 < factor < 1.0001
    wh.CircularNoise(table, keeps=asked.scaled(factor))


def test_a_prior_that_nearly_sums_to_one_is_normalised_alike(tmp_path):
    from whereish.data.site_files import read_sites

    (tmp_path / "sites.csv").write_text("x,y,prior\n0,0,0.5\n9000,0,0.499997\n")
    said: list[str] = []
    sites, prior = read_sites(tmp_path / "sites.csv", wh.Epsilon.of("1/km"), said.append)
    assert said == [
        "the column prior of sites.csv sums to 0.999997: its entries are divided by that"
    ]
    here = wh.optimal_channel(sites, [0.5, 0.499997], "1/km")
    there = wh.optimal_channel(sites, prior, "1/km")
    assert (here.weights == there.weights).all()


def test_one_site_is_a_channel_too():
    for channel in (wh.identity_channel([[0, 0]]), wh.uniform_channel([[0, 0]])):
        assert channel.matrix.tolist() == [[1.0]]


def test_cells_of_a_map_beyond_its_region_are_told(tmp_path):
    plane = wh.Plane.projected("EPSG:2154", wh.Box(2.3, 48.8, 2.4, 48.9))
    corner = plane.from_degrees([2.35], [48.85]).coordinates[0]
    origin = (float(corner[0]), float(corner[1]))
    levels = wh.PrivacyMap(np.full((4, 30), 1e-3), "500 m", origin, plane)
    mechanism = wh.EikonalMechanism.build(levels, places="cells")
    centres = levels.raster.centres()
    with pytest.raises(InvalidInput, match=r"of the map's own 120 cells lie beyond its region"):
        mechanism.report(centres)
    inside = centres[plane.in_region(centres)]
    assert 0 < len(inside) < 120
    assert len(mechanism.report(inside)) == len(inside)
