"""PriLocation: accounts, privacy of its operations by enumeration, and its error."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from whereish.errors import InvalidInput
from whereish.privacy import Basis, Manhattan
from whereish.publish.profiles.clustering import (
    Clustering,
    noisy_integers,
    private_clusters,
    spread,
)
from whereish.publish.profiles.error import distance_error, transport_cost
from whereish.publish.profiles.levels import PlaceLevel
from whereish.publish.profiles.prilocation import NaiveProfiles, PriLocation, Profiles, _resized
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane, Points, Raster, Sites

LINE = np.array([[0.0, 0.0], [1000.0, 0.0], [3000.0, 0.0]])


def line_level() -> PlaceLevel:
    return PlaceLevel.of_sites(
        "line", Sites(Points(LINE, Plane.metres())), Box(-100, -100, 4000, 100)
    )


def raster_level(side: int = 12) -> PlaceLevel:
    return PlaceLevel.of_raster("grid", Raster(side, side, (500.0, 500.0)))


def crowd(level: PlaceLevel, users: int = 400, seed: int = 4) -> Profiles:
    """Users around one corner of the region, each near a place of their own."""
    generator = np.random.default_rng(seed)
    box = level.region
    who = np.repeat(np.arange(users), generator.geometric(1 / 15, users))
    spot = np.array([1200.0, 1500.0]) + generator.normal(0, 400, (users, 2))
    places = spot[who] + generator.normal(0, 300, (len(who), 2))
    everyone = np.arange(users)
    return Profiles.from_checkins(level, who, box.clamp(places), public_users=everyone)[0]


# Levels


def test_geohash_cells_have_their_usual_names():
    level = PlaceLevel.of_geohash("city", Box(-5.63, 42.59, -5.56, 42.61), 5)
    assert "ezs42" in level.labels  # the textbook example: 42.6, -5.6
    place = level.locate([[-5.603, 42.605]])[0]
    assert level.labels[place] == "ezs42"
    fine = PlaceLevel.of_geohash("street", Box(10.4073, 57.6490, 10.4076, 57.6493), 9)
    assert any(label.startswith("u4pruydq") for label in fine.labels)


def test_the_sensitivity_is_the_largest_distance():
    level = line_level()
    assert level.sensitivity == 3000
    assert level.diameter_d1_m == 3000
    assert raster_level().sensitivity == round(math.hypot(5500, 5500))
    assert level.distances.max() == level.sensitivity


def test_levels_refuse_what_they_do_not_cover():
    with pytest.raises(InvalidInput, match="1 of 1 places lie outside") as caught:
        line_level().locate([[9321.0, 0.0]])
    assert "9321" not in str(caught.value)
    with pytest.raises(InvalidInput, match="between 2"):
        PlaceLevel.of_raster("one", Raster(1, 1))
    with pytest.raises(InvalidInput, match="shorter length"):
        PlaceLevel.of_geohash("all", Box(-180, -80, 180, 80), 6)
    with pytest.raises(InvalidInput, match="length"):
        PlaceLevel.of_geohash("all", Box(0, 0, 1, 1), 0)
    same = Points(np.zeros((2, 2)), Plane.metres())
    with pytest.raises(InvalidInput, match="all be one"):
        PlaceLevel.of_sites("same", Sites(same), Box(-1, -1, 1, 1))


def test_profiles_count_checkins():
    level = line_level()
    who, where = ["b", "a", "b", "b"], LINE[[0, 2, 0, 1]] + 5
    profiles, names = Profiles.from_checkins(level, who, where, public_users=["a", "b"])
    assert names.tolist() == ["a", "b"]
    assert [part.tolist() for part in profiles.of(1)] == [[0, 1], [2, 1]]
    assert profiles.pooled.tolist() == [2, 1, 1]
    assert profiles.table(0, 2).tolist() == [[0, 0, 1], [2, 1, 0]]
    assert profiles.nonzero == 3
    with pytest.raises(InvalidInput, match="user for each place"):
        Profiles.from_checkins(level, ["a"], where, public_users=["a", "b"])


def test_the_list_of_users_is_declared_and_never_inferred():
    """Its proof calls the list public: whether somebody has a check-in must not show in it."""
    level, where = line_level(), LINE[[0, 2, 0]] + 5
    with pytest.raises(InvalidInput, match="public_users must be given"):
        Profiles.from_checkins(level, ["b", "a", "b"], where)
    roster = ["c", "a", "b"]
    with_b, names = Profiles.from_checkins(level, ["b", "a", "b"], where, public_users=roster)
    without, same = Profiles.from_checkins(level, ["a"], where[1:2], public_users=roster)
    nothing, _ = Profiles.from_checkins(level, [], where[:0], public_users=roster)
    assert len(with_b) == len(without) == len(nothing) == 3
    assert names.tolist() == same.tolist() == roster
    assert with_b.table(0, 3).tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0]]
    assert nothing.nonzero == 0
    for wrong, problem in (
        (["a"], "2 of 3 are not"),
        (["a", "b", "a"], "each once"),
        ([], "at least one"),
        ([1, 2], "one type"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            Profiles.from_checkins(level, ["b", "a", "b"], where, public_users=wrong)


def test_huge_counts_are_clamped_and_not_refused(rng):
    """A refusal, or a sum that wraps around 64 bits, would tell of them without noise."""
    level = raster_level(4)
    for weight in (2**44, 2**46, 2**61):
        profiles = Profiles.counted(level, 1, [0, 0], [0, 5], [weight, 1])
        found = private_clusters(
            level,
            profiles.pooled,
            clusters=2,
            iterations=2,
            epsilon=Fraction(1),
            update="proven",
            rng=rng,
        )
        assert len(found.centres) <= 2
    assert noisy_integers(np.array([2**62]), 1, Fraction(1), rng)[0] < 2**46


# Accounts


@pytest.mark.parametrize("update", ["proven", "published"])
@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 1 / 3])
@pytest.mark.parametrize("iterations", [1, 3, 7])
def test_the_budget_adds_up_exactly(eps, iterations, update, rng):
    level = raster_level()
    mechanism = PriLocation(level, eps, clusters=5, iterations=iterations, update=update)
    release = mechanism.publish(crowd(level, 20), rng=rng)
    assert release.spent == Fraction(eps)
    spent = dict(release.spending)
    assert spent["cluster weights"] == spent["selection"] == Fraction(eps) / 4
    looks = [amount for name, amount in release.spending if name.startswith("clustering")]
    assert len(looks) == iterations
    assert sum(looks) == Fraction(eps) / 2
    assert release.reproducible
    assert NaiveProfiles(level, eps).publish(crowd(level, 20), rng=rng).spent == Fraction(eps)


def test_only_the_proven_update_claims_a_theorem():
    level = line_level()
    proven = PriLocation(level, 0.5, clusters=2).guarantee
    assert proven.basis == Basis.THEOREM
    assert proven.metric == 0.5 * Manhattan()
    published = PriLocation(level, 0.5, clusters=2, update="published").guarantee
    assert published.basis == Basis.ESTIMATED
    assert "does not cover" in published.source


# Privacy of the operations


@given(st.lists(st.integers(0, 4), min_size=0, max_size=9), st.integers(0, 4), st.integers(0, 12))
def test_one_checkin_more_changes_one_checkin_after_resizing(checkins, extra, wanted):
    """Step 3 of the proof: the same number of check-ins, of which all but one are equal."""

    def resized(places: list[int]) -> Counter[int]:
        table = np.bincount(places, minlength=5)[None].astype(np.int64)
        row, column = _resized(table, np.array([wanted]))
        assert (row == 0).all()
        return Counter(column.tolist())

    less, more = resized(checkins), resized([*checkins, extra])
    assert less.total() == more.total() == wanted
    assert (less - more).total() <= 1


def test_resizing_adds_near_the_centre_and_takes_the_farthest():
    table = np.array([[2, 0, 3], [0, 0, 1]])
    row, column = _resized(table, np.array([3, 5]))
    assert Counter(column[row == 0].tolist()) == {0: 2, 2: 1}
    assert Counter(column[row == 1].tolist()) == {0: 2, 1: 1, 2: 2}


def rounded_laplace(value: int, scale: float, count: int) -> float:
    """P(max(round(value + Lap(scale)), 0) = count)."""

    def cdf(x: float) -> float:
        return math.exp(x / scale) / 2 if x < 0 else 1 - math.exp(-x / scale) / 2

    low = -math.inf if count == 0 else count - 0.5 - value
    return cdf(count + 0.5 - value) - cdf(low)


def published_law(mechanism: PriLocation, table: np.ndarray, most: int) -> dict[tuple, float]:
    """The exact law of one user's published counts, one cluster with centre 0."""
    level = mechanism.level
    weights = np.exp(-mechanism.epsilon * level.distances / (8 * level.sensitivity))
    chances = weights / weights.sum(axis=1, keepdims=True)
    law: dict[tuple, float] = {}
    for count in range(most + 1):
        here = rounded_laplace(int(table.sum()), 4 / mechanism.epsilon, count)
        _, places = _resized(table[None], np.array([count]))
        for outcome in combinations_with_replacement(range(3), count):
            law[outcome] = 0.0
        partial = {(): 1.0}
        for place in places:
            grown: dict[tuple, float] = {}
            for outcome, p in partial.items():
                for site in range(3):
                    key = tuple(sorted((*outcome, site)))
                    grown[key] = grown.get(key, 0.0) + p * chances[place, site]
            partial = grown
        for outcome, p in partial.items():
            law[outcome] += here * p
    return law


