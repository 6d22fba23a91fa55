"""The private test: its law, its guarantee on both sides, its exactness."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from whereish.errors import InvalidInput
from whereish.mechanisms.traces.noisy_test import NoisyTest, distance_ball, level_on
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane, Sphere
from whereish.space.sphere import great_circle_m
from whereish.units import Epsilon, Length

EPS = Epsilon(0.01)


def asked(space=None, eps=EPS, threshold=300.0) -> NoisyTest:
    return NoisyTest(eps, Length(threshold), space or Plane.metres())


class Words:
    """A source that gives these words first, then random ones."""

    reproducible = True

    def __init__(self, *first: int) -> None:
        self.first, self.rest, self.drawn = list(first), SeededRandomness(3), 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        head = [self.first.pop(0) for _ in range(min(count, len(self.first)))]
        tail = self.rest.words(count - len(head))
        return np.concatenate([np.array(head, np.uint64), tail])


@pytest.mark.parametrize("distance", [0.0, 150.0, 300.0, 450.0])
def test_the_answer_has_the_laplace_law(distance, rng):
    n, mechanism = 20_000, asked()
    yes = sum(mechanism.holds([distance, 0.0], [0.0, 0.0], rng=rng) for _ in range(n))
    chance = mechanism.chance(Length(distance))
    sigma = math.sqrt(chance * (1 - chance) / n)
    assert abs(yes / n - chance) < 5 * sigma
    off = NoisyTest(EPS * 1.25, mechanism.threshold, mechanism.space).chance(Length(distance))
    if distance != 300.0:  # at the threshold every scale answers with a fair coin
        assert abs(yes / n - off) > 5 * sigma


def test_both_answers_keep_the_metric_and_less_is_refuted():
    mechanism = asked()
    places = np.linspace(0, 900, 181)
    yes = np.array([mechanism.chance(Length(d)) for d in places])
    apart = np.abs(places[:, None] - places[None])
    off = apart > 0
    ratios = [np.log(p[:, None] / p[None])[off] / apart[off] for p in (yes, 1 - yes)]
    largest = max(float(r.max()) for r in ratios)
    promised = mechanism.guarantee.metric.factor
    assert largest <= promised * (1 + 1e-9)
    assert largest > 0.99 * promised


def test_undecided_answers_draw_more_bits():
    # The secret is the guess and the threshold t: yes iff N >= -t.  A negative N is
    # ln U / eps, so U = e^(-eps t) is the border; 63 bits of it cannot tell.
    border = int(math.exp(-3.0) * 2**63)
    sources = [Words((1 << 63) | word) for word in (border - 4000, border, border + 4000)]
    answers = [asked(threshold=300.0).holds([0, 0], [0, 0], rng=s) for s in sources]
    assert answers[0] is False
    assert answers[2] is True
    zero = Words(1 << 63)  # U begins with 63 zeros: ln U is not known at all yet
    assert asked().holds([0, 0], [0, 0], rng=zero) is False
    assert zero.drawn > 1


def test_distances_are_enclosed():
    generator = np.random.default_rng(5)
    x = np.column_stack([generator.uniform(-180, 180, 200), generator.uniform(-90, 90, 200)])
    y = np.column_stack([generator.uniform(-180, 180, 200), generator.uniform(-90, 90, 200)])
    y[:50] = x[:50] + generator.normal(0, 1e-4, (50, 2))
    y[50] = x[50]
    y[51] = [x[51, 0] + 180, -x[51, 1]]
    y[:, 1] = np.clip(y[:, 1], -90, 90)
    x[52], y[52] = [0, 90], [77, 90]
    with ctx.workprec(200):
        balls = [distance_ball(Sphere(), a, b) for a, b in zip(x, y, strict=True)]
        assert all(ball.is_finite() for ball in balls)
        assert max(float(ball.rad()) for ball in balls) < 1e-20
    middles = np.array([float(ball.mid()) for ball in balls])
    np.testing.assert_allclose(middles, great_circle_m(x, y), rtol=1e-9, atol=1e-6)
    assert middles[50] == 0
    with ctx.workprec(200):
        assert distance_ball(Plane.metres(), np.array([0.0, 3.0]), np.array([4.0, 0.0])) == 5


def test_a_stretching_plane_is_charged():
    plane = Plane.projected("EPSG:2154", Box(1, 47, 4, 50))
    mechanism = asked(plane)
    assert mechanism.level < EPS.per_m
    assert mechanism.level * plane.scale <= EPS.per_m
    assert level_on(Sphere(), EPS) == EPS.per_m


def test_level_on_a_plane_is_rounded_down():
    """Rounded up, or to the nearest, the noise would keep more than eps in true metres."""
    plane = Plane.around(2.35, 48.85, "30 km")
    assert plane.scale != 1.0
    for per_m in np.random.default_rng(4).uniform(1e-4, 1, 200):
        level = level_on(plane, Epsilon(float(per_m)))
        assert Fraction(level) * Fraction(plane.scale) <= Fraction(float(per_m))
        assert level == pytest.approx(per_m / plane.scale, rel=1e-14)


def test_a_secret_outside_the_region_is_refused():
    plane = Plane.around(2.35, 48.85, "1 km")
    test = NoisyTest(Epsilon(0.01), Length(100.0), plane)
    with pytest.raises(InvalidInput, match="declared region"):
        test.holds([6_000.0, 0.0], [0.0, 0.0])


def test_a_stretching_plane_is_charged_in_every_answer():
    """Yes iff U >= e^(-eps t / k): a U between that and e^(-eps t) tells the two levels apart."""
    plane = Plane.projected("EPSG:3857", Box(2, 48.5, 2.6, 49.1))
    assert plane.scale > 1.4
    place = plane.from_degrees([2.3], [48.8])
    uniform = int(math.exp(-3.0 / 1.2) * 2**63)
    word = (1 << 63) | uniform
    assert asked(plane).holds(place, place, rng=Words(word)) is False
    assert asked().holds([0, 0], [0, 0], rng=Words(word)) is True


def test_bad_input_is_refused_without_repeating_it():
    with pytest.raises(InvalidInput, match="one secret and one guess"):
        asked().holds([[1, 2], [3, 4]], [0, 0])
    with pytest.raises(InvalidInput, match="finite") as caught:
        asked().holds([48.85412, math.nan], [0, 0])
    assert "48.85" not in str(caught.value)
    with pytest.raises(InvalidInput, match="threshold"):
        NoisyTest(EPS, Length(0), Sphere())
    with pytest.raises(InvalidInput, match="Plane or the Sphere"):
        NoisyTest(EPS, Length(1), "plane")  # type: ignore[arg-type]
