"""One kernel, every frame; and what a plan can say."""

from __future__ import annotations

import math
import re

import duckdb
import geopandas as gpd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely

import whereish as wh
from whereish.errors import BudgetExceeded, InvalidInput, WhereishError
from whereish.privacy import GreatCircle
from whereish.publish.rows.locations import XY
from whereish.publish.rows.plan import build_sanitizer
from whereish.publish.rows.public_places import H3Cells, Roads

EPS = "ln(4)/200 m"
ROWS = 400
PLAN = {"lon": "lon", "lat": "lat", "epsilon": EPS}


def people(rows: int = ROWS) -> pd.DataFrame:
    generator = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "who": [f"p{i % 8}" for i in range(rows)],
            "lon": generator.uniform(2.2, 2.5, rows),
            "lat": generator.uniform(48.8, 48.9, rows),
            "note": "at home",
        },
        index=[f"row {i}" for i in range(rows)],
    )


def to_geo(frame: pd.DataFrame) -> gpd.GeoDataFrame:
    points = gpd.points_from_xy(frame["lon"], frame["lat"])
    return gpd.GeoDataFrame(frame[["who", "note"]], geometry=points, crs=4326)


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "duckdb": duckdb.from_df,
}


def as_pandas(frame) -> pd.DataFrame:
    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.df()
    return frame.to_pandas()


def distances(frame: pd.DataFrame, lon="lon", lat="lat") -> np.ndarray:
    return GreatCircle()(frame[[lon, lat]].to_numpy(), people()[["lon", "lat"]].to_numpy())


@pytest.mark.parametrize("kind", FRAMES)
def test_the_callers_type_comes_back(kind):
    frame = FRAMES[kind](people())
    released = wh.sanitize(frame, keep=["who"], **PLAN)
    assert type(released) is type(frame)
    back = as_pandas(released)
    assert list(back.columns) == ["lon", "lat", "who"]
    assert back["who"].tolist() == people()["who"].tolist()
    assert distances(back).mean() == pytest.approx(288.5, rel=0.2)
    assert distances(back).min() > 0
    # Reading a released frame again draws nothing anew.
    assert as_pandas(released).equals(back)


def test_the_index_is_a_column_like_any_other():
    assert wh.sanitize(people(), **PLAN).index.tolist() == list(range(ROWS))


def test_a_geodataframe_keeps_its_geometry_and_crs():
    frame = to_geo(people()).rename_geometry("home")
    released = wh.sanitize(frame, epsilon=EPS, keep=["who"])
    assert isinstance(released, gpd.GeoDataFrame)
    assert released.geometry.name == "home"
    assert released.crs == frame.crs
    assert list(released.columns) == ["home", "who"]
    apart = GreatCircle()(released.get_coordinates(), frame.get_coordinates())
    assert apart.mean() == pytest.approx(288.5, rel=0.2)
    assert released.attrs["whereish"]["guarantee"]["basis"] == "theorem"


def test_heights_do_not_leave():
    points = shapely.points(people()["lon"], people()["lat"], 35.0)
    frame = gpd.GeoDataFrame(geometry=points, crs=4326)
    assert not wh.sanitize(frame, epsilon=EPS).has_z.any()


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (to_geo(people()).to_crs(2154), "Lambert"),
        (to_geo(people()).set_crs(None, allow_override=True), "does not say"),
        (pl.from_pandas(people()).lazy(), "collect it first"),
        ([1, 2], "must be a path, or a frame"),
        (people(0), "no rows"),
        (people().drop(columns="lat"), "no column 'lat'"),
        (people().set_axis(["who", "lon", "lat", "lat"], axis=1), "two columns named 'lat'"),
        (people().assign(lat=[*[48.81234] * (ROWS - 1), "x"]), "mixed types"),
        (people().assign(lat="48.81234"), "must hold numbers"),
        (people().assign(lat=math.nan), "place in every row|finite"),
    ],
)
def test_refused(frame, sentence):
    plan = {"epsilon": EPS} if isinstance(frame, gpd.GeoDataFrame) else PLAN
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wh.sanitize(frame, **plan)
    assert "48.8" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


# Several locations


def commuters() -> pd.DataFrame:
    frame = people()
    return frame.assign(work_lon=frame["lon"] + 0.1, work_lat=frame["lat"] + 0.05)


