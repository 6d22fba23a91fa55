"""Files under a privacy map that were forged with care: every hash in them is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.cli.audit import command
from whereish.mechanisms.maps import entries as map_file
from whereish.mechanisms.maps import table_file
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.maps.query import EikonalQuery
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import stencil_factor
from whereish.solvers.eikonal.bilinear.bound import square_factors
from whereish.solvers.eikonal.bilinear.places import prices_on_places
from whereish.solvers.eikonal.cells import prices_on_cells
from whereish.solvers.eikonal.certify import metric_in_use
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import decay_table
from whereish.solvers.splines.corners import corner_prices

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
def forge(forge_file) -> Forge:
    return forge_file


def load(path: Path) -> EikonalMechanism | EikonalQuery:
    mechanism = wh.load(path)
    assert isinstance(mechanism, EikonalMechanism | EikonalQuery)
    return mechanism


def hash_of(weights: np.ndarray) -> str:
    digest = hashlib.sha256(f"{weights.dtype} {weights.shape}".encode())
    digest.update(weights.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_the_honest_file_is_read(kind, forge):
    mechanism = built(kind, two_cells())
    read = load(forge(mechanism))
    assert read.factor == mechanism.factor
    assert read.guarantee.to_json() == mechanism.guarantee.to_json()


@pytest.mark.parametrize("kind", ["bilinear", "continuous"])
def test_a_file_whose_bound_is_weaker_than_that_of_today_is_read(kind, forge):
    mechanism = built(kind, two_cells())
    assert isinstance(mechanism, EikonalMechanism)
    weaker = replace(
        mechanism, built=replace(mechanism.built, gradient_factor=(1 + mechanism.factor) / 2)
    )
    said = {"gradient_factor": weaker.factor, "guarantee": weaker.guarantee.to_json()}
    read = load(forge(mechanism, **said))
    assert mechanism.factor < weaker.factor < 1.0
    assert read.factor == mechanism.factor  # of its numbers, which bear out more
    assert read.guarantee.to_json() == mechanism.guarantee.to_json()
    for claim in (1.01, 0.99 * mechanism.factor):
        with pytest.raises(NotPrivate, match="bear out"):
            load(forge(mechanism, **{**said, "gradient_factor": claim}))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
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
        {
            "weights": np.full(law.metric.cells, weight, np.uint64),
            "sums": np.full(law.metric.cells, total, np.uint64),
        },
    )
    with pytest.raises(NotPrivate, match="weights must be below"):
        load(path)
    assert CliRunner().invoke(command, [str(path)]).exit_code != 0


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_sums_that_wrap_around_are_refused(kind, forge):
    """Every mass is below 2^63, but not their sum."""
    mechanism = built(kind, PrivacyMap([[1e-3] * 6], cell="10 m"))
    law = mechanism.law if isinstance(mechanism, EikonalQuery) else mechanism.built.law
    table = decay_table(law.metric.quantum).astype(object)
    cells = law.metric.cells  # their corners are one more
    totals = (2**21 - 1) * table[law.metric.distances(np.arange(cells))].sum(axis=1)
    assert totals.max() > WORD
    arrays = {
        "weights": np.full(cells, 2**21 - 1, np.uint64),
        "sums": np.array([int(total) % WORD for total in totals], np.uint64),
    }
    with pytest.raises(NotPrivate, match="less than 2\\^63"):
        load(forge(mechanism, arrays))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
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
    mechanism = built("bilinear", PrivacyMap(np.full((3, 4), 1e-3), cell="500 m"))
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
        ("used", np.array([[1e-3, np.inf]], np.float32)),
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
        load(forge(built("bilinear", two_cells()), {name: array}))


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
    other = EikonalMechanism.build(privacy_map, places="cells", divide_stencil=True)
    assert other.divided == stencil_factor(16, privacy_map.sides)
    assert load(forge(other)).divided == other.divided
    with pytest.raises(NotPrivate, match="guarantee in this file"):
        load(forge(mechanism, guarantee=other.guarantee.to_json()))
    with pytest.raises(NotPrivate, match="guarantee in this file"):
        load(forge(mechanism, guarantee={"statement": "nothing is ever told"}))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_the_audit_certifies_once_and_prints_what_it_found(kind, forge, monkeypatch):
    mechanism = built(kind, two_cells())
    path = forge(mechanism, worst_cells=[1, 1])
    looked = []
    for owner, name in ((GraphMetric, "exact_sums"), (table_file, "table_sums")):
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


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("neighbours", 12),
        ("neighbours", "16"),
        ("worst_cells", [1]),
        ("worst_cells", [0, 3]),
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
        load(forge(built("bilinear", two_cells()), **{name: value}))


def test_claims_better_than_the_numbers_are_refused(forge):
    for kind, name in (
        ("cells", "factor"),
        ("bilinear", "gradient_factor"),
        ("continuous", "gradient_factor"),
        ("query", "factor"),
    ):
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


# -- every check of the readers is seen: each of these is the only one that refuses its file ----


@pytest.mark.parametrize(("kind", "other"), [("cells", "query"), ("query", "cells")])
def test_a_file_of_another_kind_is_named(kind, other, forge):
    path = forge(built(kind, two_cells()))
    with pytest.raises(InvalidInput, match="holds a mechanism of kind"):
        type(built(other, two_cells())).load(path)


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous"])
def test_sums_of_more_sweeps_than_the_file_says_are_refused(kind, forge):
    """Sums found with fewer sweeps may lack masses that the report draws."""
    mechanism = built(kind, PrivacyMap(np.full((3, 4), 1e-3), cell="500 m"))
    assert isinstance(mechanism, EikonalMechanism)
    sweeps = mechanism.built.law.sweeps
    assert sweeps > 0
    assert load(forge(mechanism, sweeps=sweeps)).factor == mechanism.factor
    with pytest.raises(NotPrivate, match="sums of this mechanism"):
        load(forge(mechanism, sweeps=sweeps - 1))
    # A padded draw makes as many: with 10^18 it would never end.
    endless = load(forge(mechanism, sweeps=10**18))
    assert isinstance(endless, EikonalMechanism)
    assert endless.built.law.sweeps == sweeps


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_sums_that_are_not_those_of_the_weights_are_refused(kind, forge):
    mechanism = built(kind, two_cells())
    law = mechanism.law if isinstance(mechanism, EikonalQuery) else mechanism.built.law
    with pytest.raises(NotPrivate, match="sums of this mechanism"):
        load(forge(mechanism, {"sums": law.sums + np.arange(law.metric.cells, dtype=np.uint64)}))


def looser(kind: str, by: float) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A tight mechanism, and arrays and claims that put the law of a looser map in its file."""
    levels = np.array([[1e-3, 1.2e-3, 1e-3]])
    tight, loose = (built(kind, PrivacyMap(levels * by, cell="500 m")) for by in (1.0, by))
    used = np.float32(levels * by).astype(float)
    prices = prices_on_places if kind == "bilinear" else prices_on_cells
    given = used if kind == "bilinear" else levels
    laws = [m.law if isinstance(m, EikonalQuery) else m.built.law for m in (tight, loose)]
    metric = laws[1].metric
    promised = prices(given, tight.map.sides, tight.neighbours)
    if kind == "continuous":
        promised = corner_prices(levels, tight.map.sides, neighbours=tight.neighbours)
    unlowered = metric_in_use(promised).weights
    arrays = {
        "lowered_by": unlowered.astype(np.int32) - metric.weights,
        "weights": laws[1].weights,
        "sums": laws[1].sums,
    }
    if kind == "bilinear":
        arrays["used"] = used.astype(np.float32)
    claims = {"edges_sha256": hash_of(metric.weights), "factor": 1.0, "gradient_factor": 1.0}
    claims |= {"sweeps": 99, "core": getattr(laws[1], "core", 0)}
    if kind in ("cells", "query"):
        claims["gradient_factor"] = None
    return tight, arrays, claims


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_a_law_five_percent_too_loose_is_refused(kind, forge):
    tight, arrays, claims = looser(kind, 1.05)
    with pytest.raises(NotPrivate, match=r"needs 1\.0"):
        load(forge(tight, arrays, **claims))
    same, arrays, claims = looser(kind, 1.0)
    assert load(forge(same, arrays, **claims)).factor == same.factor


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_factors_are_those_of_the_numbers_and_not_of_a_modest_claim(kind, forge):
    mechanism = built(kind, PrivacyMap([[1e-3, 2e-3, 1e-3]], cell="300 m"))
    claims: dict[str, Any] = {"factor": 7.0}
    if kind in ("bilinear", "continuous"):
        claims["gradient_factor"] = 7.0
    read = load(forge(mechanism, **claims))
    assert read.factor == mechanism.factor
    if isinstance(read, EikonalMechanism) and isinstance(mechanism, EikonalMechanism):
        assert read.built.law.factor == mechanism.built.law.factor
        assert read.built.law.worst == mechanism.built.law.worst
        assert read.built.gradient_factor == mechanism.built.gradient_factor
    elif isinstance(read, EikonalQuery) and isinstance(mechanism, EikonalQuery):
        assert read.law.worst == mechanism.law.worst
    assert read.recertify() == mechanism.factor


