"""Draws between cells: exactly the geometric mean, and exact where doubles cannot tell."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import whereish as wh
from whereish.mechanisms.channels import between
from whereish.sampling import spline, spline_coin, spline_table
from whereish.sampling.spline import SplineSampler
from whereish.sampling.spline_coin import (
    KEPT,
    OPEN,
    REJECTED,
    chosen_cells,
    coin,
    exact_cells,
    exact_coin,
    exact_weights,
    nine_around,
)
from whereish.solvers.eikonal.between import cell_laws
from whereish.solvers.splines.corners import Corners
from whereish.space.raster import Raster

from laws import chi_square

STEEP = (760.0, 1240.0)
"""Amid four nodes at high levels: arithmetic and geometric means are 2.5e-3 of chi-square a draw
apart, so that 100,000 draws tell them with p of about 1e-45."""


@pytest.fixture(scope="module")
def hilly() -> wh.EikonalMechanism:
    i, j = np.mgrid[:9, :8]
    levels = 1.6e-3 * (2.0 + np.sin(i / 2.0) * np.cos(j / 1.5))
    return wh.EikonalMechanism.build(wh.PrivacyMap(levels, "500 m"))


@pytest.mark.parametrize("place", [STEEP, (2260.0, 2240.0), (0.0, 0.0), (3999.0, 2000.0)])
def test_reports_follow_the_geometric_mean(hilly, place):
    secrets = np.tile(np.array(place), (100_000, 1))
    reports = hilly.report(secrets, rng=wh.SeededRandomness(11))
    cells = hilly.reports.locate(reports.coordinates)
    counts = np.bincount(cells, minlength=len(hilly.reports) + 1)
    law = hilly.distribution(place).ravel()
    assert chi_square(counts, law) > 1e-6
    if place != STEEP:
        return
    # Near misses: the arithmetic mean, in a few groups of reports, and the law 20 m away.
    nodes = Corners().raster(hilly.map.raster)
    nine = nine_around(nodes, np.array([place]))
    laws = np.stack([centre_law(hilly, c) for c in nine.cells(nodes.columns)[0]])
    arithmetic = nine.weights[0] @ laws
    groups = np.array_split(np.argsort(law / np.maximum(arithmetic, 1e-300)), 14)
    grouped = np.array([[c[g].sum() for g in groups] for c in (counts, law, arithmetic)])
    seen = np.append(grouped[0], 0).astype(int)
    assert chi_square(seen, grouped[1]) > 1e-6
    assert chi_square(seen, grouped[2]) < 1e-6
    moved = hilly.distribution(np.array(place) + np.array([20.0, 0.0])).ravel()
    assert chi_square(counts, moved) < 1e-6


def centre_law(mechanism: wh.EikonalMechanism, cell: int) -> np.ndarray:
    law, secret = mechanism.built.law, mechanism.built.secrets[[cell]]
    masses = law.weights * law.table[law.metric.distances(secret)[0]].astype(float)
    return np.asarray(masses / masses.sum())


def test_padded_reports_follow_it_too(hilly):
    place = np.array([2130.0, 1840.0])
    reports = hilly.report(np.tile(place, (20_000, 1)), rng=wh.SeededRandomness(2), padded=True)
    cells = hilly.reports.locate(reports.coordinates)
    counts = np.bincount(cells, minlength=len(hilly.reports) + 1)
    assert chi_square(counts, hilly.distribution(place).ravel()) > 1e-6
    assert chi_square(counts, hilly.distribution(place + np.array([120.0, 0.0])).ravel()) < 1e-6


def test_the_padded_number_of_attempts_follows_from_the_acceptance(hilly):
    sampler = SplineSampler(hilly.built, Corners().raster(hilly.map.raster))
    assert (1 - hilly.built.acceptance) ** sampler.attempts <= 2.0**-40
    assert (1 - hilly.built.acceptance) ** (sampler.attempts - 1) > 2.0**-40


def test_cells_are_chosen_by_their_weights():
    raster = Raster(4, 5, (100.0, 50.0))
    place = np.array([[233.0, 17.0]])
    places = np.repeat(place, 200_000, axis=0)
    source = wh.SeededRandomness(5)
    nine = nine_around(raster, places)
    words = source.words(2 * len(places)).reshape(-1, 2)
    chosen = chosen_cells(raster, places, nine, words, source)
    expected = np.zeros(20)
    np.add.at(expected, nine.cells(5)[0], nine.weights[0])
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)
    counts = np.bincount(chosen, minlength=20)
    used = expected > 0
    assert counts[~used].sum() == 0
    assert chisquare(counts[used], expected[used] * counts.sum()).pvalue > 1e-6
    for axis, weights in ((0, nine.down), (1, nine.across)):
        _, exact = exact_weights(raster, place[0], axis)
        assert sum(exact) == 1
        np.testing.assert_allclose(weights[0], [float(w) for w in exact], atol=1e-12)


def test_exact_choices_agree_with_doubles(monkeypatch):
    """With doubles that trust nothing, fractions decide everything, the same way."""
    raster = Raster(6, 6, (100.0, 100.0))
    rng = np.random.default_rng(0)
    places = rng.uniform(-20, 620, (400, 2))
    words = wh.SeededRandomness(3).words(800).reshape(-1, 2)
    nine = nine_around(raster, places)
    fast = chosen_cells(raster, places, nine, words, wh.SeededRandomness(4))
    doubtful = spline_coin.Nine(
        nine.rows, nine.columns, nine.down, nine.across, np.full(len(places), 2.0)
    )
    slow = chosen_cells(raster, places, doubtful, words, wh.SeededRandomness(4))
    np.testing.assert_array_equal(fast, slow)


def test_choices_next_to_a_border_are_exact():
    """Words that doubles cannot tell from the border of two cells' weights."""
    raster = Raster(6, 6, (100.0, 100.0))
    rng = np.random.default_rng(2)
    wrong = 0
    for place in rng.uniform(110, 490, (40, 2)):
        cells, weights = exact_weights(raster, place, 0)
        border = weights[0] + (weights[1] if rng.random() < 0.5 else 0)
        below, above = cells[int(border > weights[0])], cells[1 + int(border > weights[0])]
        for step, expected in ((-40, below), (-1, below), (1, above), (40, above)):
            word = math.floor(border * 2**64) + step
            words = np.array([[word, 2**63]], np.uint64)
            nine = nine_around(raster, place[None])
            chosen = chosen_cells(raster, place[None], nine, words, wh.SeededRandomness(4))
            assert chosen[0] // 6 == expected
            double = float(word) * 2.0**-64
            first, second = nine.down[0, 0], nine.down[0, 0] + nine.down[0, 1]
            wrong += int(nine.rows[0][int(double >= first) + int(double >= second)] != expected)
    assert wrong > 20  # what doubles alone would have made of them