def test_only_the_home_is_secret():
    released = wh.sanitize(commuters(), keep=["work_lon", "work_lat"], **PLAN)
    assert released["work_lon"].tolist() == commuters()["work_lon"].tolist()
    assert distances(released).min() > 0


def test_home_and_work_are_secret_and_independent():
    pairs = [("lon", "lat"), ("work_lon", "work_lat")]
    released = wh.sanitize(commuters(), locations=pairs, epsilon=EPS, insecure_seed=1)
    home = released[["lon", "lat"]].to_numpy() - commuters()[["lon", "lat"]].to_numpy()
    work = released[["work_lon", "work_lat"]].to_numpy()
    work = work - commuters()[["work_lon", "work_lat"]].to_numpy()
    assert abs(np.corrcoef(home[:, 0], work[:, 0])[0, 1]) < 0.2
    assert (np.abs(home - work) < 1e-9).all(axis=1).sum() <= 1
    assert "2 k times" in released.attrs["whereish"]["scope"]


def test_each_location_of_each_row_is_charged(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    pairs = [("lon", "lat"), ("work_lon", "work_lat")]
    plan = {"locations": pairs, "epsilon": EPS, "subject": "who"}
    wh.sanitize(commuters(), ledger=ledger, **plan)
    assert ledger.statement("p1").entries[0].times == 2 * ROWS // 8
    with pytest.raises(BudgetExceeded):
        wh.sanitize(commuters(), ledger=ledger, **plan)
    assert len(ledger.statement("p1").entries) == 1


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"epsilon": EPS}, "where the locations are"),
        ({"epsilon": EPS, "lon": "lon"}, "given together"),
        ({**PLAN, "locations": [("lon", "lat")]}, "one location"),
        ({**PLAN, "keep": "who"}, "list of column names"),
        ({**PLAN, "keep": ["who", "who"]}, "twice"),
        ({**PLAN, "keep": ["who"], "coarsen": {"who": "1 h"}}, "twice"),
        ({**PLAN, "coarsen": {"who": "1 fortnight"}}, "time step"),
        ({**PLAN, "coarsen": {"lon": "1 h"}}, "own columns"),
        ({**PLAN, "mechanism": "nonsense"}, "must be one of"),
        ({**PLAN, "remap": 7}, "remap must be"),
        ({**PLAN, "subject": "who"}, "belong together"),
        (
            {"lon": "lon", "lat": "lat", "mechanism": wh.GlobeLaplace(EPS), "epsilon_column": "e"},
            "epsilon_column needs",
        ),
    ],
)
def test_plans_that_make_no_sense(plan, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        wh.sanitize(people(), **plan)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        wh.sanitize(people(), nonsense=1, **PLAN)


# Mechanisms, levels, remaps, times


def test_a_mechanism_by_its_name():
    plane = wh.Plane.around(2.35, 48.85, "40 km")
    options = {"plane": plane, "resolution": "100 m"}
    released = wh.sanitize(people(), mechanism="planar-laplace", options=options, **PLAN)
    assert distances(released).mean() == pytest.approx(288.5, rel=0.2)
    steps = plane.from_degrees(released["lon"], released["lat"]).coordinates / 100
    assert np.abs(steps - np.round(steps)).max() < 1e-6


@pytest.mark.parametrize("name", ["planar-laplace", "manhattan-laplace"])
def test_coordinates_of_a_plane(name, tmp_path):
    frame = pd.DataFrame({"x": np.arange(500.0), "y": np.zeros(500)})
    plan = {"locations": [XY("x", "y")], "epsilon": "1/100 m", "mechanism": name}
    released = wh.sanitize(frame, **plan)
    mean = {"planar-laplace": 200, "manhattan-laplace": 162}[name]
    assert np.hypot(released["x"] - frame["x"], released["y"]).mean() == pytest.approx(
        mean, rel=0.2
    )
    assert (released["x"] % 1 == 0).all()
    frame.to_csv(tmp_path / "in.csv", index=False)
    assert wh.sanitize(tmp_path / "in.csv", tmp_path / "out.csv", **plan).rows == 500
    with pytest.raises(InvalidInput, match="plane's metres"):
        wh.sanitize(tmp_path / "in.csv", tmp_path / "out.gpkg", **plan)
    with pytest.raises(InvalidInput, match="need a mechanism on a plane"):
        wh.sanitize(frame, locations=[XY("x", "y")], epsilon=EPS)


def test_the_level_that_a_budget_is_charged():
    plane = wh.Plane.around(2.35, 48.85, "40 km")
    asked = wh.Epsilon.of(EPS)
    assert build_sanitizer(PLAN).epsilon() == asked
    planar = build_sanitizer({**PLAN, "mechanism": "planar-laplace", "options": {"plane": plane}})
    assert planar.epsilon() == asked
    metres = {"locations": [XY("x", "y")], "epsilon": EPS, "mechanism": "manhattan-laplace"}
    # eps * |x - x'|_1 <= eps * sqrt(2) * |x - x'|
    assert build_sanitizer(metres).epsilon().per_m == pytest.approx(
        asked.per_m * math.sqrt(2), rel=1e-12
    )


def test_each_row_has_its_own_level(tmp_path):
    high, low = wh.Epsilon.of(EPS).per_m, wh.Epsilon.of(EPS).per_m / 10
    frame = people().assign(level=np.where(np.arange(ROWS) % 2, low, high))
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    plan = {**PLAN, "epsilon_column": "level", "insecure_seed": 1}
    released = wh.sanitize(frame, ledger=ledger, subject="who", **plan)
    apart = distances(released)
    assert apart[::2].mean() == pytest.approx(288.5, rel=0.2)
    assert apart[1::2].mean() == pytest.approx(2885, rel=0.2)
    spent = {who: ledger.statement(who).spent_per_m for who in ("p0", "p1")}
    assert spent["p0"] == pytest.approx(50 * high)
    assert spent["p1"] == pytest.approx(50 * low)
    for wrong in (2 * high, 0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="at most epsilon"):
            wh.sanitize(frame.assign(level=wrong), epsilon_column="level", **PLAN)


def test_reports_move_to_public_sites():
    generator = np.random.default_rng(0)
    blocks = np.column_stack([generator.uniform(2.2, 2.5, 90), generator.uniform(48.8, 48.9, 90)])
    sites = wh.Sites(wh.Points(blocks, wh.Sphere()))
    released = wh.sanitize(people(), remap=sites, **PLAN)
    places = set(map(tuple, released[["lon", "lat"]].to_numpy().tolist()))
    assert places <= set(map(tuple, blocks.tolist()))
    assert len(places) > 30
    plane = wh.Plane.around(2.35, 48.85, "40 km")
    projected = wh.Sites(plane.from_degrees(*blocks.T))
    moved = wh.sanitize(people(), remap=projected, insecure_seed=1, **PLAN)
    same = wh.sanitize(people(), remap=sites, insecure_seed=1, **PLAN)
    assert np.allclose(moved[["lon", "lat"]], same[["lon", "lat"]], atol=1e-7)


def test_reports_move_to_roads():
    streets = [shapely.LineString([(2.0, y), (2.7, y)]) for y in (48.8, 48.85, 48.9)]
    released = wh.sanitize(people(), remap=Roads(streets, latitude=48.85), **PLAN)
    on_road = np.abs(released["lat"].to_numpy()[:, None] - [48.8, 48.85, 48.9]).min(axis=1)
    assert on_road.max() < 1e-9
    with pytest.raises(InvalidInput, match="nothing but lines"):
        wh.sanitize(people(), remap=Roads([shapely.Point(2, 48)], latitude=48.85), **PLAN)


def test_reports_move_to_h3_cells():
    h3 = pytest.importorskip("h3")
    released = wh.sanitize(people(), remap=H3Cells(8), **PLAN)
    for lon, lat in released[["lon", "lat"]].to_numpy()[:20].tolist():
        centre = h3.cell_to_latlng(h3.latlng_to_cell(lat, lon, 8))
        assert centre == pytest.approx((lat, lon), abs=1e-9)
    with pytest.raises(InvalidInput, match="0 to 15"):
        H3Cells(16)


def test_a_remap_of_another_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"\(n, 2\) degrees"):
        wh.sanitize(people(), remap=lambda degrees: degrees[:1], **PLAN)


