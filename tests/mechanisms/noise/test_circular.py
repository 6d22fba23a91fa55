from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.base import HasDensity, Mechanism
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.optimal_circular import OptimalCircular, laplace_within
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.guarantee import Basis
from whereish.privacy.norms import Euclidean
from whereish.randomness import SeededRandomness
from whereish.sampling.lazy_uniform import DECIDED, REJECTED, LazyUniform
from whereish.sampling.words import fraction
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.loss import Loss
from whereish.space.box import Box
from whereish.space.plane import Plane

from laws import lattice_p_value

LOCATION = Distinguishability.location("1 km", 1.0)
TABLE = (np.array([0.0, 40, 100, 150, 300]), np.array([1, 0.8, 0.9, 0.3, 0.1]))
SECRET = np.array([3.3, -4.1])


def table_noise(**options):
    return CircularNoise(TABLE, **{"resolution": "7 m", **options})


def disk_noise():
    radial = LogLinear(np.array([0.0, 100.0]), np.zeros(1), np.zeros(1))
    return CircularNoise(radial, keeps=Distinguishability.unlimited(), resolution="5 m")


def rising_noise():
    """Steeply rising and falling pieces: every kind of proposal."""
    edges = np.array([0.0, 30, 60, 90, 200, np.inf])
    left = np.array([-3.0, 0.0, -2.0, -6.0, -1.0])
    right = np.array([0.0, -4.0, -2.0, -1.0, 0.0])
    radial = LogLinear(edges, left, right, 0.05)
    return CircularNoise(radial, keeps=Distinguishability.location("1 m", 5.0), resolution="5 m")


def optimal_noise():
    return OptimalCircular(LOCATION, resolution="60 m")


@pytest.mark.parametrize(
    ("build", "block", "reach"),
    [(table_noise, 4, 15), (disk_noise, 1, 25), (rising_noise, 1, 50), (optimal_noise, 2, 35)],
)
def test_the_sampled_law_is_the_stated_law(build, block, reach):
    noise = build()
    cells = noise.cells(np.tile(SECRET, (300_000, 1)), rng=SeededRandomness(11))

    def p_value(factor):
        return lattice_p_value(
            cells,
            SECRET,
            lambda r: noise.radial.survival(factor * r),
            step=noise.resolution,
            block=block,
            reach=reach,
        )

    assert p_value(1.0) > 1e-3
    assert p_value(1.04) < 1e-6  # a law 4% narrower


@pytest.mark.parametrize("build", [table_noise, disk_noise, rising_noise, optimal_noise])
def test_the_kernel_agrees_with_ball_arithmetic(build):
    noise = build()
    secrets = np.random.default_rng(3).uniform(-1e5, 1e5, (1000, 2))
    fast = noise.cells(secrets, rng=SeededRandomness(5))
    balls = noise.cells(secrets, rng=SeededRandomness(5), balls_only=True)
    np.testing.assert_array_equal(fast, balls)


def test_a_fine_lattice_sends_the_undecided_to_balls():
    """At a step of a nanometre most cells are not certain in doubles, and still come out."""
    noise = table_noise(resolution="0.000001 mm")
    secrets = np.random.default_rng(3).uniform(-1e4, 1e4, (50, 2))
    fast = noise.cells(secrets, rng=SeededRandomness(6))
    balls = noise.cells(secrets, rng=SeededRandomness(6), balls_only=True)
    np.testing.assert_array_equal(fast, balls)


@pytest.mark.parametrize("build", [table_noise, disk_noise, rising_noise], ids=lambda f: f.__name__)
@pytest.mark.parametrize("word", [2**64 - 1, 2**64 - 2**10, 2**64 - 2**11, 0, 2**11 - 1])
def test_a_uniform_of_one_stays_within_the_tables(build, word):
    """Fault 9: the last midpoint rounded to 1.0, an index beyond the guide table."""
    assert 0 < fraction(np.uint64(word), 0) < 1
    noise, middle = build(), 0x9E3779B97F4A7C15
    for words in ([word, middle, 1, middle], [middle, word, 1, middle], [word] * 4):
        cells, state = np.empty((1, 2), np.int64), np.empty(1, np.uint8)
        noise._fast(np.array(words, np.uint64), np.zeros((1, 2)), cells, state)
        uniforms = [LazyUniform(w) for w in words]
        cell = noise._decide(uniforms, np.zeros(2), SeededRandomness(1))
        if state[0] == DECIDED:
            assert cell == cells[0].tolist()
        elif state[0] == REJECTED:
            assert cell is None


def test_a_lattice_too_fine_for_the_radial_is_refused():
    """Fault 9: there was no check, and epsilon, which is no parameter here, was blamed."""
    tail = LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 1e-5)
    for radial, step in ((TABLE, "1e-10 mm"), (tail, "1e-6 mm")):
        with pytest.raises(InvalidInput, match=r"resolution must be at least .* reaches") as told:
            CircularNoise(radial, resolution=step)
        assert "epsilon" not in str(told.value)
    assert len(CircularNoise(tail, resolution="1e-5 mm").report(np.zeros((3, 2)))) == 3


def test_one_piece_is_planar_laplace():
    radial = LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 0.01)
    noise, laplace = CircularNoise(radial), PlanarLaplace("0.01/m")
    x = np.zeros((5, 2))
    z = np.random.default_rng(1).normal(0, 300, (5, 2))
    np.testing.assert_allclose(noise.log_density(z, x), laplace.log_density(z, x), rtol=1e-12)
    assert noise.mean_error.m == pytest.approx(200)
    assert noise.quantile(0.9).m == pytest.approx(laplace.quantile(0.9).m)
    assert noise.tail("500 m") == pytest.approx(1 - laplace.cdf("500 m"), rel=1e-9)
    assert noise.expected_loss(Loss.power(2)) == pytest.approx(6e4)
    assert noise.expected_loss(lambda r: r) == pytest.approx(200)


