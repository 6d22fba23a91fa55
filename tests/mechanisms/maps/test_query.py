"""Queries about a place under a privacy map: certificate, law, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.audit import exact
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.maps.query import EikonalQuery
from whereish.mechanisms.saved import Artefact, load_artefact, save_artefact
from whereish.privacy.guarantee import Basis
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.randomness import SeededRandomness
from whereish.solvers.eikonal.certify import metric_in_use
from whereish.solvers.tables.law import table_factors, table_sums

from laws import chi_square

N = 16


def city_map() -> PrivacyMap:
    i, j = np.mgrid[:N, :N] / N
    return PrivacyMap(4e-4 + 1.2e-3 * np.exp(-((i - 0.5) ** 2 + (j - 0.4) ** 2) * 12), "1500 m")


def step_map() -> PrivacyMap:
    return PrivacyMap(np.where(np.arange(N) < N // 2, 2e-4, 2e-3)[None].repeat(N, 0), "1500 m")


def wealth_map() -> PrivacyMap:
    return PrivacyMap(0.5 + 2.0 * np.linspace(0, 1, 60), cell=(0.2, 0.2))


def districts() -> np.ndarray:
    """Sixteen districts of 4 x 4 cells, by name."""
    i, j = np.mgrid[:N, :N] // 4
    return np.char.add("district ", (4 * i + j).astype(str))


def scattered() -> np.ndarray:
    """Answers whose sets are in many pieces, of very different sizes."""
    return np.minimum(np.random.default_rng(1).geometric(0.4, (N, N)), 6)


CASES = {
    "districts": (city_map, districts()),
    "districts across a step": (step_map, districts()),
    "scattered": (step_map, scattered()),
    "wealth brackets": (wealth_map, lambda x: np.floor(2 * x[:, 0]) / 2),
}


@pytest.fixture(scope="module", params=CASES)
def mechanism(request) -> EikonalQuery:
    make, query = CASES[request.param]
    return EikonalMechanism.build(make(), query=query)


def test_the_exact_audit_confirms_the_certificate_and_refutes_less(mechanism):
    assert mechanism.guarantee.basis is Basis.CERTIFIED
    cells = np.arange(mechanism.map.values.size)
    distances = MapGeodesic(mechanism.map).between_cells(cells[:, None], cells[None])
    distances = np.minimum(distances, distances.T)
    assert exact(mechanism, distances).holds
    assert exact(mechanism, 0.99 * distances).refuted
    assert 0.99 < mechanism.factor <= 1.0
    assert float(np.nanmax(table_factors(mechanism.law))) == mechanism.factor


def test_the_integers_themselves_keep_an_edge(mechanism):
    """Masses cross-multiplied as Python integers, for the edges along one row."""
    law, cols = mechanism.law, mechanism.map.shape[1]
    masses = law.masses(np.arange(cols)).astype(object)
    assert masses.sum(axis=1).tolist() == law.sums[:cols].tolist()
    for u in range(cols - 1):
        price = law.promised[0, u, 0]
        most = int(math.exp(price) * 2**40)
        for p, p_next in zip(masses[u], masses[u + 1], strict=True):
            a, b = p * int(law.sums[u + 1]), p_next * int(law.sums[u])
            assert a * 2**40 <= b * (most + 1)
            assert b * 2**40 <= a * (most + 1)


def test_distances_to_the_sets_are_shortest_paths(mechanism):
    law, count = mechanism.law, len(mechanism.answers)
    pairs = law.metric.distances(np.arange(mechanism.answer_of.size))
    for y in range(count):
        inside = np.flatnonzero(mechanism.answer_of == y)
        np.testing.assert_array_equal(law.distances[y], pairs[inside].min(axis=0))


@pytest.mark.parametrize("name", ["districts", "wealth brackets"])
def test_reports_follow_the_distribution(name, rng):
    make, query = CASES[name]
    mechanism = EikonalMechanism.build(make().scaled(0.3), query=query)
    centres = mechanism.map.raster.centres()[:, : 1 if mechanism.map.one_dimensional else 2]
    place, elsewhere = centres[len(centres) // 3], centres[len(centres) // 2]
    drawn = mechanism.report(np.tile(place, (40_000, 1)), rng=rng)
    index = np.searchsorted(mechanism.answers, drawn)
    np.testing.assert_array_equal(mechanism.answers[index], drawn)
    counts = np.bincount(index, minlength=len(mechanism.answers) + 1)
    assert chi_square(counts, mechanism.distribution(place)) > 1e-3
    assert chi_square(counts, mechanism.distribution(elsewhere)) < 1e-6


def test_two_answers_have_the_closed_form():
    """Two halves of a line: ln P(0)/P(1) is the distance to the border, and nothing is lowered."""
    line = PrivacyMap(np.ones(40), cell=(0.1, 0.1))
    mechanism = EikonalMechanism.build(line, query=np.repeat([0, 1], 20))
    log_odds = np.log(mechanism.matrix[:, 0] / mechanism.matrix[:, 1])
    step = 0.1 * (1 - 5e-4)
    away = np.concatenate([np.arange(20, 0, -1), -np.arange(1, 21)]) * step
    np.testing.assert_allclose(log_odds, away, atol=20 * 22 / 65535)
    assert mechanism.lowered.min() > 0.99
    assert mechanism.law.rounds == 1


def test_the_identity_is_the_eikonal_mechanism():
    privacy_map = PrivacyMap(np.full((8, 8), 1e-3), "1500 m")
    plain = EikonalMechanism.build(privacy_map, places="cells", frame=0)
    asked = EikonalMechanism.build(privacy_map, query=np.arange(64).reshape(8, 8))
    for place in privacy_map.raster.centres()[::7]:
        np.testing.assert_allclose(
            asked.distribution(place), plain.distribution(place).ravel(), atol=2e-3
        )


def test_it_is_right_more_often_than_the_exponential_mechanism_at_half(mechanism):
    asked = metric_in_use(mechanism.law.promised)
    distances = asked.set_distances(mechanism.answer_of, len(mechanism.answers))
    half = np.exp(-asked.quantum * distances.T / 2.0)
    half /= half.sum(axis=1, keepdims=True)
    baseline = half[np.arange(len(half)), mechanism.answer_of].mean()
    assert mechanism.accuracy() > 1.2 * baseline


def test_one_answer_tells_nothing(rng):
    mechanism = EikonalMechanism.build(wealth_map(), query=np.full(60, 7))
    assert mechanism.report([[3.0], [9.0]], rng=rng).tolist() == [7, 7]
    assert mechanism.factor == 0.0


def test_a_divided_stencil_keeps_less():
    plain = EikonalMechanism.build(city_map(), query=districts())
    divided = EikonalMechanism.build(city_map(), query=districts(), divide_stencil=True)
    assert divided.divided == pytest.approx(1.0275, abs=1e-4)
    assert divided.accuracy() < plain.accuracy()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": np.zeros(3)}, "one answer per cell"),
        ({"query": np.full((N, N), np.nan)}, "finite"),
        ({"query": np.full((N, N), None)}, "numbers or text"),
        ({"query": districts(), "frame": 2}, "without a frame"),
        ({"query": districts(), "places": "continuous"}, "about cells"),
        ({"query": districts(), "neighbours": 12}, "neighbours"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InvalidInput, match=words):
        EikonalMechanism.build(city_map(), **options)


@pytest.mark.parametrize("name", CASES)
def test_saved_and_loaded(name, tmp_path):
    make, query = CASES[name]
    mechanism = EikonalMechanism.build(make(), query=query, divide_stencil=True)
    mechanism.save(tmp_path / "m.npz")
    loaded = EikonalQuery.load(tmp_path / "m.npz")
    assert loaded.recertify() == mechanism.factor
    assert loaded.guarantee == mechanism.guarantee
    assert loaded.answers.dtype == mechanism.answers.dtype
    np.testing.assert_array_equal(loaded.matrix, mechanism.matrix)
    places = mechanism.map.raster.centres()[::5, : 1 if mechanism.map.one_dimensional else 2]
    np.testing.assert_array_equal(
        loaded.report(places, rng=SeededRandomness(3)),
        mechanism.report(places, rng=SeededRandomness(3)),
    )


@pytest.mark.parametrize("name", ["weights", "sums", "levels", "answers", "lowered_by"])
def test_altered_numbers_are_refused(name, tmp_path):
    EikonalMechanism.build(city_map(), query=scattered()).save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = dict(file)
    arrays[name] = arrays[name] + arrays[name].dtype.type(1)
    np.savez(tmp_path / "altered.npz", **arrays)
    with pytest.raises(InvalidInput, match="certificate"):
        EikonalQuery.load(tmp_path / "altered.npz")


def forged(saved: Artefact, path, arrays=None, **claims) -> EikonalQuery:
    """A file with other numbers or claims and the right hash for them, read back."""
    said = {key: saved.certificate[key] for key in saved.certificate if key != "sha256"} | claims
    save_artefact(path, saved.kind, {**saved.arrays, **(arrays or {})}, said)
    return EikonalQuery.load(path)


def test_forged_files_are_refused_though_their_hash_is_right(tmp_path):
    path = tmp_path / "m.npz"
    EikonalMechanism.build(step_map(), query=scattered()).save(path)
    saved = load_artefact(path)
    assert forged(saved, tmp_path / "same.npz").factor <= 1.0
    weights = saved.arrays["weights"].copy()
    weights[0] *= np.uint64(2)
    with pytest.raises(NotPrivate, match="sums"):
        forged(saved, path, {"weights": weights})
    with pytest.raises(NotPrivate, match="edge weights"):
        forged(saved, path, {"lowered_by": saved.arrays["lowered_by"] + 1})
    with pytest.raises(NotPrivate, match="better certificate"):
        forged(saved, path, factor=0.5)
    with pytest.raises(InvalidInput, match="one of its answers"):
        forged(saved, path, {"answer_of": np.zeros_like(saved.arrays["answer_of"])})
    with pytest.raises(InvalidInput, match="kind 'eikonal query'"):
        EikonalMechanism.load(tmp_path / "same.npz")


def test_weights_that_break_the_promise_are_found_out_on_loading(tmp_path):
    """Other weights with their own right sums: only the certificate can tell."""
    path = tmp_path / "m.npz"
    EikonalMechanism.build(step_map(), query=districts()).save(path)
    saved = load_artefact(path)
    mechanism = EikonalQuery.load(path)
    weights = np.ones_like(mechanism.law.weights)
    weights[0] = 2**18
    sums = table_sums(mechanism.law.metric, mechanism.law.distances, weights)
    with pytest.raises(NotPrivate, match="times the promised metric"):
        forged(saved, path, {"weights": weights, "sums": sums})


def test_too_many_answers():
    big = PrivacyMap(np.full((70, 70), 1e-3), "1500 m")
    with pytest.raises(InvalidInput, match="at most 4096 answers"):
        EikonalMechanism.build(big, query=np.arange(4900).reshape(70, 70))


def test_bad_priors():
    mechanism = EikonalMechanism.build(wealth_map(), query=lambda x: x > 6.0)
    with pytest.raises(InvalidInput, match="one entry per cell"):
        mechanism.accuracy(np.ones(3))
    with pytest.raises(InvalidInput, match="entry > 0"):
        mechanism.accuracy(np.zeros(60))