@pytest.mark.parametrize(
    ("values", "step", "expected"),
    [
        (pd.to_datetime(["2026-03-04T05:06:07Z"]), "15 min", "2026-03-04T05:00:00+00:00"),
        (pd.to_datetime(["2026-03-04T05:06:07"]), "1 h", "2026-03-04T05:00:00"),
        (["2026-03-04T05:06:07+02:00"], "1 d", "2026-03-04T00:00:00Z"),
        (["2026-03-04 05:06:07"], "1 month", "2026-03-01T00:00:00"),  # local time stays local
    ],
)
def test_coarse_times(values, step, expected):
    frame = people(1).assign(time=values)
    released = wh.sanitize(frame, coarsen={"time": step}, **PLAN)
    told = released["time"][0]
    assert (told if isinstance(told, str) else told.isoformat()) == expected


@pytest.mark.parametrize("step", ["1 h", "1 d", "1 week", "1 month"])
def test_no_time_zone_survives_coarsen(step):
    """Neither in the type nor in the moment at which a day, or a month, begins."""
    moments = pd.to_datetime(["2026-03-04T23:06:07Z", "2026-03-31T22:30:00Z"])
    frames = [
        people(2).assign(time=moments.tz_convert(zone))
        for zone in ("UTC", "Asia/Kathmandu", "America/St_Johns", "Australia/Eucla")
    ]
    released = [wh.sanitize(frame, coarsen={"time": step}, **PLAN)["time"] for frame in frames]
    assert all(str(times.dtype.tz) == "UTC" for times in released)
    assert all(times.tolist() == released[0].tolist() for times in released)