def test_it_is_a_mechanism_with_a_density_and_a_certificate():
    noise = table_noise()
    assert isinstance(noise, Mechanism)
    assert isinstance(noise, HasDensity)
    assert noise.guarantee.basis is Basis.CERTIFIED
    # The steepest slope: 0.9 to 0.3 within 50 m.
    assert noise.guarantee.metric.ratio_to(Euclidean()) == pytest.approx(math.log(3) / 50)
    reports = noise.report(np.zeros((4, 2)), rng=SeededRandomness(1))
    assert reports.reproducible
    assert reports.coordinates.shape == (4, 2)


def test_a_callable_needs_its_reach_and_is_then_the_same_as_its_table():
    with pytest.raises(InvalidInput, match="reach"):
        CircularNoise(lambda r: math.exp(-r / 100))
    noise = CircularNoise(lambda r: math.exp(-r / 100), reach="2 km")
    assert noise.mean_error.m == pytest.approx(200)
    heavy = CircularNoise(lambda r: math.exp(-math.sqrt(1 + r / 10)), reach="20 km")
    assert heavy.tail("5 km") > 1e-7


def test_two_sided_what_is_kept_and_what_is_refused():
    noise = OptimalCircular(LOCATION)
    laplace = laplace_within(LOCATION)
    for mechanism in (noise, laplace):
        assert mechanism.certificate.holds
        assert mechanism.certified(LOCATION.scaled(0.99)).refuted
        with pytest.raises(NotPrivate, match="does not keep"):
            CircularNoise(mechanism.radial, keeps=LOCATION.scaled(0.99))
    with pytest.raises(NotPrivate, match="does not keep"):
        table_noise(keeps=Distinguishability.linear("0.02/m"))
    assert table_noise(keeps=Distinguishability.linear("0.022/m")).certificate.holds


def test_density_ratios_stay_within_the_promise():
    noise = optimal_noise()
    rng = np.random.default_rng(8)
    z = rng.uniform(-6e3, 6e3, (20_000, 2))
    x = rng.uniform(-2e3, 2e3, (20_000, 2))
    y = x + rng.normal(0, 500, x.shape)
    difference = noise.log_density(z, x) - noise.log_density(z, y)
    assert (difference <= noise.guarantee.metric(x, y) + 1e-9).all()
    assert difference.max() > 0.99


def test_the_optimum_states_its_gap_and_gain():
    noise = OptimalCircular(LOCATION)
    assert noise.lower_bound <= noise.loss_value
    assert 0 <= noise.gap < 1e-3
    assert noise.loss_value == pytest.approx(noise.mean_error.m)
    assert noise.loss_value < 0.995 * laplace_within(LOCATION).mean_error.m
    bounded = OptimalCircular(LOCATION, bound=5e-8, tail={"4 km": 0.2})
    assert bounded.radial.peak <= 5e-8
    assert bounded.tail("4 km") <= 0.2


def test_a_projection_is_charged():
    plane = Plane.projected("EPSG:32618", Box(-75, 40, -70, 41))
    assert plane.scale > 1
    noise = OptimalCircular(LOCATION, plane=plane)
    assert noise.keeps(1000 * plane.scale) == 1.0
    assert noise.loss_value > OptimalCircular(LOCATION).loss_value


def test_jumps_need_a_promise_that_allows_them():
    edges = np.array([0.0, 10, np.inf])
    radial = LogLinear(edges, np.array([0.0, -1.0]), np.array([0.0, 0.0]), 0.1)
    with pytest.raises(InvalidInput, match="keeps="):
        CircularNoise(radial)
    assert CircularNoise(radial, keeps=Distinguishability.location("1 m", 1.2)).certificate.holds


@pytest.mark.parametrize(
    ("radial", "message"),
    [
        (([0, 1], [1, 1]), "does not integrate"),
        (([0, 1], [1, math.nan]), "finite"),
        (([0, 1, 2],), "two rows"),
    ],
)
def test_what_is_no_radial_says_why(radial, message):
    with pytest.raises(InvalidInput, match=message):
        CircularNoise(radial)


def test_laplace_within_needs_a_finite_slope():
    for promise in (Distinguishability.capped("1/km", 1.0), Distinguishability.unlimited()):
        with pytest.raises(InvalidInput, match="planar Laplace"):
            laplace_within(promise)


def test_a_radial_that_jumps_is_advised_what_circular_noise_takes():
    with pytest.raises(
        InvalidInput, match=r"a table \(radii, values\) or as a LogLinear"
    ) as caught:
        CircularNoise(lambda r: 1.0 + (r < 33.3), reach="100 m")
    assert "tolerance" not in str(caught.value), "it has no such parameter"


def test_radii_that_only_round_to_an_edge_are_compared_too():
    """3000 + 333.3 rounds to the edge 3333.3, whose true distance is a little larger."""
    apart = 333.3
    law = LogLinear(
        np.array([0, 3000.0, 3333.3, np.inf]),
        np.array([0, 0.0, -40.0]),
        np.array([0, -40.0, -np.inf]),
        0.5 / apart * 0.99,
    )
    with pytest.raises(NotPrivate):
        CircularNoise(law, keeps=Distinguishability.location("333.3 m", 0.5))