def test_coins_agree_with_balls_and_leave_open_what_is_close():
    raster = Raster(6, 6, (100.0, 100.0))
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(150):
        place = rng.uniform(0, 600, 2)
        nine = nine_around(raster, place[None])
        masses = [(int(m), 10**6) for m in rng.integers(1, 10**6, 9)]
        logs = np.array([math.log(a) - math.log(b) for a, b in masses])
        word = int(rng.integers(0, 2**63)) * 2 + 1
        surprise = -math.log((word + 0.5) / 2**64)
        found = coin(logs, nine.weights[0], surprise, float(nine.error[0]))
        seen.add(found)
        exact = exact_coin(raster, place, masses, word, wh.SeededRandomness(9))
        assert found == (KEPT if exact else REJECTED)
        chance = math.exp(nine.weights[0] @ logs) / (nine.weights[0] @ np.exp(logs))
        near = coin(logs, nine.weights[0], -math.log(chance), float(nine.error[0]))
        assert near == OPEN
        for shift, expected in ((1e-9, True), (-1e-9, False)):
            word = int(Fraction(chance * (1 - shift)) * 2**64)
            assert exact_coin(raster, place, masses, word, wh.SeededRandomness(9)) is expected
    assert seen == {KEPT, REJECTED}


def test_equal_masses_are_always_kept():
    raster = Raster(6, 6, (100.0, 100.0))
    place = np.array([222.0, 333.0])
    top = 2**64 - 1
    assert exact_coin(raster, place, [(3, 7)] * 9, top, wh.SeededRandomness(1))


