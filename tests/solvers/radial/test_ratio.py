from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.log_linear import LogLinear, from_callable, from_table
from whereish.solvers.radial.ratio import largest_radial_ratio

LAPLACE = LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 1e-3)


def pieces():
    """A radial with a jump, a rise, a flat piece and a tail."""
    edges = np.array([0, 300, 800, 2000, np.inf])
    return LogLinear(
        edges, np.array([0.0, -0.5, -0.2, -1.0]), np.array([-0.4, -0.2, -0.2, 0.0]), 0.002
    )


def test_the_one_piece_radial_is_planar_laplace():
    assert LAPLACE.peak == pytest.approx(1e-6 / (2 * math.pi))
    r = np.array([0.0, 1e3, 5e3, 4e4])
    np.testing.assert_allclose(LAPLACE.survival(r), (1 + r / 1e3) * np.exp(-r / 1e3), rtol=1e-12)
    assert LAPLACE.expectation(lambda r: r) == pytest.approx(2000, rel=1e-12)
    assert LAPLACE.expectation(lambda r: r**2) == pytest.approx(6e6, rel=1e-12)
    beyond = LAPLACE.expectation(lambda r: 1.0 * (r > 1500), cuts=[1500])
    assert beyond == pytest.approx(2.5 * math.exp(-1.5), rel=1e-12)


def test_splitting_a_piece_changes_nothing():
    r = np.array([0.0, 130.0, 1000.0, 7000.0])
    split = from_table(r, np.exp(-r / 1e3))
    at = np.linspace(0, 2e4, 57)
    np.testing.assert_allclose(split.survival(at), LAPLACE.survival(at), rtol=1e-12)
    np.testing.assert_allclose(split.log_density(at), LAPLACE.log_density(at), atol=1e-12)


def test_masses_are_the_integral_of_the_density():
    from scipy.integrate import quad

    radial = pieces()

    def density(r):
        return 2 * math.pi * r * math.exp(float(radial.log_density(r)))

    for a, b in [(0, 300), (100, 250), (300, 800), (900, 1500), (2000, 4000)]:
        wanted = quad(density, a, b, epsabs=0, epsrel=1e-12)[0]
        got = float(radial.survival(a) - radial.survival(b))
        assert got == pytest.approx(wanted, rel=1e-9)
    assert float(radial.survival(0.0)) == 1.0


@given(st.floats(0.0, 0.999999))
def test_quantile_inverts_the_survival(chance):
    radial = pieces()
    assert float(radial.survival(radial.quantile(chance))) == pytest.approx(1 - chance, abs=1e-12)


def test_a_disk_is_a_radial_too():
    disk = LogLinear(np.array([0.0, 10.0]), np.zeros(1), np.zeros(1))
    assert disk.peak == pytest.approx(1 / (100 * math.pi))
    assert disk.expectation(lambda r: r) == pytest.approx(20 / 3)
    assert disk.survival([5.0, 10.0, 11.0]).tolist() == pytest.approx([0.75, 0, 0])
    assert disk.log_density(11.0) == -math.inf
    assert disk.quantile(0.25) == pytest.approx(5.0)


