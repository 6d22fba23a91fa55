"""Files under a privacy map that were forged with care: every hash in them is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.cli.audit import command
from whereish.mechanisms import eikonal_file, eikonal_query_file, map_file
from whereish.mechanisms.artefact import load_artefact, save_artefact
from whereish.mechanisms.eikonal import EikonalMechanism
from whereish.mechanisms.eikonal_query import EikonalQuery
from whereish.privacy.privacy_map import PrivacyMap
from whereish.solvers.bilinear_bound import square_factors
from whereish.solvers.geodesics import GraphMetric
from whereish.solvers.integer_law import decay_table
from whereish.solvers.lowering import metric_in_use
from whereish.solvers.places_law import prices_on_places
from whereish.solvers.stencil import stencil_factor

WORD = 1 << 64
Forge = Callable[..., Path]


def two_cells() -> PrivacyMap:
    return PrivacyMap([[1e-3, 1e-3]], cell="100 m")


def built(kind: str, privacy_map: PrivacyMap) -> EikonalMechanism | EikonalQuery:
    if kind == "query":
        return EikonalMechanism.build(privacy_map, query=np.arange(privacy_map.values.size))
    places: Any = kind
    return EikonalMechanism.build(privacy_map, places=places, frame=0)


@pytest.fixture
def forge(tmp_path) -> Forge:
    """Saves a mechanism, changes some of its entries and hashes all of it again."""

    def change(mechanism: EikonalMechanism | EikonalQuery, arrays: Any = None, **claims: Any):
        path = tmp_path / "forged.npz"
        mechanism.save(path)
        saved = load_artefact(path)
        said = {
            key: value
            for key, value in saved.certificate.items()
            if key not in ("sha256", "format", "kind", "whereish")
        }
        save_artefact(path, saved.kind, {**saved.arrays, **(arrays or {})}, {**said, **claims})
        return path

    return change


def load(path: Path) -> EikonalMechanism | EikonalQuery:
    saved = load_artefact(path)
    reader = eikonal_file if saved.kind == map_file.EIKONAL else eikonal_query_file
    return reader.from_artefact(saved)


def hash_of(weights: np.ndarray) -> str:
    digest = hashlib.sha256(f"{weights.dtype} {weights.shape}".encode())
    digest.update(weights.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
def test_the_honest_file_is_read(kind, forge):
    mechanism = built(kind, two_cells())
    read = load(forge(mechanism))
    assert read.factor == mechanism.factor
    assert read.guarantee.to_json() == mechanism.guarantee.to_json()


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
def test_weights_whose_masses_wrap_around_are_refused(kind, forge):
    """k·t[0] = 0 modulo 2^64: the report says that it is not the secret's own cell."""
    mechanism = built(kind, two_cells())
    law = mechanism.law if isinstance(mechanism, EikonalQuery) else mechanism.built.law
    masses = [
        int(t) for t in decay_table(law.metric.quantum)[[0, int(law.metric.weights[0, 0, 0])]]
    ]
    weight = next(
        k
        for k in range(2**22, 2**32, 2**22)
        if k * masses[0] % WORD == 0 and 0 < k * masses[1] % WORD < 2**62
    )
    total = sum(weight * mass % WORD for mass in masses)
    path = forge(
        mechanism,
        {"weights": np.full(2, weight, np.uint64), "sums": np.full(2, total, np.uint64)},
    )
    with pytest.raises(NotPrivate, match="weights must be below"):
        load(path)
    assert CliRunner().invoke(command, [str(path)]).exit_code != 0


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
def test_sums_that_wrap_around_are_refused(kind, forge):
    """Every mass is below 2^63, but not their sum."""
    mechanism = built(kind, PrivacyMap([[1e-3] * 6], cell="10 m"))
    law = mechanism.law if isinstance(mechanism, EikonalQuery) else mechanism.built.law
    table = decay_table(law.metric.quantum).astype(object)
    totals = (2**21 - 1) * table[law.metric.distances(np.arange(6))].sum(axis=1)
    assert totals.max() > WORD
    arrays = {
        "weights": np.full(6, 2**21 - 1, np.uint64),
        "sums": np.array([int(total) % WORD for total in totals], np.uint64),
    }
    with pytest.raises(NotPrivate, match="less than 2\\^63"):
        load(forge(mechanism, arrays))


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
@pytest.mark.parametrize(
    "weights",
    [
        np.zeros(2, np.uint64),
        np.ones(1, np.uint64),
        np.ones((2, 1), np.uint64),
        np.ones(2, np.int64),
        np.ones(2),
    ],
)
def test_weights_of_another_form_are_refused(kind, weights, forge):
    with pytest.raises((InvalidInput, NotPrivate), match="weights"):
        load(forge(built(kind, two_cells()), {"weights": weights}))


