"""The vector operations on 64 reports, each against the same in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.compiled import kernel
from whereish.solvers.eikonal.between import geometric_laws
from whereish.solvers.eikonal.cells import framed_law, prices_on_cells
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.lanes import operations
from whereish.solvers.splines.lanes.controls import gradients, halves, room
from whereish.solvers.splines.lanes.controls import steepest as steepest_square
from whereish.solvers.splines.points import _POINTS
from whereish.solvers.splines.slopes import PointSlopes
from whereish.solvers.splines.weights import around, spline_slopes, spline_weights

_columns, _around_node = operations.columns, operations.around_node
_add_at_point, _steepest = operations.add_at_point, operations.steepest_at_point
_total, _worst = operations.total, operations.worst
_largest, _least = operations.largest, operations.least


@kernel
def columns(A, here, cells, spline, out):
    _columns(A, here, cells, spline, out)


@kernel
def around_node(D, cells, shares, masses, out):
    _around_node(D, cells, shares, masses, out)


@kernel
def add_at_point(sides, E, here, spline, fall, out, at):
    _add_at_point(sides, E, here, spline, fall, out, at)


@kernel
def steepest(sides, spline, mean):
    return _steepest(sides, spline, mean)


@kernel
def total(E, row):
    return _total(E, row)


@kernel
def worst(V, inverse):
    return _worst(V, inverse)


@kernel
def largest(numbers):
    return _largest(numbers)


@kernel
def least(D, cell):
    return _least(D, cell)


def numbers(*parts: np.ndarray) -> tuple[np.float32, ...]:
    return tuple(np.float32(x) for part in parts for x in part)


def at(t: float) -> tuple[np.ndarray, np.ndarray]:
    return spline_weights(np.array([t]))[0], spline_slopes(np.array([t]))[0]


@pytest.mark.parametrize("seed", range(3))
def test_sums_and_slopes_at_a_point(seed):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-2.0, 0.0, (20, LANES)).astype(np.float32)
    E = rng.uniform(0.0, 1.0, (20, LANES)).astype(np.float32)
    cells, (down, slope_down), (along, slope_along) = rng.permutation(20)[:9], at(0.3), at(-0.2)
    here = int(cells[4])
    sides = np.empty((6, LANES), np.float32)
    columns(A, here, cells, numbers(down, slope_down), sides)
    nine = (A[cells].astype(float) - A[here]).reshape(3, 3, LANES)
    np.testing.assert_allclose(sides[:3], np.einsum("a,abk->bk", down, nine), atol=1e-6)
    np.testing.assert_allclose(sides[3:], np.einsum("a,abk->bk", slope_down, nine), atol=2e-6)
    value = np.einsum("a,b,abk->k", down, along, nine)
    across = np.einsum("a,b,abk->k", down, slope_along, nine)
    north = np.einsum("a,b,abk->k", slope_down, along, nine)
    halvings = 4  # |F| <= 2·2: a sixteenth of that is at most 1/4
    out = np.ones((5, 3))
    fall = np.float32(1.0 / (1 << halvings)), np.int64(halvings)
    add_at_point(sides, E, here, numbers(along, slope_along), fall, out, 2)
    mass = np.exp(value) * E[here]
    expected = 1.0 + np.array([mass.sum(), (mass * across).sum(), (mass * north).sum()])
    np.testing.assert_allclose(out[2], expected, rtol=3e-6, atol=1e-5)
    assert (np.delete(out, 2, axis=0) == 1.0).all()
    mean = np.float32(0.4), np.float32(-0.7)
    found = steepest(sides, numbers(along, slope_along), mean)
    assert found == pytest.approx(((across - 0.4) ** 2 + (north + 0.7) ** 2).max(), rel=1e-5)


def test_what_is_not_a_number_is_never_small():
    """A bound that cannot be told is infinite, whatever the sign of what is not a number."""
    rng = np.random.default_rng(2)
    sides = rng.normal(size=(6, LANES)).astype(np.float32)
    spline, mean = numbers(*at(0.1)), (np.float32(0.0), np.float32(0.0))
    V = rng.normal(size=(2, 9, LANES)).astype(np.float32)
    inverse = rng.uniform(0.5, 2.0, 9).astype(np.float32)
    assert np.isfinite(steepest(sides, spline, mean))
    expected = ((V.astype(float) ** 2).sum(axis=0) * inverse[:, None]).max()
    assert worst(V, inverse) == pytest.approx(expected, rel=1e-6)
    for wrong in (np.float32("nan"), -np.float32("nan"), np.float32("inf"), -np.float32("inf")):
        sides[4, 17] = wrong
        V[1, 8, 63] = wrong
        assert steepest(sides, spline, mean) == np.inf
        assert worst(V, inverse) == np.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_steepest_control_point_of_every_report(seed):
    """By rows of A, against the control points themselves; none is less for what is no number."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-2.0, 0.0, (15, LANES)).astype(np.float32)
    mean = rng.normal(size=(9, 2)).astype(np.float32)
    inverse = rng.uniform(0.5, 2.0, 9).astype(np.float32)
    nine, V, _, _, _ = room()
    nine[0][:] = rng.permutation(15)[:9]
    steps, found = halves((2.0, 0.5)), np.empty(LANES, np.float32)
    steepest_square(A, nine, steps, mean, inverse, found)
    gradients(A, nine, steps, mean, V)
    at_centre = A[nine[0]].astype(float).reshape(3, 3, LANES)
    across = (at_centre[1, 2] - at_centre[1, 0]) / 2 / 0.5 - mean[4, 0]
    north = (at_centre[2, 1] - at_centre[0, 1]) / 2 / 2.0 - mean[4, 1]
    np.testing.assert_allclose(V[:, 4], [across, north], atol=1e-5)
    each = ((V.astype(float) ** 2).sum(axis=0) * inverse[:, None]).max(axis=0)
    np.testing.assert_allclose(found, each, rtol=3e-6)
    assert largest(found) == found.max() == pytest.approx(worst(V, inverse), rel=1e-6)
    for wrong in ("nan", "inf", "-inf"):
        A[nine[0][8], 17] = wrong
        steepest_square(A, nine, steps, mean, inverse, found)
        assert not np.isfinite(found[17])
        assert np.isfinite(np.delete(found, 17)).all()
        assert largest(found) == np.inf


