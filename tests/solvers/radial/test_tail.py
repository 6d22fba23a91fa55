"""Theorem 8: noise below a function rho on all radii, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import whereish as wh
from whereish.errors import InvalidInput
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.any_loss import optimal_radial_any
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.tail import Tail, largest_excess, tight_radial

EPS = 0.03
LAPLACE = LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 1e-3)


def forgiving(r):
    return np.where((r >= 100) & (r <= 200), 0.0, r)


FORGIVING = Loss.piecewise(forgiving, cuts=(100.0, 200.0))
RHO = Tail.exponential("50 m", factor=3.0)


def cell_programme(h: float, reach: float) -> float:
    """The least loss of radials that are constant on cells of width h, with S <= rho at all edges.

    Another discretisation than the solver's, without its tail, its nodes or its cutting planes.
    """
    r = h * (np.arange(int(reach / h)) + 0.5)
    weight = 2 * math.pi * r * h
    fine = (r[:, None] + h * (np.arange(8) - 3.5) / 8).clip(0)
    n, factor = len(r), math.exp(EPS * h)
    up = np.eye(n, k=0)[:-1] - factor * np.eye(n, k=1)[:-1]
    down = np.eye(n, k=1)[:-1] - factor * np.eye(n, k=0)[:-1]
    scale = np.exp(-EPS * np.abs(r - 150))
    mass = weight * scale
    within = -np.tril(np.ones((n, n))) * mass  # P(|v| <= edge) >= 1 - rho(edge)
    limits = [RHO(edge) - 1 for edge in h * np.arange(1, n + 1)]
    found = linprog(
        weight * forgiving(fine).mean(axis=1) * scale,
        A_ub=np.vstack([np.vstack([up, down]) * scale, within[:-1]]),
        b_ub=np.concatenate([np.zeros(2 * n - 2), limits[:-1]]),
        A_eq=mass[None],
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def test_a_tail_on_all_radii_is_met_on_all_radii_at_the_least_loss():
    ell = Distinguishability.linear(f"{EPS}/m")
    free = wh.OptimalCircular(ell, FORGIVING)
    radii = np.concatenate([np.linspace(0, 2500, 50_001), np.geomspace(2500, 20_000, 500)])
    limits = np.minimum(1.0, 3 * np.exp(-radii / 50))
    assert (free.radial.survival(radii) > 1.5 * limits).any()  # so it binds
    assert not largest_excess(free.radial, RHO).holds
    noise = wh.OptimalCircular(ell, FORGIVING, tail=RHO)
    assert largest_excess(noise.radial, RHO).holds
    assert (noise.radial.survival(radii) <= limits * (1 + 1e-11)).all()
    assert noise.certificate.holds
    assert noise.gap < 0.01
    assert noise.lower_bound > 1.1 * free.loss_value  # what the tail costs, proven
    assert noise.loss_value == pytest.approx(cell_programme(2.5, 800), rel=0.03)
    # One radius of rho alone is met by noise that exceeds it elsewhere.
    single = wh.OptimalCircular(ell, FORGIVING, tail={"117 m": RHO(117.0)})
    assert not largest_excess(single.radial, RHO).holds
    assert single.lower_bound <= noise.loss_value


def test_the_lower_bound_is_that_of_limits_that_rho_itself_sets():
    """Undercut limits leave a smaller space: nothing that was solved there bounds the whole."""
    ell = Distinguishability.linear(f"{EPS}/m")
    rho = Tail.exponential("60 m", factor=2.2)
    true, undercut = [], []

    def solve(limits):
        found = optimal_radial_any(ell, FORGIVING, tail=limits)
        kind = true if all(limit == rho(q) for q, limit in limits) else undercut
        kind.append(found)
        return found

    found = tight_radial(solve, rho, ell)
    assert found.lower_bound == max(one.lower_bound for one in true)
    assert found.loss in [one.loss for one in undercut]
    assert found.lower_bound < min(one.loss for one in undercut)


def test_the_certificate_of_a_tail_is_two_sided():
    """S(q) = (1 + q/km) exp(-q/km) against an exponential that touches it."""

    def near(factor: float) -> Tail:
        return Tail.of(
            lambda q: min(1.0, factor * math.exp(-0.8e-3 * q)), reach="30 km", rate=0.8e-3
        )

    touching = 5 * math.exp(-0.8)  # where (1 + q) exp(-0.2 q) is largest: q = 4 km
    assert largest_excess(LAPLACE, near(touching * (1 + 1e-6))).holds
    found = largest_excess(LAPLACE, near(touching * (1 - 1e-4)))
    assert not found.holds
    assert found.ratio == pytest.approx(1 + 1e-4, rel=1e-5)
    assert found.radius == pytest.approx(4000, rel=0.05)
    short = near(touching * (1 - 1e-4) * (1 - 1e-9))
    assert all(LAPLACE.survival(q) > short(q) for q, _ in found.peaks)


def test_excesses_in_single_places_are_found():
    """A step of rho with S just above it on its left, and one beyond the reach."""

    def step(value: float, reach: str) -> Tail:
        return Tail.of(
            lambda q: 1.0 if q < 3000 else value * math.exp(-1e-5 * (q - 3000)),
            reach=reach,
            rate=1e-5,
        )

    there = float(LAPLACE.survival(3000.0))
    for reach in ("10 km", "3 km"):
        assert largest_excess(LAPLACE, step(there * (1 + 1e-8), reach)).holds
        assert not largest_excess(LAPLACE, step(there * (1 - 1e-8), reach)).holds
    # Beyond its reach rho may fall as fast as it says, and the worst radius is there.
    late = Tail.of(lambda q: 1.0 if q < 500 else 0.98, reach="600 m", rate=0.9e-3)
    found = largest_excess(LAPLACE, late)
    q = np.linspace(600, 60_000, 100_000)
    promised = LAPLACE.survival(q) / (0.98 * np.exp(-0.9e-3 * (q - 600)))
    assert not found.holds
    assert found.radius == pytest.approx(9000, rel=1e-9)
    assert found.ratio == pytest.approx(promised.max(), rel=1e-6)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (Tail.exponential("500 m"), "no noise that keeps .* falls by 0.002 nats per metre"),
        (Tail.exponential("1 km", factor=9.0), "falls by 0.001 nats per metre"),
        (Tail.power("1 km", 3.0), "least possible"),
        (Tail.of(lambda q: float(q < 2000), reach="3 km", rate=1e-4), "stays below"),
        (Tail.of(lambda q: 1 / (1 + q), reach="1 km", rate=1e-2), "give a smaller rate"),
    ],
)
def test_an_empty_space_is_refused_with_the_reason(tail, message):
    with pytest.raises(InvalidInput, match=message):
        wh.OptimalCircular(Distinguishability.linear("1/km"), tail=tail)


def test_a_tail_that_planar_laplace_meets_costs_nothing():
    """For linear l no noise has less beyond any radius than planar Laplace noise (Theorem 9)."""
    ell = Distinguishability.linear("1/km")
    loose = Tail.of(
        lambda q: (1 + 0.99e-3 * q) * math.exp(-0.99e-3 * q), reach="40 km", rate=0.99e-3
    )
    assert wh.OptimalCircular(ell, tail=loose).loss_value == pytest.approx(2000, rel=1e-6)

    def steep(q: float) -> float:
        s = 1.01e-3 * min(q, 9000.0)
        return (1 + s) * math.exp(-s - 0.5e-3 * max(q - 9000.0, 0.0))

    tight = Tail.of(steep, reach="9 km", rate=0.5e-3)
    with pytest.raises(InvalidInput, match="least possible"):
        wh.OptimalCircular(ell, tail=tight)


def test_what_is_no_tail_says_why():
    for make, message in [
        (
            lambda: Tail.of(lambda q: 1 - 0.5 * (100 < q < 200), reach="1 km", rate=1e-3),
            "not increase",
        ),
        (lambda: Tail.of(lambda q: 2.0, reach="1 km", rate=1e-3), "probability"),
        (lambda: Tail.of(lambda q: 0.1, reach="1 km", rate=0.0), "tend to 0"),
        (lambda: Tail.power("1 km", 0.0), "exponent"),
        (lambda: Tail.exponential("1 km", factor=1.0), "factor"),
        (
            lambda: Tail.of(lambda q: 0.5 * math.exp(-q / 1e3), reach="9 km", rate=1e-3),
            "must be 1 at the radius 0",
        ),
    ]:
        with pytest.raises(InvalidInput, match=message):
            make()