def test_a_law_on_another_grid_than_the_map_is_refused(forge):
    """Twelve cells are twelve cells, but 2 x 6 of them are not the neighbours of 3 x 4."""
    mechanism = built("continuous", PrivacyMap(np.full((3, 4), 1e-3), cell="500 m"))
    assert isinstance(mechanism, EikonalMechanism)
    used = np.full((2, 6), 1e-3, np.float32)
    promised = prices_on_places(used.astype(float), mechanism.map.sides, 32)
    unlowered = metric_in_use(promised)
    weights = np.full_like(unlowered.weights, 1)
    weights[:, 3:] = 20000
    metric = GraphMetric(weights, unlowered.quantum)
    sums, _ = metric.exact_sums(np.ones(12, np.uint64), decay_table(metric.quantum))
    arrays = {
        "used": used,
        "lowered_by": unlowered.weights.astype(np.int32) - weights,
        "weights": np.ones(12, np.uint32),
        "sums": sums,
    }
    claims = {"edges_sha256": hash_of(weights), "sweeps": 99, "core": 0, "gradient_factor": 1.0}
    with pytest.raises(InvalidInput, match="shape \\(3, 4\\)"):
        load(forge(mechanism, arrays, **claims))
    with pytest.raises(InvalidInput, match="same shape"):
        square_factors(np.ones((1, 5, 2, 2)), np.ones((2, 3, 2, 2)), (1.0, 1.0))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("used", np.full((1, 2), np.nan, np.float32)),
        ("used", np.zeros((1, 2), np.float32)),
        ("used", np.ones((1, 2))),
        ("lowered_by", np.zeros((2, 1, 16), np.int32)),
        ("lowered_by", np.full((1, 2, 16), 1 << 16, np.int32)),
        ("lowered_by", np.zeros((1, 2, 16))),
        ("levels", np.full(2, 1e-3)),
        ("levels", np.full((1, 2), 1e-3, np.complex128)),
        ("sums", np.ones(1, np.uint64)),
    ],
)
def test_arrays_of_another_form_are_refused(name, array, forge):
    with pytest.raises(InvalidInput, match=name):
        load(forge(built("continuous", two_cells()), {name: array}))


@pytest.mark.parametrize("kind", ["cells", "query"])
@pytest.mark.parametrize("divided", [float("nan"), 0.0, 0.1, -1.0, 1.01, float("inf"), "1", None])
def test_only_the_stencil_factor_may_divide(kind, divided, forge):
    mechanism = built(kind, PrivacyMap(np.full((2, 2), 1e-3), cell="1 km"))
    with pytest.raises(InvalidInput, match="divided_by"):
        load(forge(mechanism, divided_by=divided))


def test_a_looser_map_under_a_tight_name_is_refused(forge):
    """Ten times the levels, declared as the tight map divided by 0.1."""
    tight, loose = (
        built("cells", PrivacyMap(np.full((1, 3), level), cell="1 km")) for level in (1e-3, 1e-2)
    )
    assert isinstance(tight, EikonalMechanism)
    path = forge(
        loose,
        {"levels": tight.map.values},
        map=tight.map.to_json(),
        guarantee=tight.guarantee.to_json(),
        divided_by=0.1,
    )
    with pytest.raises(InvalidInput, match="divided_by"):
        load(path)


