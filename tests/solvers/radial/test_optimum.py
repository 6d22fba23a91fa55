"""The optimal radial against closed forms, with a proven gap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from whereish.errors import InvalidInput
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.node_lp import closure, essential_offsets, hat_moments
from whereish.solvers.radial.optimum import optimal_radial

LINEAR = Distinguishability.linear("1/km")


@pytest.mark.parametrize(
    ("loss", "exact"),
    [
        (Loss.power(1), 2e3),
        (Loss.power(2), 6e6),
        (Loss.threshold("1.5 km"), 2.5 * math.exp(-1.5)),
        (Loss.of(lambda r: r), 2e3),
    ],
    ids=["distance", "square", "threshold", "callable"],
)
def test_theorem_9_planar_laplace_is_optimal_for_linear_l(loss, exact):
    found = optimal_radial(LINEAR, loss)
    assert found.loss == pytest.approx(exact, rel=1e-6)
    assert found.lower_bound <= exact
    assert found.gap < 1e-3
    assert found.ratio.holds
    # It is the radial eps^2 / (2 pi) exp(-eps r), not only its loss.
    r = np.linspace(0, 2e4, 101)
    laplace = math.log(1e-6 / (2 * math.pi)) - r / 1e3
    np.testing.assert_allclose(found.radial.log_density(r), laplace, atol=1e-6)


def staircase_loss(level, first):
    """Mean distance, in units of D, of steps at first + k with ln R falling by `level`."""
    edges = np.concatenate([[0.0], first + np.arange(400)])
    weights = np.exp(-level * np.arange(400))
    mass = (weights * np.diff(edges**2) / 2).sum()
    return (weights * np.diff(edges**3) / 3).sum() / mass


@pytest.mark.parametrize("level", [0.5, 1.0, 2.0])
def test_location_privacy_has_a_staircase_optimum(level):
    promise = Distinguishability.location("1 km", level)
    found = optimal_radial(promise, Loss.power(1))
    best = minimize_scalar(lambda b: staircase_loss(level, b), bounds=(0, 1), method="bounded")
    assert found.gap < 1e-3
    assert found.lower_bound <= 1e3 * best.fun <= found.loss * (1 + 1e-9)
    # Strictly better than the planar Laplace that keeps the same promise, eps = level / D.
    assert found.loss < 0.9995 * 2e3 / level
    # Two-sided: 1% less is refused.
    assert found.ratio.holds
    from whereish.solvers.radial.ratio import largest_radial_ratio

    assert largest_radial_ratio(found.radial, promise.scaled(0.99).arrays).refuted


def test_a_bound_on_the_density_flattens_the_top():
    bound = 1e-6 / (8 * math.pi)  # a quarter of planar Laplace's peak
    found = optimal_radial(LINEAR, Loss.power(1), bound=bound)
    # Flat to r0, then exponential: r0^2 / 2 + r0 + 1 = 4 in kilometres.
    r0 = math.sqrt(7) - 1
    exact = 1e3 * (r0**3 / 3 + r0**2 + 2 * r0 + 2) / 4
    assert found.loss == pytest.approx(exact, rel=1e-4)
    assert found.lower_bound <= exact
    assert found.gap < 1e-3
    assert found.radial.peak <= bound
    # A bound that does not bind changes nothing.
    assert optimal_radial(LINEAR, Loss.power(1), bound=1e-3).loss == pytest.approx(2e3)


def test_a_tail_limit_binds_where_the_loss_does_not_care():
    """Mass near the origin is all this loss sees; the tail limit costs it something."""
    promise = Distinguishability.location("1 km", 1.0)
    near = Loss.threshold("300 m")
    free = optimal_radial(promise, near)
    q = 1500.0
    least = optimal_radial(promise, Loss.threshold("1.5 km")).loss
    limit = (least + float(free.radial.survival(q))) / 2
    assert limit < float(free.radial.survival(q))
    tight = optimal_radial(promise, near, tail=((q, limit),))
    assert float(tight.radial.survival(q)) <= limit
    assert tight.lower_bound > free.lower_bound
    assert tight.loss > free.loss
    assert tight.gap < 0.01


def test_a_single_point_region_has_the_uniform_disk():
    bound = 1e-6
    found = optimal_radial(Distinguishability.unlimited(), Loss.power(1), bound=bound)
    assert found.loss == pytest.approx(2 / 3 / math.sqrt(math.pi * bound), rel=1e-12)
    assert found.gap == 0.0
    assert found.radial.peak == pytest.approx(bound)


@pytest.mark.parametrize(
    "promise",
    [
        Distinguishability.stairs("1 km", 0.5, base=0.5),
        Distinguishability.capped("1/km", 3.0).restricted("10 km"),
        Distinguishability.table([0, 1000, 2000], [0, 1, 3], beyond="linear"),
        LINEAR.restricted("5 km"),
    ],
    ids=str,
)
def test_other_promises_are_solved_and_certified(promise):
    found = optimal_radial(promise, Loss.power(1))
    assert found.ratio.holds
    assert found.lower_bound <= found.loss
    assert found.gap < 2e-3


def test_more_promise_costs_more():
    losses = [
        optimal_radial(Distinguishability.location("1 km", level), Loss.power(1))
        for level in (2.0, 1.8)
    ]
    assert losses[1].lower_bound > losses[0].loss


@pytest.mark.parametrize(
    ("promise", "options", "message"),
    [
        (Distinguishability.capped("1/km", 2.0), {}, "grows more slowly"),
        (Distinguishability.square_root(1.0, "1 km"), {}, "grows more slowly"),
        (Distinguishability.table([0, 10, 20], [0, 0, 1], beyond="linear"), {}, "by chains"),
        (Distinguishability.unlimited(), {}, "give a bound M"),
        (Distinguishability.unlimited(), {"bound": 1e-6, "tail": ((500.0, 0.1),)}, "0.2146"),
        (LINEAR, {"tail": ((3000.0, 0.15),)}, "least possible is 0.19914"),
        (LINEAR, {"bound": 1e-8, "tail": ((1000.0, 0.1),)}, "density at most 1e-08 per m²"),
        (LINEAR, {"bound": -1.0}, "bound M must be > 0"),
        (LINEAR, {"bound": math.nan}, "bound M must be > 0"),
        (LINEAR, {"tail": ((1000.0, 1.5),)}, "probability"),
    ],
)
def test_infeasible_limits_say_why(promise, options, message):
    with pytest.raises(InvalidInput, match=message):
        optimal_radial(promise, Loss.power(1), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loss.power(-1), "exponent"),
        (lambda: Loss.of(lambda r: -r), "must not decrease"),
        (lambda: Loss.of(lambda r: 1.0), "constant"),
        (lambda: Loss.of(lambda r: r * math.nan), "a number"),
    ],
)
def test_what_is_no_loss_says_why(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@given(st.lists(st.floats(0.01, 5), min_size=2, max_size=30))
def test_the_closure_is_the_largest_subadditive_minorant(increments):
    levels = np.concatenate([[0.0], np.maximum.accumulate(increments)])
    hull = closure(levels)
    assert (hull <= levels).all()
    for a in range(1, len(hull)):
        for b in range(1, len(hull) - a):
            assert hull[a + b] <= (hull[a] + hull[b]) * (1 + 1e-12)
    # The essential offsets alone, chained and with monotony, give the closure back.
    offsets, steps = essential_offsets(levels)
    chained = np.full(len(levels), np.inf)
    chained[0] = 0.0
    reached = np.array([min([s for o, s in zip(offsets, steps, strict=True) if o >= k],
                            default=math.inf) for k in range(len(levels))])  # fmt: skip
    for k in range(1, len(levels)):
        chained[k] = min(reached[a] + chained[k - a] for a in range(1, k + 1))
    np.testing.assert_allclose(chained, hull, rtol=1e-9)


def test_hat_moments_add_up():
    nodes = np.array([0.0, 1.0, 2.5, 4.0])
    moments = hat_moments(nodes, lambda r: r * (r > 1.7), [1.7])
    assert moments.sum() == pytest.approx((16 - 1.7**2) / 2)
    assert moments @ nodes == pytest.approx((64 - 1.7**3) / 3)