def test_totals_are_in_double_precision_from_eight_partial_sums_on():
    E = np.full((3, LANES), 1e-9, np.float32)
    E[1, ::8] = 1.0  # the same partial sum: 8 in single precision, and little is added to it
    assert total(E, 1) == pytest.approx(8.0 + 56e-9, rel=1e-9)
    assert total(E, 2) == pytest.approx(64e-9, rel=1e-6)


def test_distances_become_logarithms_and_masses():
    """ln t[d] for t = e^{-q d} + tail, whose slope is that at the node."""
    rng = np.random.default_rng(1)
    quantum, tail = 1e-3, 1e-7
    own = rng.integers(0, 21_000, LANES)
    D = np.clip(own + rng.integers(-200, 200, (12, LANES)), 0, 65535).astype(np.uint16)
    D[7] = own
    cells = np.array([0, 1, 2, 3, 7, 5, 6, 8, 9])
    shares = rng.uniform(0.1, 1.0, LANES).astype(np.float32)
    masses = np.float32(quantum), np.float32(quantum / math.log(2.0)), np.float32(tail)
    out = np.empty((10, LANES), np.float32)
    around_node(D, cells, shares, masses, out)
    table = np.exp(-quantum * D.astype(float)) + tail
    logs = np.log(table[cells] / table[7])
    np.testing.assert_allclose(out[:9], logs, atol=6e-3)  # of up to 0.2: to first order
    exact = np.exp(-quantum * D.astype(float)) > 1e3 * tail  # where the tail says nothing
    np.testing.assert_allclose(out[:9][exact[cells]], logs[exact[cells]], atol=2e-4)
    np.testing.assert_allclose(out[9], table[7] * shares, rtol=1e-5)
    assert not out[4].any()
    assert least(D, 7) == own.min()


@pytest.mark.parametrize("frame", [0, 2])
def test_slopes_at_points_are_those_of_the_law(frame):
    """Against differences of its logarithms, report by report, wherever the masses are linear."""
    i, j = np.mgrid[:9, :11]
    eps = 0.7 + 0.3 * np.sin(i / 2.0) * np.cos(j / 2.5)
    built = framed_law(eps, (1.0, 1.0), prices_on_cells, neighbours=16, frame=frame)
    rows, cols = eps.shape
    level = np.full((rows - 1, cols - 1), 0.6)
    found = PointSlopes(built, level, (1.0, 1.0)).everywhere(built)
    rng, step = np.random.default_rng(0), 1e-5
    for _ in range(60):
        row, col = rng.integers(1, rows - 1), rng.integers(1, cols - 1)
        v, h = rng.integers(0, 5, 2)

        def law(dv: float, dh: float, row=row, col=col, v=v, h=h) -> np.ndarray:
            down = spline_weights(np.array([_POINTS[v] + dv]))[0]
            along = spline_weights(np.array([_POINTS[h] + dh]))[0]
            near = around(np.array([row]), rows)[0][:, None] * cols + around(np.array([col]), cols)
            shares = np.outer(down, along).reshape(1, 9)
            masses = geometric_laws(built, near.reshape(1, 9), shares)[0]
            return np.log(masses[masses > 0.0])

        across = (law(0.0, step) - law(0.0, -step)) / (2 * step)
        north = (law(step, 0.0) - law(-step, 0.0)) / (2 * step)
        assert found[row, col, v, h] * 0.6 == pytest.approx(np.hypot(across, north).max(), rel=2e-4)
