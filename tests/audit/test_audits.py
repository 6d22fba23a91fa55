from __future__ import annotations

import math

import numpy as np
import pytest

from whereish import audit
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean, Finite, GreatCircle
from whereish.randomness import SeededRandomness
from whereish.space import Plane, Points, Sites
from whereish.space.sphere import RADIUS_M
from whereish.units import Epsilon

EPS = 1 / 200
ONE_METRE = np.array([1.0, 0.0])
LINE = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)


def geometric(n: int, ratio: float) -> np.ndarray:
    """The truncated geometric mechanism on 0..n-1, tight for ln(1/ratio) * |x - x'|."""
    inner = (1 - ratio) / (1 + ratio)
    ends = np.full(n, inner)
    ends[[0, -1]] = 1 / (1 + ratio)
    return ratio ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * ends


class TestExact:
    def test_two_sides(self):
        channel = geometric(5, 0.5)
        found = audit.exact(channel, math.log(2) * Finite(LINE))
        assert found.factor == pytest.approx(1, abs=1e-12)
        assert audit.exact(channel, 1.01 * math.log(2) * LINE).holds
        assert audit.exact(channel, 0.99 * math.log(2) * LINE).refuted
        assert "worst" in str(found)

    def test_a_metric_on_coordinates_needs_the_places(self):
        channel, places = geometric(5, 0.5), np.column_stack([np.arange(5.0), np.zeros(5)])
        found = audit.exact(channel, math.log(2) * Euclidean(), sites=places)
        assert found.factor == pytest.approx(1, abs=1e-12)
        same = audit.exact(channel, math.log(2) * Euclidean(), sites=Sites(Points(places, Plane())))
        assert same == found
        with pytest.raises(InvalidInput, match="sites"):
            audit.exact(channel, Euclidean())

    def test_rows_must_be_distributions(self):
        with pytest.raises(InvalidInput, match="sum to 1"):
            audit.exact(np.full((2, 2), 0.4), LINE[:2, :2])
        with pytest.raises(InvalidInput, match="same total"):
            audit.exact(np.array([[1, 2], [2, 2]]), LINE[:2, :2])
        with pytest.raises(InvalidInput):
            audit.exact(np.empty((0, 0)), np.empty((0, 0)))

    def test_equal_secrets_need_equal_rows_to_the_last_unit(self):
        half = 2**61
        rows = np.array([[half, half], [half + 1, half - 1]])
        assert audit.exact(rows, np.zeros((2, 2))).factor == math.inf

    def test_rows_that_miss_their_sum_widen_the_bound(self):
        channel = geometric(5, 0.5)
        channel[0] *= 1 - 8e-10
        found = audit.exact(channel, math.log(2) * LINE)
        assert found.factor > 1 + 1e-9
        assert found.factor_lower <= 1

    def test_distances_on_the_globe_are_accurate_enough_to_prove(self):
        """Two rows exactly ln 2 apart, at a distance that the metric just does not allow."""
        places = np.array([[2.0, 48.0], [2.0, 48.00001]])
        channel = np.array([[2, 1], [1, 2]])
        length = RADIUS_M * math.radians(1e-5)
        for factor, verdict in ((1 - 1e-9, False), (1 + 1e-9, True)):
            metric = math.log(2) / length * factor * GreatCircle()
            assert audit.exact(channel, metric, sites=places).holds is verdict

    def test_integers_are_exact(self):
        big = 2**62
        channel = np.array([[big - 1, 1], [1, big - 1]])
        found = audit.exact(channel, LINE[:2, :2])
        assert found.factor == pytest.approx(math.log(big - 1), rel=1e-14)


class TestDensity:
    def test_finds_the_promise_and_refutes_less(self):
        mechanism = PlanarLaplace(Epsilon(EPS))
        secrets = np.random.default_rng(0).uniform(-500, 500, (40, 2))
        assert audit.density(mechanism, secrets).factor == pytest.approx(1, abs=1e-9)
        less = audit.density(mechanism, secrets, metric=0.99 * mechanism.guarantee.metric)
        assert less.factor > 1.009

    def test_one_secret_is_not_enough(self):
        with pytest.raises(InvalidInput, match="two secrets"):
            audit.density(PlanarLaplace(Epsilon(EPS)), [[0, 0]])


