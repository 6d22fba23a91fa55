"""Files of laws of landmarks, on cells and on places: read as they were, forged ones refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.cli.audit import command
from whereish.mechanisms.saved import load_artefact
from whereish.randomness import SeededRandomness
from whereish.solvers.tables.law import table_sums

N = 8


@pytest.fixture(scope="module", params=["cells", "continuous"])
def mechanism(request) -> wh.EikonalMechanism:
    i, j = (np.indices((N, N)) + 0.5) / N
    city = wh.PrivacyMap(np.where(j + 0.1 * i > 0.7, 3e-4, 3e-4 * 4**i), "1 km")
    built = wh.EikonalMechanism.build(city, places=request.param, prior=np.ones((N, N)))
    assert built.built.table is not None
    return built


@pytest.fixture
def forge(mechanism, forge_file) -> Callable[..., Path]:
    return partial(forge_file, mechanism)


def test_the_honest_file_is_the_same_mechanism(mechanism, forge):
    read = wh.load(forge())
    assert read.factor == mechanism.factor
    assert read.built.acceptance == mechanism.built.acceptance
    assert read.guarantee.to_json() == mechanism.guarantee.to_json()
    np.testing.assert_array_equal(read.lowered, mechanism.lowered)
    places = mechanism.map.raster.centres() + 123.0
    one, other = (
        each.report(places, rng=SeededRandomness(5)).coordinates for each in (mechanism, read)
    )
    np.testing.assert_array_equal(one, other)
    result = CliRunner().invoke(command, [str(forge())])
    assert result.exit_code == 0
    assert f"{mechanism.factor:.12g}" in result.stdout


def test_a_table_that_keeps_less_is_refused(mechanism, forge):
    table = mechanism.built.table
    steeper = table.distances.copy()
    steeper[0, 7] += 4_000
    with pytest.raises(NotPrivate, match="sums"):
        wh.load(forge({"table": steeper}))
    sums = table_sums(table.metric, steeper, table.weights)
    with pytest.raises(NotPrivate, match="times the promised metric"):
        wh.load(forge({"table": steeper, "table_sums": sums}))
    claim = "factor" if mechanism.places == "cells" else "gradient_factor"
    with pytest.raises(NotPrivate, match="better certificate"):
        wh.load(forge(**{claim: 0.9 * mechanism.factor}))


def test_the_horizon_is_not_believed(forge):
    """A larger quantum makes all distances larger: the same integers keep less."""
    said = load_artefact(forge()).certificate["table_horizon"]
    with pytest.raises(NotPrivate):
        wh.load(forge(table_horizon=1.5 * said))
    for horizon in (0, -1.0, 23.0, "8", None):
        with pytest.raises(InvalidInput, match="table_horizon"):
            wh.load(forge(table_horizon=horizon))


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("table", np.uint16, (2, 3)),
        ("table", np.uint16, (0, "nodes")),
        ("table", np.uint16, ("nodes",)),
        ("table", np.int64, (2, "nodes")),
        ("table_reports", np.uint32, (3,)),
        ("table_weights", np.float64, (3,)),
        ("table_sums", np.uint64, (3,)),
    ],
)
def test_entries_of_another_form_are_refused(mechanism, forge, name, dtype, shape):
    nodes = mechanism.built.used.size
    array = np.zeros([nodes if count == "nodes" else count for count in shape], dtype)
    with pytest.raises(InvalidInput, match="in the file must"):
        wh.load(forge({name: array}))
