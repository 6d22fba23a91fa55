"""The keywords of a release: shown by every entry point, checked, and read once for each job."""

from __future__ import annotations

import inspect
import pydoc

import numpy as np
import pandas as pd
import pytest

import whereish as wh
from whereish import engines
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.privacy.distinguishability import Distinguishability
from whereish.publish.rows import plan as plan_module
from whereish.publish.rows.plan import Plan, build_sanitizer
from whereish.solvers.radial.log_linear import LogLinear

EPS = "ln(4)/200 m"
PLAN = {"lon": "lon", "lat": "lat", "epsilon": EPS}
ENTRY_POINTS = {"sanitize": wh.sanitize} | {
    name: getattr(engines, name).sanitize for name in engines.__all__
}


def people(rows: int = 4) -> pd.DataFrame:
    return pd.DataFrame({"lon": [2.3] * rows, "lat": [48.8] * rows})


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_help_shows_every_keyword_with_its_default_and_meaning(name):
    function = ENTRY_POINTS[name]
    parameters = inspect.signature(function).parameters
    assert set(Plan.__annotations__) <= set(parameters)
    assert not [p for p in parameters.values() if p.kind is p.VAR_KEYWORD]
    keywords = [p for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert all(p.default in (None, (), False) for p in keywords)
    shown = pydoc.render_doc(function, renderer=pydoc.plaintext)
    section = shown.partition("Parameters\n")[2].partition("Returns\n")[0]
    entries = [
        word.strip()
        for line in section.splitlines()
        if len(line) - len(line.lstrip()) <= 8
        for word in line.split(",")
    ]
    assert [p.name for p in keywords if p.name not in entries] == []


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_the_keywords_are_the_same_everywhere(name):
    known = inspect.signature(wh.sanitize).parameters
    for parameter in inspect.signature(ENTRY_POINTS[name]).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert str(known[parameter.name]) == str(parameter)


def test_a_mistyped_keyword_gets_the_one_that_was_meant():
    sentence = r"sanitize\(\) got an unexpected argument 'lonn'; did you mean 'lon'\?"
    with pytest.raises(TypeError, match=sentence):
        build_sanitizer({**PLAN, "lonn": "x"})
    with pytest.raises(TypeError, match=r"unexpected argument 'zzz': it has lon, lat, geometry"):
        build_sanitizer({**PLAN, "zzz": "x"})
    with pytest.raises(TypeError, match=r"sanitize\(\) got an unexpected keyword argument 'lonn'"):
        wh.sanitize(people(), **PLAN, lonn="x")


def test_what_is_not_epsilon_times_metres_cannot_be_charged(tmp_path):
    stairs = Distinguishability.stairs("100 m", 1.0)  # of which the noise keeps half
    heights = -0.499 * np.array([0.0, 1, 2, 3, 3])
    radial = LogLinear([0.0, 100, 200, 300, 400, np.inf], heights, heights, slope=0.00499)
    noise = CircularNoise(radial, keeps=stairs, plane=wh.Plane.around(2.3, 48.8, "30 km"))
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    frame = people().assign(who="p")
    sentence = "cannot be charged: the guarantee is not epsilon x metres, but"
    with pytest.raises(InvalidInput, match=sentence):
        wh.sanitize(frame, lon="lon", lat="lat", mechanism=noise, ledger=ledger, subject="who")
    assert ledger.statement("p").entries == ()


def test_a_folder_of_five_files_builds_its_mechanism_once(tmp_path, monkeypatch):
    """It was built six times: once for the job, and once for each file."""
    built = []
    named = plan_module.mechanism_named

    def counted(name, *arguments, **options):
        built.append(name)
        return named(name, *arguments, **options)

    monkeypatch.setattr(plan_module, "mechanism_named", counted)
    (tmp_path / "in").mkdir()
    for number in range(5):
        people().to_parquet(tmp_path / "in" / f"{number}.parquet")
    assert wh.sanitize(tmp_path / "in", tmp_path / "out", **PLAN).rows == 20
    assert built == ["globe-laplace"]


def test_files_of_a_folder_have_their_own_geometries(tmp_path):
    """One is built for all files, but each is read where its own geometry stands."""
    gpd = pytest.importorskip("geopandas")
    (tmp_path / "in").mkdir()
    for name in ("home", "place"):
        points = gpd.GeoSeries.from_xy([2.3, 2.4], [48.8, 48.9], crs=4326)
        frame = gpd.GeoDataFrame({name: points}, geometry=name)
        frame.to_parquet(tmp_path / "in" / f"{name}.geoparquet")
    assert wh.sanitize(tmp_path / "in", tmp_path / "out", epsilon=EPS).rows == 4
    for name in ("home", "place"):
        released = gpd.read_parquet(tmp_path / "out" / f"{name}.geoparquet")
        assert released.geometry.name == name
        assert abs(released.geometry.x - [2.3, 2.4]).max() < 0.1