def one_cluster() -> Clustering:
    return Clustering(np.array([0]), np.zeros(3, np.intp), ())


@pytest.mark.parametrize("eps", [0.5, 4.0])
def test_weights_and_selection_keep_half_the_budget(eps):
    """All outcomes of up to six check-ins, for data sets with one check-in more or less."""
    mechanism = PriLocation(line_level(), eps, clusters=1)
    largest = 0.0
    for places in ([], [2], [0, 1], [0, 2, 2]):
        for extra in range(3):
            less, more = (np.bincount(p, minlength=3) for p in (places, [*places, extra]))
            one, two = published_law(mechanism, less, 6), published_law(mechanism, more, 6)
            gaps = [abs(math.log(one[key] / two[key])) for key in one]
            largest = max(largest, *gaps)
            assert max(gaps) <= eps / 2 * (1 + 1e-9)
    assert largest > 0.99 * eps / 4, "the counts alone reach a quarter"


def test_the_program_has_the_enumerated_law(rng):
    """20,000 users with the same profile are as many draws of one."""
    level, users = line_level(), 20_000
    mechanism = PriLocation(level, 4.0, clusters=1)
    table = np.array([1, 0, 2])
    user, site = np.repeat(np.arange(users), 2), np.tile([0, 2], users)
    profiles = Profiles.counted(level, users, user, site, np.tile([1, 2], users))
    published = mechanism._published(profiles, one_cluster(), rng)
    drawn = Counter(map(tuple, published.table(0, users).tolist()))
    law = published_law(mechanism, table, 7)
    expected = {
        tuple(np.bincount(np.array(k, int), minlength=3).tolist()): p for k, p in law.items()
    }
    often = [key for key, p in expected.items() if p * users > 20]
    assert len(often) > 10

    def p_value(model: dict[tuple, float]) -> float:
        rest = users - sum(drawn[key] for key in often)
        observed = [*(drawn[key] for key in often), rest]
        chances = [*(model[key] for key in often), 1 - sum(model[key] for key in often)]
        return float(chisquare(observed, np.array(chances) * users).pvalue)

    assert p_value(expected) > 1e-6
    wrong = published_law(PriLocation(level, 4.4, clusters=1), table, 7)
    wrong = {
        tuple(np.bincount(np.array(k, int), minlength=3).tolist()): p for k, p in wrong.items()
    }
    assert p_value(wrong) < 1e-6


