"""What was recorded before the modules moved is still so: names, seeded draws, saved files."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import whereish as wh
from whereish.publish.rows.plan import Plan

from recorded import files, names, samples

DRAWS = json.loads(samples.RECORDED.read_text())
CALLS = json.loads(names.RECORDED.read_text())


SOLVED_BETTER = {"eikonal-cells": "map", "eikonal-continuous": "continuous"}
"""Maps that must be lowered, and were lowered further than they are now.  Their recorded draws are
of the law in the saved file, and of that one they still are."""


@pytest.mark.parametrize("name", sorted(set(DRAWS) - set(SOLVED_BETTER)))
def test_the_same_seed_draws_what_it_drew(name):
    np.testing.assert_array_equal(samples.drawn(name), DRAWS[name])


@pytest.mark.parametrize("name", sorted(SOLVED_BETTER))
def test_a_map_built_today_has_no_larger_error_than_the_recorded_one(name):
    then = wh.EikonalMechanism.load(files.FOLDER / f"{SOLVED_BETTER[name]}.npz")
    now = wh.EikonalMechanism.build(then.map, places=then.places)
    assert now.factor <= 1
    assert now.mse() <= then.mse()


def test_every_sampler_is_recorded():
    assert sorted(samples.samplers()) == sorted(DRAWS)


TAKEN_AWAY = {"EikonalQuery.space": "it reports labels, so it must not look like a mechanism"}

SPELT_OUT = {"plan": ["VAR_KEYWORD", "required"]}
"""`**plan` of every `sanitize`: each of its keywords is now a parameter of its own."""


def test_public_names_and_parameters_are_still_there():
    """A name may gain optional parameters; it loses none, and none becomes required."""
    today = names.described()
    for name, parameters in CALLS.items():
        if name in TAKEN_AWAY:
            continue
        assert name in today, name
        for parameter, (kind, need) in (parameters or {}).items():
            now = (today[name] or {}).get(parameter)
            if SPELT_OUT.get(parameter) == [kind, need] and name.endswith("sanitize"):
                assert set(Plan.__annotations__) <= set(today[name]), name
                continue
            assert now is not None, f"{name} has no parameter {parameter} any more"
            assert now[0] == kind or now[0] == "POSITIONAL_OR_KEYWORD", f"{name}: {parameter}"
            assert need == "required" or now[1] == "optional", f"{name} now needs {parameter}"
        new = set(today[name] or {}) - set(parameters or {})
        assert all(
            today[name][p][1] == "optional" or today[name][p][0].startswith("VAR_") for p in new
        ), f"{name} needs more: {sorted(new)}"


@pytest.mark.parametrize("name", ["optimal", "globe", "projected"])
def test_channels_saved_then_load(name):
    channel = wh.Channel.load(files.FOLDER / f"{name}.npz")
    assert channel.verify().upper <= 1
    assert len(channel.report(channel.secrets.points)) == len(channel.secrets)


@pytest.mark.parametrize("name", ["map", "continuous"])
def test_maps_saved_then_load(name):
    mechanism = wh.EikonalMechanism.load(files.FOLDER / f"{name}.npz")
    assert mechanism.recertify() <= 1
    drawn = mechanism.report(samples.in_map(), rng=wh.SeededRandomness(7))
    recorded = DRAWS[next(key for key, file in SOLVED_BETTER.items() if file == name)]
    np.testing.assert_array_equal(np.asarray(drawn).round(9), recorded)


def test_queries_saved_then_load():
    query = wh.EikonalQuery.load(files.FOLDER / "query.npz")
    drawn = query.report(samples.in_map(), rng=wh.SeededRandomness(7))
    np.testing.assert_array_equal(np.asarray(drawn, float), DRAWS["eikonal-query"])


def test_ledgers_written_then_go_on(tmp_path):
    shutil.copy(files.FOLDER / "ledger.sqlite", tmp_path / "ledger.sqlite")
    ledger = wh.open_ledger(tmp_path / "ledger.sqlite")
    assert ledger.statement("anna").spent_per_m == pytest.approx(4 * 0.01)
    assert ledger.state("second") == "pending"
    ledger.refund("second")
    assert ledger.statement("anna").spent_per_m == pytest.approx(3 * 0.01)
    assert ledger.statement("bert").spent_per_m == pytest.approx(0.01)