def lambert_w_tool(seed: int, fault=None):
    """A sampler that is not ours: textbook noise in metres, with a fault of choice."""
    generator = np.random.default_rng(seed)
    textbook = audit.TextbookPlanarLaplace(Epsilon(EPS))

    def sample(secrets):
        reports = textbook.sample(secrets, generator)
        if fault == "true place":
            lucky = generator.random(len(secrets)) < 0.25
            reports[lucky] = secrets[lucky]
        if fault == "no north":
            reports[:, 1] = secrets[:, 1]
        if fault == "half the noise":
            reports = secrets + (reports - secrets) / 2
        return reports

    return sample


class TestStatistical:
    def test_foreign_samplers_are_measured_by_their_output_alone(self):
        honest = audit.statistical(
            lambert_w_tool(0), [0, 0], [400, 0], distance=400.0, rng=SeededRandomness(0)
        )
        assert 0.9 * EPS <= honest.epsilon_lower <= EPS

    @pytest.mark.parametrize(
        ("fault", "there"),
        [("true place", [20, 0]), ("no north", [0, 50]), ("half the noise", [400, 0])],
    )
    def test_faults_are_refuted(self, fault, there):
        found = audit.statistical(
            lambert_w_tool(1, fault),
            [0, 0],
            there,
            metric=EPS * Euclidean(),
            samples=400_000,
            rng=SeededRandomness(1),
        )
        assert found.epsilon_lower > 1.5, found

    def test_the_confidence_is_kept(self):
        """At 90% confidence an audit of the exact promise is above it in about 10% of runs."""
        mechanism = GlobeLaplace(Epsilon(EPS))
        rng = SeededRandomness(2)
        above = sum(
            audit.statistical(
                mechanism, [0, 0], [0, 0.002], samples=4000, confidence=0.9, rng=rng
            ).epsilon_lower
            > 1
            for _ in range(60)
        )
        assert above <= 16

    def test_bad_questions(self):
        mechanism = PlanarLaplace(Epsilon(EPS))
        with pytest.raises(InvalidInput, match="distance greater than zero"):
            audit.statistical(mechanism, [0, 0], [0, 0])
        with pytest.raises(InvalidInput, match="confidence"):
            audit.statistical(mechanism, [0, 0], [1, 0], confidence=1.0)
        with pytest.raises(InvalidInput, match="samples"):
            audit.statistical(mechanism, [0, 0], [1, 0], samples=10)
        with pytest.raises(InvalidInput, match="finite"):
            audit.statistical(lambda x: x * math.nan, [0, 0], [1, 0])


class TestSupport:
    def test_no_candidate_is_excluded_by_a_report_of_ours(self):
        mechanism = PlanarLaplace(Epsilon(EPS))
        secrets = np.random.default_rng(2).uniform(-500, 500, (100_000, 2))
        reports = mechanism.report(secrets)
        assert audit.support(mechanism, reports, secrets + ONE_METRE).excluded == 0
        assert audit.support(mechanism, reports, secrets).excluded == 0

    def test_the_textbook_excludes_almost_all(self):
        naive = audit.TextbookPlanarLaplace(Epsilon(EPS))
        secrets = np.zeros((1000, 2))
        reports = naive.sample(secrets, np.random.default_rng(3))
        assert audit.support(naive, reports, secrets).excluded == 0, "the truth is never excluded"
        assert audit.support(naive, reports, secrets + ONE_METRE).excluded > 900

    def test_a_far_report_still_has_a_witness(self):
        mechanism = PlanarLaplace(Epsilon(EPS))
        assert mechanism.reaches(np.array([[12_000.0, 5_000.0]]), np.zeros((1, 2))).all()

    def test_a_place_off_the_lattice_is_excluded(self):
        mechanism = PlanarLaplace(Epsilon(EPS), resolution="100 m")
        reports = np.array([[300.0, 400.0], [300.5, 400.0], [3.4, 7.77]])
        assert mechanism.reaches(reports, np.zeros((3, 2))).tolist() == [True, False, False]

    def test_other_samplers_are_refused(self):
        with pytest.raises(InvalidInput, match="reaches"):
            audit.support(GlobeLaplace(Epsilon(EPS)), [[0, 0]], [[0, 0]])
