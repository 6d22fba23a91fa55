"""Foreign services: everything that is truly near, the same request again or none, no traces."""

from __future__ import annotations

import contextlib
import logging
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from pyproj import Geod

import whereish as wh
from whereish.errors import InvalidInput, ServiceUnavailable
from whereish.lbs.sources.features import JsonSource, OgcFeatures, Overpass
from whereish.lbs.sources.postgis import PostgisSource

from lbs.servers import features, overpass, plain_json, serving
from postgres import binaries, server

GEOD = Geod(ellps="WGS84")
CENTRES = [(2.35, 48.85), (179.999, 0.0), (-179.9995, -70.0), (30.0, 89.995), (-70.0, -89.999)]
CAFES = 'nwr["amenity"="cafe"]'


@pytest.fixture(scope="module")
def places():
    """40 places about each centre, within 2 km."""
    draw = np.random.default_rng(1)
    ends = [
        GEOD.fwd(
            np.full(40, lon), np.full(40, lat), draw.uniform(0, 360, 40), draw.uniform(0, 2000, 40)
        )[:2]
        for lon, lat in CENTRES
    ]
    return np.concatenate([np.column_stack(pair) for pair in ends])


@pytest.fixture(scope="module")
def names(places):
    return [f"café {i}" for i in range(len(places))]


KINDS = {
    "features": (
        features,
        lambda url, **more: OgcFeatures(url, "cafés", keep=["name"], **more),
    ),
    "overpass": (overpass, lambda url, **more: Overpass(url, CAFES, keep=["name"], **more)),
    "json": (
        plain_json,
        lambda url, **more: JsonSource(
            f"{url}/search",
            {"centre": "{lon} {lat}", "radius": "{radius_m}"},
            results="data.items",
            lon="location.lng",
            lat="location.lat",
            keep={"name": "name"},
            **more,
        ),
    ),
}


@contextlib.contextmanager
def connected(kind, places, names, serve=None, **options):
    answer, source = KINDS[kind]
    with serving(answer(places, names, **(serve or {}))) as service:
        opened = source(service.url, sleep=lambda _: None, **options)
        with contextlib.closing(opened):
            yield service, opened


def truly_near(places, lon, lat, radius):
    n = len(places)
    return GEOD.inv(np.full(n, lon), np.full(n, lat), *places.T)[2] <= radius


