"""Families of hiding functions and neighbourhoods: the worst member, and which families suffice."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import whereish as wh
from instances import distances, peaked
from whereish.audit.characterisations import hiding_attack, informed_attack
from whereish.audit.families import (
    balls,
    entry_neighbourhoods,
    entry_replacements,
    entry_swaps,
    hiding_family,
    informed_family,
    maximally_distant_sets,
    pairs,
    swaps,
    tight_functions,
    tight_sets,
)
from whereish.errors import InvalidInput


def random_channel(n: int, m: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(m), size=n)


@pytest.mark.parametrize("seed", range(6))
def test_all_functions_and_all_sets_by_brute_force(seed):
    """Of three secrets: 27 functions, 7 sets, and a grid of priors; the swaps are as strong."""
    k = random_channel(3, 4, seed)
    d = distances(np.random.default_rng(seed + 99).uniform(size=(3, 2)))
    functions = [np.array(phi) for phi in itertools.product(range(3), repeat=3)]
    sets = [np.array(s) for size in (1, 2, 3) for s in itertools.combinations(range(3), size)]
    factor = wh.audit.exact(k, d).factor
    assert hiding_family(k, d, functions).factor == pytest.approx(factor)
    assert hiding_family(k, d, swaps(3)).factor == pytest.approx(factor)
    assert informed_family(k, d, sets).factor == pytest.approx(factor)
    assert informed_family(k, d, pairs(3)).factor == pytest.approx(factor)
    weights = [1e-12, 1e-3, 0.3, 1.0]
    for phi in functions:
        found = hiding_family(k, d, [phi])
        learned = []
        for p in itertools.product(weights, repeat=3):
            learned.append(hiding_attack(k, d, np.array(p) / sum(p), phi).learned)
        assert max(learned) <= found.learned + 1e-9
        assert max(learned) >= found.learned - 1e-6  # attained by a nearly certain prior
        assert found.worst.learned == pytest.approx(found.learned, abs=1e-9)
    for inside in sets:
        found = informed_family(k, d, [inside])
        learned = [
            informed_attack(k, d, np.array(p) / sum(p), inside).learned
            for p in itertools.product(weights, repeat=3)
        ]
        assert max(learned) <= found.learned + 1e-9
        assert max(learned) >= found.learned - 1e-6


def geometric_on(
    records: wh.Records, metric: wh.Metric, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """The exponential channel on all databases, which keeps eps * metric; and that metric."""
    entries = records.values.all_indices()
    data = np.array(list(itertools.product(entries, repeat=records.size)))
    d = epsilon * metric.matrix(records.values.at(data))
    k = np.exp(-d / 2)
    return k / k.sum(axis=1, keepdims=True), d


@pytest.mark.parametrize("name", ["hamming", "manhattan", "normalised_manhattan"])
def test_the_canonical_families_of_records_characterise_their_metrics(name):
    records = wh.Records(wh.Values(1, 2), 2)
    k, d = geometric_on(records, getattr(records, name), 0.8)
    assert tight_functions(d, entry_swaps(records))
    assert tight_sets(d, pairs(9))
    if name == "hamming":  # all of a row are equally far
        assert tight_sets(d, entry_neighbourhoods(records))
    factor = wh.audit.exact(k, d).factor
    assert hiding_family(k, d, entry_swaps(records)).factor == pytest.approx(factor)
    for tighter in (0.5, 0.999):
        assert hiding_family(k, tighter * factor * d, entry_swaps(records)).factor > 1
        assert informed_family(k, tighter * factor * d, pairs(9)).factor > 1


def test_functions_that_only_replace_let_twice_as_much_pass():
    records = wh.Records(wh.Values(1, 1), 1)
    d = 0.5 * (1 - np.eye(2))
    e = math.e / (1 + math.e)  # keeps 1, twice d
    k = np.array([[e, 1 - e], [1 - e, e]])
    assert hiding_family(k, d, entry_replacements(records)).factor == pytest.approx(1)
    assert hiding_family(k, d, entry_swaps(records)).factor == pytest.approx(2)
    assert not tight_functions(d, entry_replacements(records))
    missing = tight_functions(d, [[0, 1]])
    assert not missing
    assert missing.witness == (0.0, 1.0)


def test_replacements_and_neighbourhoods_are_what_they_are_called():
    records = wh.Records(wh.Values(1, 1, null=True), 2)
    data = list(itertools.product(records.values.all_indices().tolist(), repeat=2))
    replaced = [[data[j] for j in phi] for phi in entry_replacements(records)]
    for number, (i, v) in enumerate(itertools.product(range(2), records.values.all_indices())):
        for before, after in zip(data, replaced[number], strict=True):
            assert after == tuple(v if at == i else e for at, e in enumerate(before))
    for inside in entry_neighbourhoods(records):
        chosen = np.array([data[j] for j in inside])
        assert (np.ptp(chosen, axis=0) > 0).sum() == 1
        assert len(inside) == 3


def test_balls_and_maximally_distant_sets():
    places, _ = peaked(3, 3)
    d = distances(places) / 1000
    channel = wh.exponential_channel(places, "1/km")
    for radius in (0.0, 0.7, 1.5, 9.0):
        members = list(balls(d, radius))
        assert all((d[x, inside] <= radius).all() for x, inside in enumerate(members))
        found = informed_family(channel, d, members)
        assert found.factor <= 1 + 1e-9
        assert found.count == 9
    hamming = wh.Records(wh.Values(1, 2), 2)
    _, apart = geometric_on(hamming, hamming.hamming, 1.0)
    found = {tuple(s) for s in maximally_distant_sets(apart)}
    assert {tuple(sorted(s)) for s in entry_neighbourhoods(hamming)} <= found
    for s in found:  # all alike, and no other can be added
        inner = apart[np.ix_(s, s)][~np.eye(len(s), dtype=bool)]
        assert np.ptp(inner) == 0
        others = set(range(9)) - set(s)
        assert not any(np.allclose(apart[o, list(s)], inner[0]) for o in others)
    assert tight_sets(apart, maximally_distant_sets(apart))


def test_wrong_families_are_refused():
    k, d = random_channel(3, 3, 1), 1 - np.eye(3)
    for family in ([], [[0, 1]], [[0, 1, 3]]):
        with pytest.raises(InvalidInput):
            hiding_family(k, d, family)
    with pytest.raises(InvalidInput):
        informed_family(k, d, [[]])