def test_acceptance_is_the_normaliser(hilly):
    """The share of draws that are kept is Z(u), as the law itself says."""
    place = np.array([1750.0, 2250.0])
    nine = nine_around(Corners().raster(hilly.map.raster), place[None])
    laws = np.stack(
        [centre_law(hilly, c) for c in nine.cells(Corners().raster(hilly.map.raster).columns)[0]]
    )
    weights = nine.weights[0]
    geometric = np.exp(weights @ np.log(np.maximum(laws, 1e-300)))
    arithmetic = weights @ laws
    rng = np.random.default_rng(8)
    drawn = rng.choice(len(arithmetic), 200_000, p=arithmetic / arithmetic.sum())
    kept = (rng.random(len(drawn)) < geometric[drawn] / arithmetic[drawn]).mean()
    Z = geometric.sum()
    assert hilly.built.acceptance <= Z <= 1.0
    assert kept == pytest.approx(Z, abs=5 * math.sqrt(Z * (1 - Z) / len(drawn)))


def beside_a_border(raster: Raster) -> np.ndarray:
    """A place in its column by less than a double can tell, once it is divided by the width."""
    (x, y), (width, height) = raster.origin, raster.cell
    for column in range(2, raster.columns - 1):
        for place in (x + column * width, np.nextafter(x + column * width, -np.inf)):
            exact = (Fraction(float(place)) - Fraction(x)) / Fraction(width)
            if (place - x) / width == column > exact:
                return np.array([place, y + 1.3 * height])
    raise AssertionError("no such place")


@pytest.fixture(scope="module")
def narrow() -> dict[str, Any]:
    """Mechanisms between nodes, by their kinds, with their nodes and the laws of all of these."""
    steep = wh.PrivacyMap(np.full((3, 12), 1.5 / 333.3), (333.3, 333.3))
    flat = wh.PrivacyMap(np.full((3, 12), 0.3 / 333.3), (333.3, 333.3))
    law = wh.EikonalMechanism.build(steep, frame=0)
    table = wh.EikonalMechanism.build(flat, prior=np.arange(36) + 1.0)
    assert law.built.table is None
    assert table.built.table is not None
    nodes = Raster(3, 12, (333.3, 333.3))
    channel = wh.exponential_channel(nodes, f"{1.5 / 333.3}/m").between_sites()
    return {
        **{
            name: (m, m._nodes, cell_laws(m.built, np.arange(m.built.used.size)))
            for name, m in (("law", law), ("table", table))
        },
        "channel": (channel, channel.raster, np.exp(channel._logs)),
    }


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", ["law", "table", "channel"])
def test_an_open_coin_beside_a_border_is_tossed_for_the_cells_of_its_weights(
    narrow, kind, padded, monkeypatch
):
    """Doubles may take a place for one of the next column, whose nine cells are others."""
    mechanism, nodes, laws = narrow[kind]
    place = beside_a_border(nodes)
    nine = nine_around(nodes, place[None])
    cells = nine.cells(nodes.columns)[0]
    assert set(exact_cells(nodes, place)) != set(cells)
    module = {"law": spline, "table": spline_table, "channel": between}[kind]
    asked = []

    def ask(*given: Any) -> bool:
        asked.append(given[2])
        return True

    def leave_open(values: Any, shares: Any, surprise: Any, errors: Any, status: Any) -> None:
        status[:] = OPEN

    def open_attempt(*given: Any, plain: Any = spline._attempt) -> None:
        plain(*given)
        given[-1][1][:] = OPEN

    monkeypatch.setattr(module, "exact_coin", ask)
    if kind == "law":
        monkeypatch.setattr(module, "_attempt", open_attempt)
    monkeypatch.setattr(module, "coins", leave_open)
    mechanism.report(place[None].repeat(20, axis=0), rng=wh.SeededRandomness(2), padded=padded)
    around = laws[cells][:, laws[0] > 0]
    chances = nine.weights[0] @ np.log(around) - np.log(nine.weights[0] @ around)  # by report
    down, across = (exact_weights(nodes, place, axis)[1] for axis in (0, 1))
    shares = np.array([float(a * b) for a in down for b in across])
    assert len(asked) >= 20
    for masses in asked:
        logs = np.array([math.log(top) - math.log(bottom) for top, bottom in masses])
        chance = shares @ logs - math.log(shares @ np.exp(logs))
        assert np.abs(chances - chance).min() < 1e-9
