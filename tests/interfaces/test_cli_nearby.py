"""``whereish nearby`` and ``whereish places``: what is near, asked around a report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import whereish as wh
from whereish.errors import InvalidInput
from whereish.interfaces.cli.lbs import nearby, places

AT = "48.85412,2.33316"
HOME = (2.33316, 48.85412)
SURE = 1 - 1e-9  # that everything wanted is fetched


def run(name, *arguments, stdin=None):
    command = {"nearby": nearby.command, "places": places.command}[name]
    done = CliRunner().invoke(command, list(arguments), input=stdin, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


@pytest.fixture
def cafes(tmp_path):
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "lon": draw.normal(HOME[0], 0.01, 2000),
            "lat": draw.normal(HOME[1], 0.007, 2000),
            "name": [f"café {i}" for i in range(2000)],
        }
    )
    path = tmp_path / "cafes.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def store(cafes, tmp_path):
    path = tmp_path / "cafes.db"
    done = run("places", str(cafes), str(path), "--keep", "name")
    assert done.stdout == "2000 places in cafes.db\n"
    return path


def test_places_nearest_first(cafes, store):
    for source in (cafes, store):
        done = run(
            "nearby",
            "--at",
            "-",
            "--places",
            str(source),
            "--keep",
            "name",
            "--epsilon",
            "1/m",
            "--confidence",
            str(SURE),
            stdin=AT,
        )
        known = wh.MemorySource(cafes, keep=["name"])
        truth = wh.nearby(HOME, source=known, epsilon="10/m", confidence=SURE)
        assert truth.exact
        lines = done.stdout.splitlines()
        assert [line.split("  ")[-1] for line in lines] == [row["name"] for row in truth.results]
        assert "places that were fetched within" in done.stderr
        assert "48.85412" not in done.stderr


def test_json_says_how_it_was_found(store):
    done = run("nearby", "--at", AT, "--places", str(store), "--epsilon", "ln(4)/200 m", "--json")
    told = json.loads(done.stdout)
    assert set(told) == {
        "results",
        "report",
        "radius_m",
        "confidence",
        "covered",
        "complete",
        "fetched",
        "bytes",
    }
    assert told["confidence"] == 0.95
    assert told["radius_m"] == wh.retrieval_radius(wh.GlobeLaplace("ln(4)/200 m"), "300 m", 0.95).m
    assert (told["report"]["lat"], told["report"]["lon"]) != HOME[::-1]


def test_the_k_nearest_and_the_unfiltered(store):
    done = run(
        "nearby",
        "--at",
        AT,
        "--places",
        str(store),
        "--epsilon",
        "1/m",
        "-k",
        "3",
        "--per-km2",
        "300",
    )
    assert len(done.stdout.splitlines()) == 3
    done = run(
        "nearby",
        "--at",
        AT,
        "--places",
        str(store),
        "--epsilon",
        "1/m",
        "--unfiltered",
        "--radius",
        "200 m",
        "--json",
    )
    assert json.loads(done.stdout)["radius_m"] == 200


def test_a_pin_is_drawn_once(store, tmp_path):
    pins = str(tmp_path / "pins.json")
    ask = ("nearby", "--at", AT, "--places", str(store), "--pin", "home", "--pins", pins, "--json")
    reports = [json.loads(run(*ask, "--epsilon", "ln(4)/200 m").stdout)["report"]]
    reports += [json.loads(run(*ask).stdout)["report"] for _ in range(3)]
    assert all(one == reports[0] for one in reports)
    with pytest.raises(InvalidInput, match="pinned already"):
        run(*ask, "--epsilon", "ln(4)/200 m")


def test_each_call_is_charged(store, tmp_path):
    book = tmp_path / "book.db"
    wh.open_ledger(book, cap="0.01/m")
    ask = ("nearby", "--at", AT, "--places", str(store), "--epsilon", "0.006/m")
    run(*ask, "--ledger", str(book), "--subject", "ann")
    with pytest.raises(wh.WhereishError, match="too little"):
        run(*ask, "--ledger", str(book), "--subject", "ann")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1/m"], "exactly one of --places"),
        (["--epsilon", "1/m", "--ogc", "http://127.0.0.1:9"], "--collection"),
        (["--places", "STORE"], "how much noise"),
        (["--places", "STORE", "--pin", "home"], "--pins"),
        (["--places", "STORE", "--epsilon", "1/m", "-k", "3"], "density"),
    ],
)
def test_wrong_questions(store, arguments, words):
    given = [str(store) if word == "STORE" else word for word in arguments]
    with pytest.raises(InvalidInput, match=words) as told:
        run("nearby", "--at", AT, *given)
    assert "48.85" not in str(told.value)


def test_options_in_another_unit_are_refused(store):
    import click

    for option, value in (("--radius", "300"), ("--confidence", "95")):
        with pytest.raises(click.BadParameter):
            run("nearby", "--at", AT, "--places", str(store), "--epsilon", "1/m", option, value)
    with pytest.raises(InvalidInput, match="must end in"):
        run("places", str(store), str(store.with_suffix(".sqlite")))
