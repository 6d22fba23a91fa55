"""The statistical audit: its risk is kept, its power is as stated, and it searches by itself."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from whereish import audit
from whereish.audit.events import Reports, View
from whereish.audit.pairs import NATS, pairs_around
from whereish.audit.statistical import level_lower, smallest_excess
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy import Euclidean, GreatCircle, Manhattan
from whereish.randomness import SeededRandomness
from whereish.space.values import Values
from whereish.units import Epsilon

EPS = 1 / 200
PLANE = EPS * Euclidean()


def audited(*arguments, **options) -> audit.StatisticalAudit:
    """With a seed, unless one is given."""
    return audit.statistical(*arguments, **{"rng": SeededRandomness(0)} | options)


def geometric(seed: int):
    """Two-sided geometric noise, tight for |x - y|: half-lines reach the claim exactly."""
    generator = np.random.default_rng(seed)

    def sample(secrets):
        steps = generator.geometric(1 - math.exp(-1), (2, len(secrets)))
        return secrets[:, 0] + steps[0] - steps[1]

    return sample


def planar(seed: int, epsilon: float):
    """Planar Laplace noise in doubles."""
    generator = np.random.default_rng(seed)

    def sample(secrets):
        radius = generator.gamma(2, 1 / epsilon, len(secrets))
        angle = generator.uniform(0, 2 * math.pi, len(secrets))
        return secrets + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])

    return sample


def per_coordinate(seed: int):
    generator = np.random.default_rng(seed)
    return lambda secrets: secrets + generator.laplace(0, 1 / EPS, secrets.shape)


def gaussian(seed: int, times: float):
    generator = np.random.default_rng(seed)
    return lambda secrets: secrets + generator.normal(0, times / EPS, secrets.shape)


class TestRisk:
    @pytest.mark.parametrize("risk", [0.1, 1e-2, 1e-4])
    def test_the_bound_is_too_high_with_at_most_the_risk_exactly(self, risk):
        """All counts of N hits, weighted with their law; and it is not timid."""
        spent = []
        for hits in (1, 7, 60, 500, 4000):
            for level in (0.05, 0.7, 2.2, 5.0):
                firsts = np.arange(hits + 1)
                share = 1 / (1 + math.exp(-level))
                least, most = 0, hits + 1
                while least < most:
                    middle = (least + most) // 2
                    above = level_lower(middle, hits - middle, risk) > level
                    least, most = (least, middle) if above else (middle + 1, most)
                wrong = float(binom.pmf(firsts[least:], hits, share).sum())
                assert wrong <= risk * (1 + 1e-9)
                spent.append(wrong)
        assert max(spent) > 0.8 * risk

    def test_the_false_positive_rate_at_exactly_epsilon_is_the_risk(self):
        """Half-lines of geometric noise are tight, so twice the risk would show."""
        runs, risk = 1000, 0.1
        refuted = sum(
            audited(
                geometric(seed),
                [0],
                [1],
                metric=Euclidean(),
                samples=1500,
                confidence=1 - risk,
                rng=SeededRandomness(seed),
            ).refuted
            for seed in range(runs)
        )
        assert binom.ppf(1e-6, runs, risk / 2) <= refuted <= binom.isf(1e-6, runs, risk)
        assert binom.isf(1e-6, runs, risk) < binom.ppf(1e-4, runs, 2 * risk), "2 risk is seen"

    @pytest.mark.parametrize("name", ["planar", "truncated geometric"])
    def test_mechanisms_are_not_refuted_more_often_than_the_risk(self, name):
        runs, risk = 400, 0.1
        mechanism, x, y = (
            (PlanarLaplace(Epsilon(EPS)), [0, 0], [300, 200])
            if name == "planar"
            else (TruncatedGeometric(Values(1, 9), 1.0), [3], [5])
        )
        refuted = sum(
            audited(
                mechanism, x, y, samples=2000, confidence=1 - risk, rng=SeededRandomness(seed)
            ).refuted
            for seed in range(runs)
        )
        assert refuted <= binom.isf(1e-6, runs, risk)

    def test_a_search_does_not_spend_the_risk_twice(self):
        """Choosing the luckiest of 80 pairs on the tested reports would refute nearly always."""
        runs, risk = 16, 0.1
        refuted = sum(
            audited(
                planar(seed, EPS),
                metric=PLANE,
                at=[0, 0],
                samples=2000,
                confidence=1 - risk,
                rng=SeededRandomness(seed),
            ).refuted
            for seed in range(runs)
        )
        assert refuted <= binom.isf(1e-6, runs, risk)


class TestPower:
    @pytest.mark.parametrize(
        ("build", "metric", "at"),
        [(PlanarLaplace, Euclidean(), [0, 0]), (GlobeLaplace, GreatCircle(), [2.35, 48.86])],
        ids=["planar", "globe"],
    )
    def test_an_excess_of_five_percent_is_found_with_a_million_samples(self, build, metric, at):
        """Where the audit of one pair with two bounds found none of six."""

        def run(factor, seed):
            return audited(
                build(Epsilon(factor * EPS)),
                metric=metric,
                epsilon=EPS,
                at=at,
                rng=SeededRandomness(seed),
            )

        assert all(run(1.05, seed).refuted for seed in range(4))
        honest = run(1.0, 4)
        assert not honest.refuted
        assert honest.epsilon_lower > 0.95 * EPS
        assert 0.02 < honest.smallest_excess < 0.05

    def test_the_stated_power_is_the_power(self):
        """Refuted in nine of ten runs at the excess that it states, seldom at a third of it."""

        def run(factor, seed):
            return audited(
                planar(seed, factor * EPS),
                [0, 0],
                [2 / EPS, 0],
                metric=PLANE,
                samples=100_000,
                confidence=0.999,
                rng=SeededRandomness(seed),
            )

        runs = 40
        stated = float(np.median([run(1.0, seed).smallest_excess for seed in range(10)]))
        assert 0.05 < stated < 0.2
        seen = [
            sum(run(1 + share * stated, 100 + seed).refuted for seed in range(runs))
            for share in (1.0, 1 / 3)
        ]
        assert seen[0] >= binom.ppf(1e-6, runs, 0.9)
        assert seen[1] <= runs / 2

    def test_smallest_excess_agrees_with_the_binomial(self):
        first, other, claimed, risk = 8000, 1100, 2.0, 1e-4
        excess = smallest_excess(first, other, claimed, risk)
        level = (1 + excess) * math.log((first + 0.5) / (other + 0.5))
        hits = first + other
        refuting = [a for a in range(hits - 3000, hits) if level_lower(a, hits - a, risk) > claimed]
        reached = binom.sf(refuting[0] - 1, hits, 1 / (1 + math.exp(-level)))
        assert reached == pytest.approx(0.9, abs=1e-6)

    def test_few_hits_see_nothing_and_say_so(self):
        assert smallest_excess(3, 0, 2.0, 1e-4) == math.inf
        assert smallest_excess(0, 0, 2.0, 1e-4) == math.inf
        found = audited(planar(0, EPS), [0, 0], [8 / EPS, 0], metric=PLANE, samples=1000)
        assert "no excess would be seen" in str(found)

    def test_the_answer_says_what_would_not_be_seen(self):
        found = audited(planar(0, EPS), [0, 0], [400, 0], metric=PLANE, samples=20_000)
        assert "the claim of 1 is not refuted" in str(found)
        assert f"an excess below {found.smallest_excess:.2%} would not be seen" in str(found)
        unknown = audited(planar(0, EPS), [0, 0], [400, 0], distance=400, samples=2000)
        assert unknown.claim is None
        assert unknown.smallest_excess is None
        assert not unknown.refuted
        assert "refuted" not in str(unknown)


class TestSearch:
    def test_noise_per_coordinate_is_refuted_on_a_diagonal_that_it_finds(self):
        found = audited(per_coordinate(0), metric=PLANE, at=[0, 0], samples=100_000)
        assert found.refuted
        assert found.epsilon_lower > 1.3
        x, y = found.secrets
        assert abs(x - y).min() > 0.3 * abs(x - y).max()
        straight = audited(per_coordinate(1), [0, 0], [400, 0], metric=PLANE, samples=100_000)
        assert not straight.refuted

    def test_gaussian_noise_is_refuted_by_its_tail(self):
        found = audited(gaussian(0, 2), metric=PLANE, at=[0, 0], samples=400_000)
        assert found.refuted
        assert found.distance >= 1

    def test_gaussian_noise_that_no_test_can_see_is_said_to_be_unseen(self):
        """No test of a pair has power above 0.0002 for sigma = 4/eps with 1e6 (see the stress)."""
        found = audited(gaussian(0, 4), metric=PLANE, at=[0, 0])
        assert not found.refuted
        assert found.smallest_excess > 0.1

    def test_several_places_are_searched_in_pairs(self):
        noise = geometric(0)

        def leaky(secrets):
            return np.where(secrets[:, 0] == 7, secrets[:, 0], noise(secrets))

        at = [[0], [1], [3], [7]]
        found = audited(leaky, metric=Euclidean(), at=at, samples=20_000)
        assert found.refuted
        assert 7 in np.concatenate(found.secrets)
        assert not audited(noise, metric=Euclidean(), at=at, samples=20_000).refuted

    def test_secrets_that_the_sampler_refuses_are_left_out(self):
        noise = planar(0, EPS / 2)

        def bounded(secrets):
            if (secrets[:, 0] < 0).any():
                raise InvalidInput("the secrets must be east of the border")
            return noise(secrets)

        found = audited(bounded, metric=PLANE, at=[1, 0], samples=2000)
        assert all(secret[0] >= 0 for secret in found.secrets)
        with pytest.raises(InvalidInput, match="east of the border"):
            audited(bounded, metric=PLANE, at=[-1e6, 0], samples=2000)

    def test_reports_that_are_no_places(self):
        """Randomised response to "is it in the east", too honest by a third."""
        generator = np.random.default_rng(0)
        truth = 1 / (1 + math.exp(-4 / 3))

        def answer(secrets):
            return (secrets[:, 0] > 0) == (generator.random(len(secrets)) < truth)

        found = audited(answer, [-1, 0], [1, 0], distance=1, epsilon=1, samples=50_000)
        assert found.refuted
        assert 1.2 < found.epsilon_lower < 4 / 3

    def test_reports_are_drawn_in_batches_and_no_secret_more_than_asked(self):
        noise, drawn, largest = planar(0, EPS), Counter(), 0

        def watched(secrets):
            nonlocal largest
            largest = max(largest, len(secrets))
            drawn[tuple(secrets[0])] += len(secrets)
            return noise(secrets)

        samples = 1_200_000
        found = audited(watched, metric=PLANE, at=[0, 0], samples=samples)
        assert largest <= 2**18
        tested = {tuple(secret) for secret in found.secrets}
        assert all(abs(drawn[secret] - samples) < 6 * math.sqrt(samples) for secret in tested)
        assert all(drawn[secret] <= samples / 5 for secret in drawn if secret not in tested)
        assert len(drawn) == 81

    def test_bad_questions(self):
        noise = planar(0, EPS)
        for arguments in ({"x": [0, 0]}, {}, {"x": [0, 0], "y": [1, 0], "at": [0, 0]}):
            with pytest.raises(InvalidInput, match="two secrets x and y, or a place"):
                audited(noise, metric=PLANE, **arguments)
        with pytest.raises(InvalidInput, match="needs a metric"):
            audited(noise, at=[0, 0], distance=3.0)
        with pytest.raises(InvalidInput, match="needs the claim"):
            audited(noise, at=[0, 0])
        with pytest.raises(InvalidInput, match="epsilon must be"):
            audited(noise, at=[0, 0], epsilon=0.0)
        with pytest.raises(InvalidInput, match="finite distance"):
            audited(noise, at=[[0, 0], [0, 0]], metric=PLANE)


class TestPairs:
    @pytest.mark.parametrize(
        ("metric", "at"),
        [
            (Euclidean(), [10.0, -3.0]),
            (Manhattan(), [0.0, 0.0]),
            (Euclidean(), [5.0]),
            (Euclidean(), [1.0, 2.0, 3.0]),
            *((GreatCircle(), at) for at in ([2.0, 48.0], [180.0, 0.0], [7.0, 90.0], [0.0, -90.0])),
        ],
        ids=str,
    )
    def test_directions_and_distances(self, metric, at):
        at = np.array(at)
        pairs = pairs_around(at, metric, EPS)
        nats = np.array([float(metric(at[None], pair.y[None])[0]) * EPS for pair in pairs])
        np.testing.assert_allclose(nats, [pair.distance * EPS for pair in pairs])
        np.testing.assert_allclose(nats.reshape(-1, len(NATS)) / NATS, 1, rtol=1e-6)
        assert len(np.unique([pair.y for pair in pairs], axis=0)) == len(pairs)

    def test_beyond_half_around_the_globe_there_is_nothing(self):
        pairs = pairs_around(np.array([0.0, 0.0]), GreatCircle(), 1.5e-7)
        assert {round(pair.distance * 1.5e-7, 3) for pair in pairs} == {0.25, 1.0, 2.0}
        with pytest.raises(InvalidInput, match="several"):
            pairs_around(np.array([0.0, 0.0]), GreatCircle(), 1e-9)


def test_scores_agree_on_the_globe_and_the_plane():
    """Near a place the scores in degrees are those of a plane in metres, across 180 degrees too."""
    degree = math.radians(1) * 6335439.3
    east = degree * math.cos(math.radians(40))
    offsets = np.random.default_rng(0).uniform(-2000, 2000, (100, 2))
    lon, lat = 179.99 + offsets[:, 0] / east, 40 + offsets[:, 1] / degree
    globe = Reports(np.column_stack([np.mod(lon + 180, 360) - 180, lat]), EPS * GreatCircle())
    flat = Reports(offsets, Euclidean())
    there = np.array([300.0, -200.0])
    on_globe = View(
        np.array([179.99, 40.0]),
        np.array([179.99 + there[0] / east, 40 + there[1] / degree]),
        globe.metric,
    )
    on_plane = View(np.zeros(2), there, flat.metric)
    for score in (View.farther, View.near, View.far, View.far_from_other):
        np.testing.assert_allclose(score(on_globe, globe), score(on_plane, flat), atol=2)
    np.testing.assert_allclose(
        View.behind(on_globe, globe) * degree, View.behind(on_plane, flat), atol=2
    )
    np.testing.assert_allclose(View.cosine(on_globe, globe), View.cosine(on_plane, flat), atol=1e-6)
    assert View.cosine(on_plane, Reports(np.zeros((1, 2)), Euclidean()))[0] == 1