def test_an_edge_without_a_factor_counts_as_broken():
    assert map_file.kept_factor(np.array([0.5, 0.75])) == 0.75
    assert map_file.kept_factor(np.empty(0)) == 0.0
    with pytest.raises(NotPrivate, match="inf times"):
        map_file.kept_factor(np.array([0.5, np.nan]))


def test_the_guarantee_of_a_file_must_be_that_of_its_numbers(forge):
    privacy_map = PrivacyMap(np.full((2, 2), 1e-3), cell="1 km")
    mechanism = built("cells", privacy_map)
    other = EikonalMechanism.build(privacy_map, divide_stencil=True)
    assert other.divided == stencil_factor(16, privacy_map.sides)
    assert load(forge(other)).divided == other.divided
    with pytest.raises(NotPrivate, match="guarantee in this file"):
        load(forge(mechanism, guarantee=other.guarantee.to_json()))
    with pytest.raises(NotPrivate, match="guarantee in this file"):
        load(forge(mechanism, guarantee={"statement": "nothing is ever told"}))


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
def test_the_audit_certifies_once_and_prints_what_it_found(kind, forge, monkeypatch):
    mechanism = built(kind, two_cells())
    path = forge(mechanism, worst_cells=[1, 1])
    looked = []
    for owner, name in ((GraphMetric, "exact_sums"), (eikonal_query_file, "query_sums")):
        plain = getattr(owner, name)

        def counted(*args: Any, plain: Any = plain) -> Any:
            looked.append(1)
            return plain(*args)

        monkeypatch.setattr(owner, name, counted)
    result = CliRunner().invoke(command, [str(path), "--json"])
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert said["guarantee"] == json.loads(json.dumps(mechanism.guarantee.to_json()))
    assert said["factor"] == mechanism.factor
    assert said["worst"] == [0, 1]  # of the numbers, not of the file
    assert len(looked) == 1


@pytest.mark.parametrize("places", ["cell", "Continuous", None, 3, ["cells"]])
def test_places_are_cells_or_continuous(places, forge):
    with pytest.raises(InvalidInput, match="places must be"):
        load(forge(built("cells", two_cells()), places=places))


@pytest.mark.parametrize("kind", ["cells", "continuous", "query"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("neighbours", 12),
        ("neighbours", "16"),
        ("worst_cells", [1]),
        ("worst_cells", [0, 2]),
        ("worst_cells", 7),
        ("map", {}),
        ("map", None),
        ("map", {"region": 3}),
        ("factor", float("nan")),
        ("factor", "small"),
        ("rounds", -1),
        ("rounds", 1.5),
    ],
)
def test_a_certificate_of_another_form_is_refused_in_a_sentence(kind, name, value, forge):
    with pytest.raises(InvalidInput, match=name):
        load(forge(built(kind, two_cells()), **{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core", 70000),
        ("core", -5),
        ("frame", -1),
        ("frame", "x"),
        ("frame", 10**6),
        ("sweeps", None),
        ("gradient_factor", None),
        ("gradient_factor", float("nan")),
    ],
)
def test_a_law_of_another_form_is_refused_in_a_sentence(name, value, forge):
    with pytest.raises(InvalidInput, match=name):
        load(forge(built("continuous", two_cells()), **{name: value}))


def test_claims_better_than_the_numbers_are_refused(forge):
    for kind, name in (("cells", "factor"), ("continuous", "gradient_factor"), ("query", "factor")):
        with pytest.raises(NotPrivate, match="better certificate"):
            load(forge(built(kind, two_cells()), **{name: 0.5}))
    with pytest.raises(InvalidInput, match="must not claim a gradient"):
        load(forge(built("cells", two_cells()), gradient_factor=0.5))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("answers", np.zeros((1, 2))),
        ("answers", np.array(3)),
        ("answers", np.arange(5000)),
        ("answer_of", np.array([0.0, 1.0])),
        ("answer_of", np.array([0, 70], np.uint16)),
    ],
)
def test_answers_of_another_form_are_refused(name, array, forge):
    with pytest.raises(InvalidInput, match=r"answers|answer_of"):
        load(forge(built("query", two_cells()), {name: array}))
