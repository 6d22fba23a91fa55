"""Pinned places: one report, drawn once, kept in a private file."""

from __future__ import annotations

import json
import math
import os
import stat

import numpy as np
import pytest
from pyproj import Geod

import whereish as wh
from whereish.errors import BudgetExceeded, InvalidInput
from whereish.randomness import SeededRandomness

from lbs.recorder import Recorder

GEOD = Geod(ellps="WGS84")
EPS = "ln(4)/200 m"
SIGMAS = 4.9  # a false alarm below 1e-6
HOME = (2.3331698, 48.8541234)


@pytest.fixture
def pins(tmp_path):
    return wh.PinnedPlaces(tmp_path / "pins.json")


def test_ten_thousand_reports_from_home_are_one(pins, tmp_path):
    pins.pin("home", HOME, epsilon=EPS)
    recorder = Recorder()
    for _ in range(5_000):
        wh.nearby(HOME, "300 m", source=recorder, pinned=pins["home"])
    again = wh.PinnedPlaces(tmp_path / "pins.json")
    for _ in range(5_000):
        wh.nearby((HOME[0], HOME[1] + 1e-4), "300 m", source=recorder, pinned=again["home"])
    assert len(set(recorder.asked)) == 1


def test_averaging_finds_the_home_of_fresh_reports_and_never_of_the_pin(pins):
    """k: how many fresh reports place nine of ten homes within 50 m (bench_lbs prints it)."""
    noise, trials = wh.GlobeLaplace(EPS), 200
    reports = noise.report(np.tile(HOME, (trials * 512, 1)), rng=SeededRandomness(4)).coordinates
    sums = np.cumsum(reports.reshape(trials, 512, 2), axis=1)
    means = sums / np.arange(1, 513)[:, None]
    away = np.hypot((means[..., 0] - HOME[0]) * 73_200, (means[..., 1] - HOME[1]) * 111_200)
    found = (away < 50).mean(axis=0)
    k = int(np.argmax(found >= 0.9)) + 1
    assert 40 < k < 200
    assert found[-1] == 1.0
    # The pin: the mean of any number of reports is the one report, as far away as it is.
    distances = []
    for i in range(60):
        pin = pins.pin(f"home {i}", HOME, epsilon=EPS, rng=SeededRandomness(i))
        recorder = Recorder()
        for _ in range(20):
            wh.nearby(HOME, source=recorder, pinned=pin)
        seen = np.array([where[:2] for where in recorder.asked])
        assert (seen == seen[0]).all()
        distances.append(GEOD.inv(*HOME, *seen.mean(axis=0))[2])
    single = noise.cdf("50 m")  # what one report tells, 0.05
    within = np.mean(np.array(distances) < 50)
    assert within <= single + SIGMAS * math.sqrt(single * (1 - single) / 60)


def test_a_pin_covers_whoever_is_in_its_zone(tmp_path):
    pins = wh.PinnedPlaces(tmp_path / "pins.json")
    inside, n = 0, 80
    draw = np.random.default_rng(1)
    for i in range(n):
        pin = pins.pin(f"place {i}", HOME, epsilon=EPS, zone="80 m", rng=SeededRandomness(i))
        lon, lat, _ = GEOD.fwd(*HOME, draw.uniform(0, 360), 79.9)
        found = wh.nearby((lon, lat), "300 m", source=Recorder(), pinned=pin, confidence=0.9)
        inside += found.covered
        assert found.confidence == 0.9
    assert inside / n >= 0.9 - SIGMAS * math.sqrt(0.09 / n)
    assert wh.nearby(HOME, source=Recorder(), pinned=pin, confidence=0.91).confidence == 0.95
    with pytest.raises(InvalidInput, match=r"up to 0\.999"):
        wh.nearby(HOME, source=Recorder(), pinned=pin, confidence=0.9999)


def test_a_pin_covers_exactly_its_zone(pins):
    """The radius is the noise's quantile and the zone, for a source that is asked."""
    pin = pins.pin("home", HOME, epsilon=EPS, zone="80 m")
    recorder = Recorder()
    wh.nearby(HOME, "300 m", source=recorder, pinned=pin, confidence=0.95)
    noise = wh.GlobeLaplace(EPS)
    assert recorder.asked[0][2] == pytest.approx(300 + 80 + noise.quantile(0.95).m)


def test_the_file_of_pins_is_private_and_holds_no_true_place(pins, tmp_path):
    mask = os.umask(0)
    try:
        pins.pin("home", HOME, epsilon=EPS)
    finally:
        os.umask(mask)
    path = tmp_path / "pins.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "2.333169" not in text
    assert "48.854123" not in text
    assert [one.name for one in tmp_path.iterdir()] == ["pins.json"]
    path.chmod(0o644)
    again = wh.PinnedPlaces(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert again.names == ["home"]
    assert "home" in again
    assert again["home"].guarantee == wh.GlobeLaplace(EPS).guarantee.to_json()
    assert again["home"].statement == pins["home"].statement
    assert "Equal reports are seen to be equal" in pins["home"].statement
    assert wh.GlobeLaplace(EPS).guarantee.to_json()["statement"] in pins["home"].statement
    assert str(round(again["home"].lon, 2)) not in repr(again["home"])


def test_a_place_is_pinned_once_and_charged_once(pins, tmp_path):
    ledger = wh.open_ledger(tmp_path / "budget.db", cap=EPS)
    pins.pin("home", HOME, epsilon=EPS, ledger=ledger, subject="alice")
    with pytest.raises(InvalidInput, match="pinned already"):
        pins.pin("home", HOME, epsilon=EPS)
    with pytest.raises(BudgetExceeded):
        pins.pin("work", HOME, epsilon=EPS, ledger=ledger, subject="alice")
    assert pins.names == ["home"]
    with pytest.raises(InvalidInput, match="charged once"):
        wh.nearby(HOME, source=Recorder(), pinned=pins["home"], ledger=ledger)
    with pytest.raises(InvalidInput, match="no place is pinned"):
        _ = pins["gym"]
    pins.forget("home")
    assert len(wh.PinnedPlaces(tmp_path / "pins.json")) == 0


@pytest.mark.parametrize("damage", ["", "{}", "[1]", json.dumps({"format": "whereish pins 1"})])
def test_a_damaged_file_of_pins_is_refused(tmp_path, damage):
    path = tmp_path / "pins.json"
    path.write_text(damage)
    with pytest.raises(InvalidInput, match="cannot be read"):
        wh.PinnedPlaces(path)
