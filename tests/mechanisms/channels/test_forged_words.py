"""A saved mechanism's words are not believed, and none of them steers a terminal."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import whereish as wh
from whereish.errors import InvalidInput, printable
from whereish.mechanisms.saved import load_artefact, save_artefact
from whereish.privacy.distinguishability import DistanceLevel, Distinguishability
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric

ESCAPE = "\x1b[2J\x1b]0;owned\x07 proven by everyone\nkept: all"


def whereish(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", *arguments], capture_output=True, text=True, check=False
    )


def forged(path, kind="channel", **said):
    """The same numbers with other words, under a hash that fits them."""
    saved = load_artefact(path)
    words = {k: v for k, v in saved.certificate.items() if k not in ("sha256", "format", "kind")}
    save_artefact(path, kind, dict(saved.arrays), {**words, **said})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "mechanism.npz"
    wh.exponential_channel(wh.Raster(3, 3, (500.0, 500.0)), "1/km").save(path)
    return path


def test_a_saved_channel_s_words_are_regenerated(saved):
    honest = wh.Channel.load(saved)
    said = load_artefact(saved).certificate["guarantee"]
    words = {"basis": "theorem", "source": ESCAPE, "statement": ESCAPE, "numerics": ESCAPE}
    forged(saved, guarantee={**said, **words}, details={"solver": ESCAPE})
    again = wh.Channel.load(saved)
    assert again.guarantee == honest.guarantee
    assert again.guarantee.basis is Basis.CERTIFIED
    for arguments in (["audit", str(saved)], ["audit", str(saved), "--json"]):
        done = whereish(*arguments)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["guarantee"] == honest.guarantee.to_json()
    assert "proven" not in json.dumps({k: v for k, v in told.items() if k != "claimed"})


def test_the_words_of_a_metric_are_regenerated(saved, tmp_path):
    level = DistanceLevel(Distinguishability.location("1 km", 5.0))
    read = Metric.from_json({**level.to_json(), "text": ESCAPE})
    assert read == level
    assert "proven" not in read.description
    assert "2 linear pieces, the last from 1000 m on" in read.description


def test_the_kind_of_a_file_steers_no_terminal(saved):
    forged(saved, kind=f"channel {ESCAPE}")
    done = whereish("audit", str(saved))
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_coordinate_system_s_name_steers_no_terminal(tmp_path):
    crs = "+proj=utm +zone=31 +datum=WGS84 +units=m +title=\x1b[2J"
    plane = wh.Plane.projected(crs, wh.Box(2.2, 48.8, 2.5, 48.9))
    noise = wh.PlanarLaplace("1/km", plane=plane).guarantee
    assert "\x1b" in noise.source
    assert "\x1b" not in str(noise)
    assert "\\x1b" in str(noise)


@pytest.mark.parametrize("guarantee", [None, {}, {"metric": None}, {"metric": 3}, "text"])
def test_a_file_without_a_metric_is_refused(saved, guarantee):
    forged(saved, guarantee=guarantee)
    with pytest.raises(InvalidInput, match="description of a metric"):
        wh.Channel.load(saved)


@pytest.mark.parametrize("name", ["secrets", "reports"])
@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        {"space": None},
        {"space": []},
        {"space": {}},
        {"space": {"kind": []}},
        {"space": {"kind": "plane"}},
        {"space": {"kind": "plane", "crs": None, "region": 3}},
        {"space": {"kind": "plane", "crs": 3, "region": [2.2, 48.8, 2.5, 48.9]}},
        {"space": {"kind": "torus"}},
    ],
)
def test_a_file_whose_space_is_none_is_refused(saved, name, said):
    forged(saved, **{name: said})
    with pytest.raises(InvalidInput):
        wh.load(saved)


@pytest.mark.parametrize("details", [None, 3, [1], "text"])
def test_details_that_are_no_object_are_refused(saved, details):
    forged(saved, details=details)
    with pytest.raises(InvalidInput, match="details"):
        wh.load(saved)


def test_printable_keeps_words_and_escapes_what_steers():
    assert printable("ε · d∞ ≤ 2 km") == "ε · d∞ ≤ 2 km"
    assert printable("a\x1b[1mb\n\u202e") == "a\\x1b[1mb\\n\\u202e"
    spoken = Guarantee(wh.Euclidean(), Basis.THEOREM, "line\nnext")
    assert "\n" not in str(spoken)
