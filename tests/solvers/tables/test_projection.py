"""Columns brought below slopes: each point with the least change, and nothing without need."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.points import all_points
from whereish.solvers.splines.weights import around, spline_slopes, spline_weights
from whereish.solvers.tables.projection import levels_at_points, project_slopes, projections

SIDES = (1.0, 0.7)


def gradients(A: np.ndarray, shape: tuple[int, int], point: int) -> np.ndarray:
    """(nodes, 2, 64) across and down at one of the 25 points of every square, per longer side."""
    grid = A.astype(float).reshape(*shape, LANES)
    rows, cols = (around(np.arange(count), count) for count in shape)
    nine = grid[rows[:, None, :, None], cols[None, :, None, :]]
    t = np.linspace(-0.5, 0.5, 5)[[point // 5, point % 5]]
    (v, h), (dv, dh) = spline_weights(t), spline_slopes(t)
    parts = [
        np.einsum("r,s,ijrsk->ijk", v, dh / SIDES[1], nine),
        np.einsum("r,s,ijrsk->ijk", dv / SIDES[0], h, nine),
    ]
    return np.stack(parts, axis=2).reshape(-1, 2, LANES)


def swept(A, shape, limits, means=None, sweeps=1, further=0.0):
    """The columns after some sweeps, and how many points were steep in the last."""
    out = A.copy()
    means = np.zeros((*limits.shape, 2), np.float32) if means is None else means
    maps, steep = projections(SIDES), 0
    for number in range(sweeps):
        steep = project_slopes(out, shape, maps, means, limits, further, number % 2 == 1)
    return out, steep


@pytest.mark.parametrize("shape", [(5, 6), (1, 7), (7, 1), (2, 2)])
@pytest.mark.parametrize("point", [0, 7, 12, 24])
def test_one_point_goes_to_its_limit_by_the_least_change(shape, point):
    A = np.random.default_rng(point).normal(size=(shape[0] * shape[1], LANES)).astype(np.float32)
    for node in (0, shape[0] * shape[1] // 2, shape[0] * shape[1] - 1):
        limits = np.zeros((len(A), 25), np.float32)
        limits[node, point] = 0.2
        # At the rim some points have no slope across it, and so none that could be a mean.
        mean = 0.03 if shape == (5, 6) and node == 15 else 0.0
        means = np.full((len(A), 25, 2), mean, np.float32)
        moved, steep = swept(A, shape, limits, means)
        before, after = (gradients(one, shape, point)[node] - mean for one in (A, moved))
        was, now = np.hypot(*before), np.hypot(*after)
        np.testing.assert_allclose(now, np.minimum(was, 0.2), rtol=1e-4, atol=1e-6)
        assert steep == (1 if np.abs(moved - A).max() > 0 else 0)
        # No other change of the same columns that gives these gradients is smaller.
        change = (moved - A).astype(float)
        rest = np.random.default_rng(1).normal(size=change.shape)
        basis = np.stack(
            [gradients(unit_column(shape, n), shape, point)[node, :, 0] for n in range(len(A))]
        )
        free = rest - basis @ np.linalg.lstsq(basis, rest, rcond=None)[0]
        assert abs((free * change).sum()) < 1e-3 * max(np.abs(change).sum(), 1e-9)


def unit_column(shape: tuple[int, int], node: int) -> np.ndarray:
    out = np.zeros((shape[0] * shape[1], LANES), np.float32)
    out[node] = 1.0
    return out


def test_sweeps_bring_rough_columns_below_the_limit_and_leave_flat_ones_alone():
    shape = (12, 11)
    rng = np.random.default_rng(3)
    i, j = np.indices(shape).reshape(2, -1)
    smooth = 0.08 * (i[:, None] * np.cos(np.arange(LANES)) + j[:, None] * np.sin(np.arange(LANES)))
    rough = (smooth + 0.02 * rng.normal(size=smooth.shape)).astype(np.float32)
    limits = np.where(all_points(shape), 0.13, 0.0).reshape(-1, 25).astype(np.float32)

    def steepest(A: np.ndarray) -> float:
        return max(float(np.hypot(*gradients(A, shape, p).swapaxes(0, 1)).max()) for p in range(25))

    assert steepest(rough) > 0.15
    lowered, _ = swept(rough, shape, limits, sweeps=30, further=0.002)
    assert steepest(lowered) < 0.1305
    assert np.abs(lowered - rough).max() < 0.1
    flat, steep = swept((0.5 * smooth).astype(np.float32), shape, limits, sweeps=2)
    assert steep == 0
    np.testing.assert_array_equal(flat, (0.5 * smooth).astype(np.float32))


def test_levels_at_points_are_bilinear():
    levels = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 8.0]])
    at = levels_at_points(levels)
    assert at.shape == (1, 2, 5, 5)
    assert at[0, 0, 0, 0] == 1.0
    assert at[0, 1, 4, 4] == 8.0
    assert at[0, 0, 2, 2] == pytest.approx((1 + 2 + 3 + 5) / 4)
    assert at[0, 1, 1, 0] == pytest.approx(2 + 0.25 * 3)