def test_framed_maps_dropped_weights_and_single_cells_are_read(forge):
    hilly = PrivacyMap(np.geomspace(2e-4, 2e-2, 24)[None].repeat(12, 0), cell="500 m")
    for mechanism in (
        EikonalMechanism.build(hilly, places="cells"),
        EikonalMechanism.build(
            PrivacyMap(np.full((12, 12), 4e-3), "500 m"), places="cells", frame=2
        ),
        EikonalMechanism.build(PrivacyMap([[1e-3]], "500 m"), places="bilinear"),
        EikonalMechanism.build(PrivacyMap([[1e-3]], "500 m"), places="cells"),
    ):
        read = load(forge(mechanism))
        assert isinstance(read, EikonalMechanism)
        assert read.factor == mechanism.factor
        for name in ("factor", "worst", "rounds", "products", "dropped", "sweeps", "core"):
            assert getattr(read.built.law, name) == getattr(mechanism.built.law, name)


def test_a_law_beside_another_map_is_not_certified():
    mechanism = built("cells", PrivacyMap(np.full((3, 4), 1e-3), cell="500 m"))
    assert isinstance(mechanism, EikonalMechanism)
    turned = PrivacyMap(np.full((4, 3), 1e-3), cell="500 m")
    for wrong in (
        replace(mechanism, map=turned),
        replace(mechanism, built=replace(mechanism.built, used=turned.values)),
        replace(mechanism, map=turned, built=replace(mechanism.built, used=turned.values)),
    ):
        with pytest.raises(NotPrivate, match="not one on the cells"):
            wrong.recertify()


