"""Theorem 8 for losses that fall, empty spaces, two lattice steps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.grid_remap import lattice_remap
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial import any_loss
from whereish.solvers.radial.any_loss import optimal_radial_any
from whereish.solvers.radial.log_linear import LogLinear, from_table
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.optimum import optimal_radial
from whereish.solvers.radial.ratio import largest_radial_ratio


def forgiving(r):
    return np.where((r >= 100) & (r <= 200), 0.0, r)


FORGIVING = Loss.piecewise(forgiving, cuts=(100.0, 200.0), text="100 to 200 m are forgiven")


def cell_programme(eps: float, h: float, reach: float) -> float:
    """The least loss of radials that are constant on cells of width h and change by e^{eps h}.

    Another discretisation than the solver's (steps instead of exponentials, no tail): it tends to
    the same value as h falls.
    """
    r = h * (np.arange(int(reach / h)) + 0.5)
    weight = 2 * math.pi * r * h
    fine = (r[:, None] + h * (np.arange(8) - 3.5) / 8).clip(0)
    cost = weight * forgiving(fine).mean(axis=1)
    n, factor = len(r), math.exp(eps * h)
    up = np.eye(n, k=0)[:-1] - factor * np.eye(n, k=1)[:-1]
    down = np.eye(n, k=1)[:-1] - factor * np.eye(n, k=0)[:-1]
    scale = np.exp(-eps * np.abs(r - 150))
    found = linprog(
        cost * scale,
        A_ub=np.vstack([up, down]) * scale,
        b_ub=np.zeros(2 * n - 2),
        A_eq=(weight * scale)[None],
        b_eq=[1.0],
        method="highs",
    )
    return float(found.fun)


@pytest.mark.parametrize("eps", [0.03, 0.1])
def test_a_loss_that_forgives_100_to_200_m(eps):
    ell = Distinguishability.linear(f"{eps}/m")
    found = optimal_radial_any(ell, FORGIVING)
    assert found.ratio.holds
    assert found.gap < 5e-3
    assert found.loss == pytest.approx(cell_programme(eps, 2.5, 900), rel=0.02)
    # The radial rises towards the forgiven ring, and saves much over planar Laplace noise.
    logs = found.radial.log_density([60.0, 110.0, 150.0])
    assert logs[0] < logs[1] < logs[2] or eps == 0.03
    assert float(logs[1]) > float(logs[0])
    laplace = LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), eps)
    assert found.loss < 0.8 * laplace.expectation(FORGIVING.value, cuts=FORGIVING.cuts)


def test_no_random_private_radial_beats_the_lower_bound():
    eps = 0.1
    found = optimal_radial_any(Distinguishability.linear(f"{eps}/m"), FORGIVING)
    rng = np.random.default_rng(4)
    best = math.inf
    for _ in range(300):
        radii = np.append(0, np.cumsum(rng.uniform(2, 60, 20)))
        rising = np.where(radii[1:] < rng.uniform(50, 220), 1, -1)
        slopes = eps * rising * rng.choice([0.3, 0.9, 1.0])
        logs = np.append(0, np.cumsum(slopes * np.diff(radii)))
        radial = from_table(radii, np.exp(logs - logs.max()), slope=eps)
        assert largest_radial_ratio(radial, ([0.0], [0.0], [eps * (1 + 1e-9)])).holds
        best = min(best, radial.expectation(FORGIVING.value, cuts=FORGIVING.cuts))
    assert found.lower_bound <= found.loss <= best * (1 + 1e-9)
    assert best < 5 * found.loss  # the random ones come near enough to mean something


@pytest.mark.parametrize("eps", [0.03, 0.1])
def test_the_lower_bound_stays_below_the_optimum_on_coarse_nodes(eps, monkeypatch):
    """On few nodes both bounds are loose, and the lower one must not come near the upper."""
    ell = Distinguishability.linear(f"{eps}/m")
    fine = optimal_radial_any(ell, FORGIVING).loss
    monkeypatch.setattr(any_loss, "_STEP", 0.6)
    monkeypatch.setattr(any_loss, "_SLICES", 2)
    coarse = optimal_radial_any(ell, FORGIVING)
    assert coarse.loss > fine
    assert 0.5 * fine < coarse.lower_bound <= fine


def test_costs_on_a_slice_are_below_those_of_every_radius_in_it():
    """What the lower bound replaces f by, against f at random radii t + j h of the slice."""
    rng = np.random.default_rng(3)
    nodes = any_loss._Nodes.of(25.0, 12, 0.03 * 25.0 * np.arange(12))
    radii, rates, price = np.array([150.0]), np.array([7.0]), 40.0
    short = []
    for a, b in itertools.pairwise(np.linspace(0, 25.0, 6).tolist()):  # 100, 150, 200 on borders
        found = any_loss._smaller(FORGIVING, nodes, a, b, price, radii, rates)
        at = nodes.radii[:, None] + rng.uniform(a, b, (1, 200))
        worth = forgiving(at) - price + rates[0] * (at > radii[0])
        least = (2 * math.pi * at * worth).min(axis=1)
        assert (found <= least + 1e-9).all()
        short.append((least - found) / np.abs(least))
    assert np.median(short) < 0.1  # and not far below


def test_the_dual_bound_is_that_of_the_linear_programme():
    """min f x over the box and the constraints, by another solver call, from both sides."""
    rng = np.random.default_rng(6)
    nodes = any_loss._Nodes.of(20.0, 25, 0.04 * 20.0 * np.arange(25))
    upper, matrix = nodes.largest(math.inf), nodes.rows()
    for _ in range(5):
        f = rng.normal(size=25) * 1e4
        exact = linprog(
            f * upper,
            A_ub=(matrix.toarray() * upper),
            b_ub=np.zeros(matrix.shape[0]),
            bounds=(0, 1),
        )
        found = any_loss._box_minimum(f, matrix, upper)
        assert found <= exact.fun + 1e-9
        assert found == pytest.approx(exact.fun, rel=1e-5, abs=1e-9)
        assert exact.fun < 0


def test_the_box_holds_every_private_radial():
    """The largest R(r) of all is that of exp(-l(|r - s|)); on each step its bound is above it."""
    eps, step, count = 0.02, 20.0, 30
    radii = step * np.arange(count)
    most = any_loss._Nodes.of(step, count, eps * radii).largest(math.inf)
    for j, share in itertools.product((0, 1, 7, 15), (0.01, 0.5, 0.99)):
        r = step * (j + share)
        mass = quad(
            lambda s, r=r: 2 * math.pi * s * math.exp(-eps * abs(r - s)), 0, 3000, points=[r]
        )[0]
        assert 1 / mass <= most[j]
    assert most[15] < 2 / mass


def test_rising_losses_have_the_optimum_of_the_other_solver():
    for ell in (Distinguishability.linear("0.01/m"),):
        both = optimal_radial(ell, Loss.power(1)), optimal_radial_any(ell, Loss.power(1))
        assert both[1].loss == pytest.approx(both[0].loss, rel=1e-3)
        assert both[1].lower_bound == pytest.approx(both[0].lower_bound, rel=1e-2)
        assert both[1].lower_bound <= both[0].loss


def test_bounds_and_tails_hold_for_falling_losses_too():
    ell = Distinguishability.linear("0.03/m")
    free = optimal_radial_any(ell, FORGIVING)
    limit = 0.8 * float(free.radial.survival(300.0))
    found = optimal_radial_any(ell, FORGIVING, bound=0.8 * free.radial.peak, tail=((300.0, limit),))
    assert found.radial.peak <= 0.8 * free.radial.peak
    assert float(found.radial.survival(300.0)) <= limit
    assert free.lower_bound < found.loss
    assert found.lower_bound > free.loss  # the limits bind, proven


def test_a_mechanism_with_a_loss_that_falls():
    ell = Distinguishability.linear("0.1/m")
    noise = wh.OptimalCircular(ell, FORGIVING)
    assert noise.certificate.holds
    assert noise.gap < 5e-3
    assert noise.guarantee.implies(0.1 * wh.Euclidean())
    assert not noise.guarantee.implies(0.099 * wh.Euclidean())
    drawn = noise.report(np.zeros((4000, 2)), rng=wh.SeededRandomness(2)).coordinates
    share = ((np.hypot(*drawn.T) >= 100) & (np.hypot(*drawn.T) <= 200)).mean()
    assert share > 0.97  # planar Laplace at this level: 0.0005


def test_what_is_no_piecewise_loss_says_why():
    for value, cuts, message in [
        (np.sin, (100.0,), ">= 0"),
        (lambda r: 1 + np.sin(r), (100.0,), "monotone between"),
        (lambda r: np.exp(-r), (100.0,), "must not fall after"),
        (lambda r: r, (), "must have cuts"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            Loss.piecewise(value, cuts=cuts)
    with pytest.raises(InvalidInput, match="finite at some distance"):
        optimal_radial_any(Distinguishability.unlimited(), FORGIVING, bound=1.0)


def test_an_empty_space_of_bound_and_tail_is_refused_for_falling_losses():
    ell = Distinguishability.linear("0.03/m")
    with pytest.raises(InvalidInput, match="least possible"):
        optimal_radial_any(ell, FORGIVING, tail=((100.0, 0.01),))
    with pytest.raises(InvalidInput, match="density at most 1e-07"):
        optimal_radial_any(ell, FORGIVING, bound=1e-7, tail=((300.0, 0.3),))


# -- two steps ----------------------------------------------------------------------------


def test_a_lattice_may_have_two_steps():
    """Odd multiples of the resolution: rounding twice is rounding once, for every real report."""
    rng = np.random.default_rng(1)
    ideal = rng.uniform(-500, 500, (50_000, 2))
    once = wh.Points(np.floor(ideal + 0.5), wh.Plane())
    twice = lattice_remap("3 m", "5 m")(once).coordinates
    np.testing.assert_array_equal(twice, np.floor(ideal / [3, 5] + 0.5) * [3, 5])
    even = lattice_remap("2 m", "5 m")(once).coordinates
    assert (even != np.floor(ideal / [2, 5] + 0.5) * [2, 5]).any()
    noise = wh.PlanarLaplace("0.01/m", resolution="1 m") >> lattice_remap("3 m", "5 m")
    reports = noise.report(np.zeros((500, 2)), rng=wh.SeededRandomness(1)).coordinates
    assert (reports % [3, 5] == 0).all()
    assert noise.guarantee == wh.PlanarLaplace("0.01/m", resolution="1 m").guarantee
    with pytest.raises(InvalidInput, match="plane"):
        lattice_remap("3 m", "5 m")(wh.Points([[0.0, 0.0]], wh.Sphere()))
    with pytest.raises(InvalidInput):
        lattice_remap("0 m", "5 m")