def test_a_callable_is_interpolated_within_its_tolerance():
    radial = from_callable(lambda r: math.exp(-((r / 500) ** 2)), reach=3000, tolerance=1e-3)
    r = np.linspace(0, 2900, 777)
    off = radial.log_density(r) - radial.log_density(0.0) + (r / 500) ** 2
    assert np.abs(off).max() < 2e-3
    assert radial.slope > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_table([0, 1], [1, 1]), "does not integrate"),
        (lambda: from_table([0, 1], [1, 2]), "does not integrate"),
        (lambda: from_callable(lambda r: 1.0, reach=100), "does not integrate"),
        (lambda: from_table([0, 1], [1, 0]), "> 0"),
        (lambda: from_table([0, 1], [1, math.nan]), "finite"),
        (lambda: from_table([1, 2], [1, 0.5]), "first radius 0"),
        (lambda: from_callable(lambda r: 1 - r / 50, reach=100), "> 0"),
        (lambda: from_callable(lambda r: 1.0 + (r < 33.3), reach=100), "does it jump"),
        (lambda: from_callable(math.exp, reach=-1), "reach"),
        (lambda: LogLinear(np.array([0, 2, 1]), np.zeros(2), np.zeros(2)), "increase"),
    ],
)
def test_what_is_no_radial_says_why(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


# -- the certificate --------------------------------------------------------------


def staircase(first, width, level, count):
    """Steps of `width` and `level` after a disk of radius `first`, then an even slope."""
    edges = np.concatenate([[0.0], first + width * np.arange(count), [np.inf]])
    left = -level * np.arange(count + 1.0)
    return LogLinear(edges, left, np.append(left[:-1], -np.inf), level / width)


def test_planar_laplace_keeps_its_epsilon_exactly():
    assert largest_radial_ratio(LAPLACE, Distinguishability.linear("1/km").arrays).upper == 1.0
    below = largest_radial_ratio(LAPLACE, Distinguishability.linear("0.99/km").arrays)
    assert below.refuted
    assert below.lower == pytest.approx(1 / 0.99)


def test_a_staircase_keeps_its_level_up_to_the_exact_width():
    steps = staircase(0.25, 1.0, 0.5, 8)
    # Without the last steps and with a gentle tail no two steps lie within one metre.
    edges, left, right = np.append(steps.edges[:8], np.inf), steps.left[:8], steps.right[:8]
    radial = LogLinear(edges, left, right, 1e-9)
    kept = largest_radial_ratio(radial, Distinguishability.location("1 m", 0.5 + 1e-8).arrays)
    assert kept.holds
    assert kept.lower > 1 - 1e-6
    # A little farther than one step, two can be crossed.
    beyond = largest_radial_ratio(radial, Distinguishability.location("1.0001 m", 0.5).arrays)
    assert beyond.lower == pytest.approx(2.0)


def test_a_jump_breaks_every_promise_that_is_continuous_at_zero():
    radial = staircase(0.25, 1.0, 0.5, 8)
    assert largest_radial_ratio(radial, Distinguishability.linear("100/m").arrays).lower == math.inf
    disk = LogLinear(np.array([0.0, 10.0]), np.zeros(1), np.zeros(1))
    assert largest_radial_ratio(disk, Distinguishability.location("1 m", 9.0).arrays).refuted


def test_a_tail_must_not_outrun_the_promise():
    for function in (
        Distinguishability.capped("1/km", 3.0),
        Distinguishability.square_root(1.0, "1 km"),
    ):
        assert largest_radial_ratio(LAPLACE, function.arrays).lower == math.inf


PROMISES = [
    Distinguishability.linear("1/km"),
    Distinguishability.location("1 km", 1.0),
    Distinguishability.stairs("700 m", 0.5, base=0.3),
    Distinguishability.square_root(2.0, "1 km").restricted("5 km"),
    Distinguishability.table([0, 500, 2000], [0.1, 1, 2], beyond="unlimited"),
]


@settings(max_examples=40)
@given(
    st.sampled_from(PROMISES),
    st.lists(st.tuples(st.floats(10, 2000), st.floats(-0.5, 0.5)), min_size=1, max_size=6),
    st.floats(0, 0.2),
    st.integers(0, 2**32 - 1),
)
def test_the_enclosure_holds_every_pair_and_is_attained(promise, steps, jump, seed):
    """Brute force over a fine grid of pairs stays below `upper` and comes close to `lower`."""
    edges = np.concatenate([[0.0], np.cumsum([w for w, _ in steps]), [np.inf]])
    ends = np.cumsum([0.0, *(d for _, d in steps)])
    right = np.append(ends[1:], -np.inf)
    left = ends - jump * np.arange(len(ends))
    right[:-1] -= jump * np.arange(len(ends) - 1)
    radial = LogLinear(edges, left, right, 3e-4)
    found = largest_radial_ratio(radial, promise.arrays)
    assert found.lower <= found.upper
    rng = np.random.default_rng(seed)
    inner = edges[1:-1]
    r = np.concatenate(
        [np.linspace(0, 1.2 * inner[-1] + 6000, 700), inner - 1e-2, inner + 1e-2,
         rng.uniform(0, inner[-1] + 6000, 100)]
    )  # fmt: skip
    starts = np.asarray(promise.starts)
    near = (inner[:, None] + np.concatenate([starts, -starts]) * (1 - 1e-9)).ravel()
    r = np.concatenate([r, near[near >= 0][:400]])
    # Beside the pair that is said to be the worst, on both sides of what jumps there.
    beside = np.add.outer(np.array(found.worst), [0.0, 5e-3, -5e-3, 1e-2, -1e-2, 2e-2]).ravel()
    r = np.concatenate([r, beside[np.isfinite(beside) & (beside >= 0)]])
    g = radial.log_density(r)
    d = np.abs(r[:, None] - r)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(d > 0, np.abs(g[:, None] - g) / promise(d), 0.0)
    # A pair 1e-9 apart has lost half its digits to the subtraction of logarithms.
    ratios = ratios[d > 1e-3]
    assert ratios.max() <= found.upper * (1 + 1e-6)
    if math.isfinite(found.lower):
        assert ratios.max() >= 0.98 * found.lower


def test_the_enclosure_is_one_to_the_last_bit():
    """A fall by x within w, against l = a + b d: the largest ratio is x / (a + b w) exactly."""
    rng = np.random.default_rng(12)
    for x, w, a, b in rng.uniform(0.5, 2.0, (400, 4)):
        radial = LogLinear(
            np.array([0.0, w, np.inf]), np.array([0.0, -x]), np.array([-x, 0.0]), 1e-9
        )
        promise = Distinguishability((0.0, 8.0), (a, math.inf), (b, 0.0))
        found = largest_radial_ratio(radial, promise.arrays)
        truth = Fraction(x) / (Fraction(a) + Fraction(b) * Fraction(w))
        assert Fraction(found.lower) <= truth <= Fraction(found.upper)
        assert found.upper < float(truth) * (1 + 1e-12)


@pytest.mark.parametrize("width", [0.7, 1.0, 300.0])
def test_a_fall_over_exactly_the_reach_of_a_promise_counts(width):
    """Just below the jump of l the lower value holds, and the whole fall lies within it."""
    radial = LogLinear(
        np.array([0.0, width, np.inf]), np.array([0.0, -0.8]), np.array([-0.8, 0.0]), 1e-9
    )
    found = largest_radial_ratio(
        radial, Distinguishability((0.0, width), (0.5, math.inf), (0.0, 0.0)).arrays
    )
    assert found.lower == pytest.approx(1.6)
    assert found.upper == pytest.approx(1.6)