def test_a_query_whose_factor_is_above_one_is_not_certified():
    mechanism = built("query", two_cells())
    assert isinstance(mechanism, EikonalQuery)
    assert mechanism.recertify() == mechanism.law.factor
    half = replace(mechanism.law, promised=mechanism.law.promised / 2)
    with pytest.raises(NotPrivate, match="times the promised metric"):
        replace(mechanism, law=half).recertify()


def test_a_line_takes_no_frame(forge):
    line = EikonalMechanism.build(PrivacyMap([1e-3] * 4, cell="1 km"), places="cells")
    assert load(forge(line)).factor == line.factor
    with pytest.raises(InvalidInput, match="frame of 1 cells"):
        load(forge(line, frame=1))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worst_cells", [-1, 0]),
        ("worst_cells", [0.0, 1]),
        ("worst_cells", [0, True]),
        ("worst_cells", [0, 1, 0]),
        ("rounds", True),
        ("rounds", "3"),
        ("neighbours", 16.0),
        ("factor", float("inf")),
        ("factor", None),
        ("factor", True),
        pytest.param("factor", 10**400, id="factor-huge"),
    ],
)
def test_entries_that_are_nearly_right_are_refused_too(kind, name, value, forge):
    with pytest.raises(InvalidInput, match=name):
        load(forge(built(kind, two_cells()), **{name: value}))