@pytest.mark.parametrize("kind", KINDS)
def test_everything_truly_near_comes_whatever_the_services_earth(kind, places, names):
    with connected(kind, places, names) as (_, source):
        for lon, lat in CENTRES:
            for radius in (200.0, 984.0, 1999.0):
                found = source.around(lon, lat, radius)
                near = {names[i] for i in np.flatnonzero(truly_near(places, lon, lat, radius))}
                assert near <= set(found.columns["name"])
                assert found.complete
                assert found.bytes > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_query_is_exact(kind, places, names):
    frame, rng = dict(zip(names, places, strict=True)), wh.SeededRandomness(5)
    with connected(kind, places, names) as (service, source):
        for i in range(20):
            place = tuple(places[i])
            found = wh.nearby(place, "300 m", source=source, epsilon="ln(4)/200 m", rng=rng)
            if found.exact:
                near = {names[j] for j in np.flatnonzero(truly_near(places, *place, 300.0))}
                assert {row["name"] for row in found.results} == near
            assert all(
                (row["lon"], row["lat"]) == tuple(frame[row["name"]]) for row in found.results
            )
        # The place itself was never sent, nor a digit beyond the lattice.
        for seen in service.seen:
            sent = f"{seen.path} {seen.body.decode()}"
            assert not any(
                f"{lon:.5f}" in sent and f"{lat:.5f}" in sent for lon, lat in places[:20]
            )


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_is_in_no_log_and_no_temporary_file(kind, places, names, caplog, tmp_path):
    """At debug level, with failures too; the standard library's and httpx's loggers included."""
    caplog.set_level(logging.DEBUG)
    canary = (2.3471357, 48.8529753)
    with (
        connected(kind, places, names) as (service, source),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", str(tmp_path))
        ask = {"source": source, "epsilon": "ln(4)/200 m", "rng": wh.SeededRandomness(7)}
        wh.nearby(canary, "300 m", **ask)
        service.faults[:] = ["503", "drop", "404"]
        with pytest.raises(ServiceUnavailable) as told:
            wh.nearby(canary, "300 m", **ask)
    for text in (caplog.text, repr(told.value), "".join(map(repr, service.seen))):
        assert "2.34713" not in text
        assert "48.85297" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("faults", [["drop"], ["503", "429"], ["500", "drop"]])
def test_a_retry_is_the_same_request_to_the_byte(kind, faults, places, names):
    with connected(kind, places, names, attempts=3) as (service, source):
        service.faults[:] = faults
        wh.nearby((2.35, 48.85), "300 m", source=source, epsilon="ln(4)/200 m")
        first, *again = service.seen[: len(faults) + 1]
        assert len(again) == len(faults)
        for seen in again:
            assert (seen.method, seen.path, seen.body) == (first.method, first.path, first.body)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_tells_who_asks(kind, places, names, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with connected(kind, places, names) as (service, source):
        for lon in (2.35, 2.36, 2.37):
            source.around(lon, 48.85, 500.0)
        for seen in service.seen:
            headers = {name.lower(): value for name, value in seen.headers.items()}
            assert headers["user-agent"] == "whereish"
            assert not {"cookie", "referer", "authorization"} & set(headers)


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_is_asked_once(kind, places, names):
    with connected(kind, places, names) as (service, source):
        source.around(2.35, 48.85, 500.0)
        asked = len(service.seen)
        source.around(2.35, 48.85, 500.0)
        assert len(service.seen) == asked
        source.around(2.35, 48.85, 501.0)
        assert len(service.seen) > asked


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (["404"], "status 404"),
        (["redirect"], "status 302"),
        (["html"], "not JSON"),
        (["503"] * 3, "status 503"),
        (["drop"] * 3, "no connection"),
        (["slow"] * 3, "in time"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_fails_is_named_and_nothing_else(kind, faults, words, places, names, caplog):
    caplog.set_level(logging.DEBUG)
    # Short for the service that does not answer in time; a loaded machine is slow by itself.
    timeout_s = 0.3 if "slow" in faults else 30.0
    with connected(kind, places, names, timeout_s=timeout_s) as (service, source):
        service.faults[:] = faults
        with pytest.raises(ServiceUnavailable, match=words) as told:
            source.around(2.3456789, 48.8765432, 500.0)
        assert "127.0.0.1" in str(told.value)
        assert "2.34" not in str(told.value)
        assert "48.87" not in str(told.value)


def test_features_are_paged_and_a_box_across_the_antimeridian_is_two(places, names):
    with connected("features", places, names, serve={"page": 7}) as (service, source):
        found = source.around(179.999, 0.0, 2100.0)
        assert len(found) == 40
        boxes = {parse_qs(urlsplit(seen.path).query)["bbox"][0] for seen in service.seen}
        assert len(boxes) == 2
        assert len(service.seen) >= 6
        assert all(seen.path.startswith("/collections/caf%C3%A9s/items?") for seen in service.seen)


@pytest.mark.parametrize(
    ("kind", "serve", "options"),
    [
        ("features", {"cap": 5}, {}),
        ("overpass", {}, {"limit": 5}),
        ("json", {"cap": 5}, {"limit": 5}),
    ],
)
def test_a_capped_answer_says_so(kind, serve, options, places, names):
    with connected(kind, places, names, serve=serve, **options) as (service, source):
        found = source.around(2.35, 48.85, 2000.0)
        assert not found.complete
        near = wh.nearby((2.35, 48.85), "1500 m", source=source, epsilon="1/m")
        assert not near.complete
        assert not near.exact
        before = len(service.seen)
        source.around(2.35, 48.85, 2000.0)  # not kept, since the rest may come another time
        assert len(service.seen) > before


def test_pages_by_token(places, names):
    with connected(
        "json", places, names, serve={"page": 9}, next_page="next", page_parameter="cursor", limit=9
    ) as (service, source):
        found = source.around(2.35, 48.85, 2100.0)
        assert len(found) == 40
        assert found.complete
        assert len(service.seen) == 5
        assert {seen.method for seen in service.seen} == {"POST"}


def test_a_service_that_can_only_get(places, names):
    with connected("json", places, names, method="GET") as (service, source):
        assert len(source.around(2.35, 48.85, 2100.0)) == 40
        assert service.seen[0].method == "GET"


def test_overpass_that_gave_up_is_not_complete(places, names):
    def remark(seen):
        return {**overpass(places, names)(seen), "remark": "runtime error: Query timed out"}

    with serving(remark) as service, Overpass(service.url, CAFES) as source:
        assert not source.around(2.35, 48.85, 500.0).complete


def test_a_next_link_to_another_server_is_not_followed(places, names):
    def elsewhere(seen):
        link = {"rel": "next", "href": "http://127.0.0.1:9/items"}
        return {**features(places, names)(seen), "links": [link]}

    with (
        serving(elsewhere) as service,
        OgcFeatures(service.url, "cafes") as source,
        pytest.raises(ServiceUnavailable, match="another server"),
    ):
        source.around(2.35, 48.85, 500.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value", [[], {"features": [{}], "elements": [{}], "data": {"items": [{}]}}]
)
def test_an_answer_of_another_form_is_refused(kind, value):
    with (
        serving(lambda _: value) as service,
        KINDS[kind][1](service.url) as source,
        pytest.raises(ServiceUnavailable),
    ):
        source.around(2.35, 48.85, 500.0)


def test_geometries_that_are_no_points_have_a_middle():
    square = [[[2.0, 48.0], [2.2, 48.0], [2.2, 48.1], [2.0, 48.0]]]
    feature = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": square}}
    with (
        serving(lambda _: {"features": [feature]}) as service,
        OgcFeatures(service.url, "x") as ogc,
    ):
        found = ogc.around(2.1, 48.05, 500.0)
        assert found.coordinates.tolist() == [[pytest.approx(2.1), pytest.approx(48.05)]]


def test_wrong_settings_are_refused():
    with pytest.raises(InvalidInput, match="plain http"):
        Overpass("ftp://example.org", CAFES)
    with pytest.raises(InvalidInput, match="plain http"):
        Overpass("https://user:secret@example.org", CAFES)
    for what in ("nwr(1,2,3,4);out;", "nwr[a];(way[b]", ""):
        with pytest.raises(InvalidInput, match="Overpass filter"):
            Overpass("https://example.org", what)
    with pytest.raises(InvalidInput, match="radius_m"):
        JsonSource("https://example.org", {"lon": "{lon}"})
    with pytest.raises(InvalidInput, match="attempts"):
        Overpass("https://example.org", CAFES, attempts=0)


# -- PostGIS ------------------------------------------------------------------------


def _has_postgis() -> bool:
    found = binaries()
    share = Path("/usr/share/postgresql")
    return (
        found is not None
        and shutil.which("env") is not None
        and any(share.glob("*/extension/postgis.control"))
    )


@pytest.fixture(scope="module")
def table(places, names):
    if not _has_postgis():
        pytest.skip("PostGIS is not installed; see scripts/system-packages.sh")
    import psycopg

    with server() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION postgis")
            connection.execute(
                'CREATE TABLE "my cafés" (geometry geometry(Point, 4326), name text, n int)'
            )
            with connection.cursor() as cursor:
                cursor.executemany(
                    'INSERT INTO "my cafés" VALUES'
                    " (ST_SetSRID(ST_MakePoint(%s, %s), 4326), %s, %s)",
                    [(*map(float, places[i]), names[i], i) for i in range(len(places))],
                )
        yield address


def test_postgis_gives_everything_truly_near(table, places, names):
    source = PostgisSource(table, "public.my cafés", keep=["name", "n"])
    for lon, lat in CENTRES:
        for radius in (200.0, 984.0, 1999.0):
            found = source.around(lon, lat, radius)
            near = np.flatnonzero(truly_near(places, lon, lat, radius))
            assert set(found.columns["name"]) == {names[i] for i in near}
    place = tuple(places[3])
    found = wh.nearby(place, "300 m", source=source, epsilon="1/m", confidence=1 - 1e-9)
    assert found.exact
    assert {row["n"] for row in found.results} == set(
        np.flatnonzero(truly_near(places, *place, 300))
    )
    assert source.around(0.0, 0.0, 10.0).to_arrow().num_rows == 0
    source.close()


def test_postgis_that_fails_says_no_more_than_that(table):
    absent = PostgisSource(table, "no_such_table")
    with pytest.raises(ServiceUnavailable, match="UndefinedTable"):
        absent.around(2.3456, 48.8765, 10.0)
    absent.close()
    with pytest.raises(ServiceUnavailable, match="cannot be asked"):
        PostgisSource("postgresql:///x?host=/nowhere", "t").around(2.3456, 48.8765, 10.0)
    with pytest.raises(InvalidInput, match="postgresql://"):
        PostgisSource("sqlite://x", "t")