def test_times_that_are_none():
    for values in (["noon"], [17]):
        with pytest.raises(InvalidInput, match="must hold times"):
            wh.sanitize(people(1).assign(t=values), coarsen={"t": "1 h"}, **PLAN)


# Code that is not ours


class Quoting(wh.GlobeLaplace):
    """A user's mechanism that says too much."""

    error: type[Exception] = RuntimeError

    def report(self, places, rng=None):
        raise self.error(f"cannot report {places.coordinates.tolist()}") from ValueError("48.8")


class Loud(WhereishError):
    """A subclass of our own root, from elsewhere."""


@pytest.mark.parametrize("error", [RuntimeError, ValueError, InvalidInput, Loud, KeyError])
def test_a_users_exception_is_withheld(error):
    Quoting.error = error

    def remap(degrees):
        raise error(f"cannot move {degrees.tolist()}")

    jobs = [
        {"mechanism": Quoting(EPS), "lon": "lon", "lat": "lat"},
        {"remap": remap, **PLAN},
    ]
    for job in jobs:
        with pytest.raises(InvalidInput, match=f"failed with {error.__name__}") as caught:
            wh.sanitize(people(), **job)
        assert not re.search(r"\d", str(caught.value))
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_our_own_sentences_pass():
    with pytest.raises(InvalidInput, match="latitude"):
        wh.sanitize(people().assign(lat=91.0), **PLAN)
    with pytest.raises(InvalidInput, match="latitude"):
        wh.sanitize(people().assign(lat=91.0), lon="lon", lat="lat", mechanism=Quoting(EPS))


def test_reports_share_no_memory_with_what_a_mechanism_holds():
    held = np.empty((4, ROWS))

    class Holding(wh.GlobeLaplace):
        def report(self, places, rng=None):
            held[:2] = super().report(places, rng=rng).coordinates.T
            held[2:] = places.coordinates.T
            return wh.Points.trusted(held[:2].T, wh.Sphere(), reproducible=False)

    table = pa.Table.from_pandas(people(), preserve_index=False)
    released = wh.sanitize(table, lon="lon", lat="lat", mechanism=Holding(EPS))
    for name in ("lon", "lat"):
        values = released.column(name).chunk(0).to_numpy()
        assert not np.shares_memory(values, held)


def test_the_scope_says_what_must_hold_for_levels_of_rows():
    frame = people().assign(level=0.001)
    released = wh.sanitize(frame, epsilon_column="level", **PLAN)
    assert "must not depend on its location" in released.attrs["whereish"]["scope"]
    assert "depend" not in wh.sanitize(people(), **PLAN).attrs["whereish"]["scope"]