def test_noise_on_whole_numbers_has_the_laplace_law(rng):
    values = np.full(100_000, 1000)
    for sensitivity, budget in ((1, Fraction(1, 2)), (3000, Fraction(1, 3)), (4096, Fraction(2))):
        noisy = noisy_integers(values, sensitivity, budget, rng)
        scale = float(sensitivity / budget)
        middle = np.abs(noisy - 1000).mean()
        assert abs(middle - scale) < 6 * scale / math.sqrt(len(values)) + 0.2
        assert noisy.dtype == np.int64


# Clustering


def test_initial_centres_do_not_depend_on_the_data(rng):
    """With one look of the published update, the centres are the initial ones."""
    level = raster_level()
    found = [
        private_clusters(
            level,
            profiles.pooled,
            clusters=6,
            iterations=1,
            epsilon=Fraction(1),
            update="published",
            rng=rng,
        ).centres
        for profiles in (crowd(level), crowd(level, 3, seed=9))
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(np.sort(found[0]), np.sort(spread(level.distances, 6)))


def test_noisy_updates_find_where_people_are(rng):
    level = raster_level()
    profiles = crowd(level)
    clustering = private_clusters(
        level,
        profiles.pooled,
        clusters=6,
        iterations=4,
        epsilon=Fraction(2),
        update="proven",
        rng=rng,
    )
    weights = profiles.pooled

    def objective(centres: np.ndarray) -> int:
        return int(weights @ level.distances[:, centres].min(axis=1))

    assert objective(clustering.centres) < 0.7 * objective(spread(level.distances, 6))
    assert (np.sort(np.unique(clustering.of_site)) == np.arange(len(clustering.centres))).all()
    for options in ({"clusters": 0}, {"clusters": 1000}, {"iterations": 0}):
        given_options = {"clusters": 2, "iterations": 1} | options
        with pytest.raises(InvalidInput):
            private_clusters(
                level, weights, epsilon=Fraction(1), update="proven", rng=rng, **given_options
            )


def test_the_update_reads_the_data_through_noise_only():
    """With a tiny budget the centres are the same noise for very different data."""
    level = raster_level()
    outcomes = [
        private_clusters(
            level,
            profiles.pooled,
            clusters=5,
            iterations=2,
            epsilon=Fraction(1, 10**6),
            update="proven",
            rng=SeededRandomness(3),
        ).centres
        for profiles in (crowd(level, 50), crowd(level, 60, seed=8))
    ]
    assert np.array_equal(*outcomes)


# Error


def test_transport_cost_has_its_closed_forms():
    costs = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    ones = np.ones(4, np.int64)
    assert transport_cost(costs, ones, ones) == pytest.approx(0)
    assert transport_cost(costs, ones, np.array([0, 0, 0, 1])) == pytest.approx(1.5)
    # On a line it is the integral of the difference of distribution functions.
    generator = np.random.default_rng(2)
    for _ in range(20):
        a, b = generator.integers(1, 9, 4), generator.integers(1, 9, 4)
        exact = np.abs(np.cumsum(a / a.sum()) - np.cumsum(b / b.sum()))[:-1].sum()
        assert transport_cost(costs, a, b) == pytest.approx(exact)


def test_distance_error_of_the_truth_is_zero_and_of_nothing_is_the_sensitivity():
    level = raster_level()
    profiles = crowd(level, 10)
    np.testing.assert_allclose(distance_error(profiles, profiles), 0, atol=1e-6)
    empty = Profiles.counted(level, len(profiles), [], [])
    assert (distance_error(profiles, empty) == level.sensitivity).all()
    with pytest.raises(InvalidInput, match="same level"):
        distance_error(profiles, crowd(raster_level(), 10))


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_the_error_is_below_the_naive_baseline(eps, rng):
    level = raster_level()
    profiles = crowd(level)
    naive = NaiveProfiles(level, eps).publish(profiles, rng=rng)
    ours = PriLocation(level, eps, clusters=8).publish(profiles, rng=rng)
    users = range(120)
    assert (
        distance_error(profiles, ours.profiles, users).mean()
        < distance_error(profiles, naive.profiles, users).mean()
    )
    assert ours.profiles.nonzero < naive.profiles.nonzero


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_the_error_is_below_the_naive_baseline_on_real_checkins(eps, data_file, rng):
    table = pq.read_table(data_file("gowalla_nyc_checkins.parquet"))
    places = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    levels = ((Box(-74.27, 40.47, -73.69, 40.93), 5), (Box(-74.02, 40.70, -73.93, 40.80), 6))
    for box, length in levels:
        level = PlaceLevel.of_geohash("level", box, length)
        inside = box.contains(places)
        users = table["user"].to_numpy()[inside]
        profiles, _ = Profiles.from_checkins(
            level, users, places[inside], public_users=np.unique(users)
        )
        users = np.random.default_rng(0).choice(len(profiles), 150, replace=False)
        ours = PriLocation(level, eps).publish(profiles, rng=rng)
        naive = NaiveProfiles(level, eps).publish(profiles, rng=rng)
        assert (
            distance_error(profiles, ours.profiles, users).mean()
            < distance_error(profiles, naive.profiles, users).mean()
        )


def test_the_error_bound_holds(rng):
    """Markov: of all users at most the share `risk` has a mean d(t, t̂) above its alpha."""
    level = raster_level()
    profiles = crowd(level, 60)
    mechanism = PriLocation(level, 1.0, clusters=6)
    clustering = mechanism.publish(profiles, rng=rng).clustering
    generator = np.random.default_rng(1)
    above = 0
    for user in range(60):
        alpha = mechanism.distance_error_bound(profiles, clustering, user, risk=0.5)
        assert alpha <= level.sensitivity
        sites, weights = profiles.of(user)
        drawn = []
        for site in np.repeat(sites, weights):
            members = clustering.members(clustering.of_site[site])
            distances = level.distances[site, members]
            chance = np.exp(-distances / (8 * level.sensitivity))
            drawn.append(generator.choice(distances, p=chance / chance.sum()))
        above += np.mean(drawn) >= alpha
    assert above <= 0.5 * 60
    with pytest.raises(InvalidInput, match="risk"):
        mechanism.distance_error_bound(profiles, clustering, 0, risk=0)


def test_bad_parameters_are_refused():
    level = line_level()
    for eps in (0, -1, math.nan, math.inf, "1", 1e-9):
        with pytest.raises(InvalidInput, match="epsilon"):
            PriLocation(level, eps)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="epsilon"):
            NaiveProfiles(level, eps)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="update"):
        PriLocation(level, 1.0, update="quick")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="very level"):
        PriLocation(level, 1.0).publish(crowd(raster_level(), 5))
