"""PriLocation's selection as published: its law, its error, and why no theorem covers it."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from whereish.errors import InvalidInput
from whereish.privacy import Basis
from whereish.publish.profiles.clustering import Clustering
from whereish.publish.profiles.counts import Profiles
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.prilocation import PriLocation, _moved_whole
from whereish.randomness import SeededRandomness
from whereish.sampling.selection import ExponentialSelection
from whereish.space import Box, Plane, Points, Sites

FOUR = np.array([[0.0, 0.0], [1000.0, 0.0], [2000.0, 0.0], [4000.0, 0.0]])


def level_of(places: np.ndarray) -> PlaceLevel:
    box = Box(places[:, 0].min() - 1, -1, places[:, 0].max() + 1, 1)
    return PlaceLevel.of_sites("line", Sites(Points(places, Plane.metres())), box)


def test_a_place_moves_with_its_whole_weight_among_the_user_s_own(rng):
    """<3,1,0,2> becomes one of 27 profiles, each with the product of three selections."""
    eps, level = 6.0, level_of(FOUR)
    counts = np.array([[3, 1, 0, 2]])
    rate = PriLocation(level, eps).epsilon / (8 * level.sensitivity)
    selection = ExponentialSelection(level.distances, _fraction(eps, level))
    own = [0, 1, 3]
    chance = {
        t: np.exp(-rate * level.distances[t, own]) / np.exp(-rate * level.distances[t, own]).sum()
        for t in own
    }
    expected: Counter[tuple[int, ...]] = Counter()
    for choice in itertools.product(range(3), repeat=3):
        result = [0, 0, 0, 0]
        for t, j in zip(own, choice, strict=True):
            result[own[j]] += int(counts[0, t])
        expected[tuple(result)] += math.prod(chance[t][j] for t, j in zip(own, choice, strict=True))
    draws = 30_000
    table = np.repeat(counts, draws, axis=0)
    row, place, weight = _moved_whole(table, table.sum(axis=1), np.arange(4), selection, rng)
    made = np.zeros((draws, 4), int)
    np.add.at(made, (row, place), weight)
    assert (made[:, 2] == 0).all()  # never a place that is not the user's own
    seen = Counter(map(tuple, made.tolist()))
    assert set(seen) <= set(expected)
    assert (6, 0, 0, 0) in seen  # all weight at one place
    keys = sorted(expected)
    frequencies = [seen[key] for key in keys]
    law = np.array([expected[key] for key in keys])
    assert chisquare(frequencies, law * draws).pvalue > 1e-6
    # A near miss: each check-in drawn by itself would split the weights.
    assert not any(1 < value < 3 and value not in (2,) for key in seen for value in key)
    uniform = np.full(len(keys), 1 / len(keys))
    assert chisquare(frequencies, uniform * draws).pvalue < 1e-6


def _fraction(eps: float, level: PlaceLevel):
    from fractions import Fraction

    return Fraction(eps) / (8 * level.sensitivity)


def test_the_slides_example(rng):
    """<3,0,0,0> has one place of its own; with made-up ones it may become <0,3,0,0>."""
    level = level_of(FOUR)
    profiles = Profiles.counted(level, 400, np.arange(400), np.zeros(400, int), 3)
    release = PriLocation(level, 0.5, clusters=1, selection="published").publish(profiles, rng=rng)
    tables = release.profiles.table(0, 400)
    assert len(np.unique(tables, axis=0)) > 20
    assert (tables.sum(axis=1) > 0).mean() > 0.4
    assert release.spent == 0.5


def test_its_basis_is_an_estimate_that_names_the_step():
    level = level_of(FOUR)
    proven = PriLocation(level, 1.0, clusters=2).guarantee
    assert proven.basis is Basis.THEOREM
    for update, selection, words in (
        ("proven", "published", "does not cover selection"),
        ("published", "proven", "does not cover the centre updates"),
        ("published", "published", "the centre updates and selection"),
    ):
        made = PriLocation(level, 1.0, clusters=2, update=update, selection=selection).guarantee
        assert made.basis is Basis.ESTIMATED
        assert words in made.source
    with pytest.raises(InvalidInput, match="selection"):
        PriLocation(level, 1.0, selection="quick")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="without clusters"):
        PriLocation(level, 1.0, clusters=None, selection="published")


@pytest.mark.parametrize("selection", ["proven", "published"])
def test_one_check_in_shows_in_the_published_selection_alone(selection):
    """Empty against one check-in at the place farthest from the centre of a cluster of 60.

    P(that place is released) may differ by a factor e^eps.  As published it does by far more.
    """
    eps, users = 1.0, 60_000
    line = np.column_stack([np.arange(60) * 100.0, np.zeros(60)])
    level = level_of(line)
    mechanism = PriLocation(level, eps, clusters=1, iterations=1, selection=selection)
    clustering = Clustering(np.array([0]), np.zeros(60, np.intp), ())
    shares = []
    for user in (np.empty(0, int), np.arange(users)):
        profiles = Profiles.counted(level, users, user, np.full(user.size, 59))
        made = mechanism._published(profiles, clustering, SeededRandomness(8))
        shares.append(np.unique(made.user[made.site == 59]).size / users)
    empty, one = shares
    spread = 6 * math.sqrt(one / users)
    if selection == "proven":
        assert one - spread <= math.exp(eps) * (empty + 6 * math.sqrt(empty / users))
    else:
        assert one - spread > 20 * math.exp(eps) * (empty + 6 * math.sqrt(empty / users) + 1e-5)


def test_the_published_error_and_alpha(rng):
    """sum d / (HS |T|) by enumeration, and Markov's alpha over all users."""
    level = level_of(FOUR)
    user, site = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 3, 2, 0, 3])
    profiles = Profiles.counted(level, 4, user, site, [3, 1, 2, 5, 1, 1])
    clustering = Clustering(np.array([0, 3]), np.array([0, 0, 1, 1]), ())
    eps = 5.0
    rate = eps / (8 * level.sensitivity)
    for selection in ("proven", "published"):
        mechanism = PriLocation(level, eps, clusters=2, selection=selection)
        errors = mechanism.published_errors(profiles, clustering)
        for who in range(4):
            mine = site[user == who]
            total = 0.0
            for t in mine:
                among = [
                    j
                    for j in (mine if selection == "published" else range(4))
                    if clustering.of_site[j] == clustering.of_site[t]
                ]
                weights = [math.exp(-rate * abs(FOUR[t, 0] - FOUR[j, 0])) for j in among]
                total += sum(
                    w * abs(FOUR[t, 0] - FOUR[j, 0]) for w, j in zip(weights, among, strict=True)
                ) / sum(weights)
            wanted = total / (4000 * len(mine)) if len(mine) else 0.0
            assert errors[who] == pytest.approx(wanted, rel=1e-12)
        assert mechanism.published_alpha(profiles, clustering, beta=0.5) == errors.max() / 0.5
        assert mechanism.published_alpha(profiles, clustering, beta=1e-6) == 1.0
        with pytest.raises(InvalidInput, match="beta"):
            mechanism.published_alpha(profiles, clustering, beta=0.0)
    alone = PriLocation(level, eps, clusters=2, selection="published")
    assert alone.published_errors(profiles, clustering)[1] == 0.0  # one place of one's own


def test_candidates_of_their_own_are_checked():
    selection = ExponentialSelection(np.array([[0, 1], [1, 0]]), _fraction(1.0, level_of(FOUR)))
    with pytest.raises(InvalidInput, match="at least one candidate"):
        selection.draw_among([0], np.array([0]), np.array([0]), np.array([0]))
