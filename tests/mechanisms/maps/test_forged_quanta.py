"""Files that state a quantum of their own: what it may be, and what its masses are."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps import entries
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.eikonal import settling
from whereish.solvers.eikonal.certify import metric_in_use
from whereish.solvers.geodesic.graph_metric import HORIZON
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.masses import decay_table

WORD = 1 << 64


def two_cells() -> EikonalMechanism:
    return EikonalMechanism.build(PrivacyMap([[1e-3, 1e-3]], cell="100 m"), frame=0)


@pytest.mark.parametrize("share", [0.0, -1.0, 2.0**-21, 1.001])
def test_a_quantum_is_no_more_than_that_of_the_prices(forge_file, share):
    mechanism = two_cells()
    quantum = mechanism.built.law.metric.quantum
    with pytest.raises(InvalidInput, match="quantum"):
        wh.load(forge_file(mechanism, quantum=share * quantum))


def test_masses_beyond_the_horizon_of_a_small_quantum_do_not_wrap(forge_file):
    """Nearly all of a secret's mass is beyond its horizon, and was lost where it wrapped around.

    Then a place would be told as one of the 64 that are searched for together, and the certificate
    would not notice: sums are the same everywhere, and edges cost next to nothing.
    """
    cells = 16 * LANES
    line = PrivacyMap(np.full((1, cells), 1e-3), cell="100 m")
    mechanism = EikonalMechanism.build(line, places="cells", frame=0)
    unlowered = metric_in_use(mechanism.built.promised)
    quantum = unlowered.quantum * entries._LEAST_QUANTUM
    first, last = (int(t) for t in decay_table(quantum)[[0, -1]])
    wrapped = (
        (k, k * (first + (LANES - 1) * last) + (cells - LANES) * k * last % WORD)
        for k in range(2**13, 2**14)
    )
    k, total = next((k, total) for k, total in wrapped if total < WORD // 2)
    assert k * (first + (cells - 1) * last) > WORD
    weights = np.full_like(unlowered.weights, LIMIT)
    arrays = {
        "lowered_by": unlowered.weights.astype(np.int32) - weights,
        "weights": np.full(cells, k, np.uint32),
        "sums": np.full(cells, total, np.uint64),
    }
    claims = {
        "edges_sha256": entries._hash(weights),
        "quantum": quantum,
        "factor": 1.0,
        "sweeps": 99,
    }
    with pytest.raises(NotPrivate, match="less than 2\\^63"):
        wh.load(forge_file(mechanism, arrays, **claims))


def test_the_quantum_of_a_file_is_what_its_masses_are_made_of(forge_file):
    mechanism = two_cells()
    with pytest.raises(NotPrivate):
        wh.load(forge_file(mechanism, quantum=0.9 * mechanism.built.law.metric.quantum))


def test_a_law_at_a_smaller_quantum_is_saved_and_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(settling, "_MANY", 64)
    i, j = np.mgrid[:9, :10]
    levels = np.where((i // 4 + j // 5) % 2, 5e-3, 2e-3)
    mechanism = EikonalMechanism.build(PrivacyMap(levels, cell="100 m"))
    assert mechanism.built.law.metric.quantum < HORIZON / LIMIT
    mechanism.save(tmp_path / "many.npz")
    again = wh.load(tmp_path / "many.npz")
    assert again.built.law.metric.quantum == mechanism.built.law.metric.quantum
    assert again.guarantee == mechanism.guarantee