@pytest.mark.parametrize("name", ["products", "sweeps", "core"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
def test_counts_of_a_law_are_integers(name, value, forge):
    with pytest.raises(InvalidInput, match=name):
        load(forge(built("cells", two_cells()), **{name: value}))


def test_levels_beyond_any_map_are_refused_before_they_are_used(forge):
    with pytest.raises(InvalidInput, match="at most 262,144 cells"):
        load(forge(built("cells", two_cells()), {"levels": np.full((513, 512), 1e-3)}))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_the_description_of_a_map_is_that_of_its_levels_and_plane(kind, forge):
    mechanism = built(kind, two_cells())
    said = mechanism.map.to_json()
    with pytest.raises(InvalidInput, match="not those of its description"):
        load(forge(mechanism, map={**said, "sha256": "0" * 64}))
    for change in ({"plane_scale": 1.5}, {"shape": [2, 1]}, {"more": 1}):
        with pytest.raises(InvalidInput, match="does not describe"):
            load(forge(mechanism, map={**said, **change}))


@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_edges_raised_beyond_what_an_integer_holds_are_refused(kind, forge):
    mechanism = built(kind, two_cells())
    law = mechanism.law if isinstance(mechanism, EikonalQuery) else mechanism.built.law
    for step in (-(1 << 16), 1 << 16):
        lowered_by = np.full(law.metric.weights.shape, step, np.int32)
        with pytest.raises(InvalidInput, match="lowered_by"):
            load(forge(mechanism, {"lowered_by": lowered_by}))
    other = np.zeros_like(law.metric.weights, dtype=np.int32)
    other[0, 0, 0] = 7
    with pytest.raises(NotPrivate, match="edge weights"):
        load(forge(mechanism, {"lowered_by": other}))


@pytest.mark.parametrize("kind", ["cells", "query"])
@pytest.mark.parametrize("name", ["weights", "sums"])
def test_counts_of_another_form_are_refused(kind, name, forge):
    mechanism = built(kind, two_cells())
    for array in (np.ones(3, np.uint64), np.ones(2, np.int64), np.ones(2), np.uint64(1)):
        with pytest.raises(InvalidInput, match=f"'{name}' in the file"):
            load(forge(mechanism, {name: np.asarray(array)}))


def test_answers_that_no_cell_has_are_refused(forge):
    mechanism = built("query", two_cells())
    for answers in (np.arange(3), np.arange(1), np.array([0j, 1j])):
        with pytest.raises(InvalidInput, match=r"name one of its answers|numbers or text"):
            load(forge(mechanism, {"answers": answers}))


@pytest.mark.parametrize(
    "levels",
    [np.full(2, 2.0**-10), np.full((1, 2), 2.0**-10, np.float32), np.full((1, 1, 2), 2.0**-10)],
)
@pytest.mark.parametrize("kind", ["cells", "bilinear", "continuous", "query"])
def test_levels_of_another_type_or_shape_are_named(kind, levels, forge):
    """Singles and doubles of a power of two are equal: nothing else would refuse the singles."""
    mechanism = built(kind, PrivacyMap([[2.0**-10, 2.0**-10]], cell="100 m"))
    with pytest.raises(InvalidInput, match="the levels in the file must be"):
        load(forge(mechanism, {"levels": levels}))


def test_more_answers_than_a_query_may_have_are_refused_first(forge):
    with pytest.raises(InvalidInput, match="at most 4096 answers"):
        load(forge(built("query", two_cells()), {"answers": np.arange(5000)}))


def test_a_query_under_a_divided_map_is_read(forge):
    privacy_map = PrivacyMap(np.full((2, 2), 1e-3), cell="1 km")
    mechanism = EikonalMechanism.build(privacy_map, query=np.arange(4), divide_stencil=True)
    assert mechanism.divided > 1
    read = load(forge(mechanism))
    assert (read.divided, read.factor) == (mechanism.divided, mechanism.factor)


@pytest.mark.parametrize(
    ("words", "refusal", "message"),
    [
        ({"places": "continuous", "gradient_factor": 0.5}, NotPrivate, "edge weights"),
        ({"sweeps": 1}, NotPrivate, "sums of this mechanism"),
        ({"factor": 0.1}, NotPrivate, "better certificate"),
    ],
)
def test_a_saved_map_whose_words_were_changed_is_refused(words, refusal, message, forge):
    """Each is refused for what it says: the hashes of these files are right."""
    levels = np.linspace(4e-4, 2e-3, 64).reshape(8, 8)
    mechanism = EikonalMechanism.build(PrivacyMap(levels, cell="500 m"), places="cells", frame=0)
    assert load(forge(mechanism)).factor == mechanism.factor
    # A law on continuous places says which levels it was made for.
    arrays = {"used": levels.astype(np.float32)} if "places" in words else {}
    with pytest.raises(refusal, match=message):
        load(forge(mechanism, arrays, **words))
