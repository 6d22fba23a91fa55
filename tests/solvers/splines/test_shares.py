"""Shares of edges: what slopes leave of them, and what they make of edges."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.privacy.maps.stencil import STENCILS
from whereish.solvers.splines.points import PARTS, point_grid
from whereish.solvers.splines.shares import EdgeShares, spread


def grid(rows: int, cols: int, value: float = 1.0) -> np.ndarray:
    return np.full((PARTS * rows + 1, PARTS * cols + 1), value)


def test_points_of_two_squares_take_the_larger_value():
    values = np.zeros((2, 3, PARTS + 1, PARTS + 1))
    values[0, 1, 2, PARTS], values[0, 2, 2, 0] = 0.5, 0.7
    found = point_grid(values)
    assert found.shape == (2 * PARTS + 1, 3 * PARTS + 1)
    assert found[2, 2 * PARTS] == 0.7
    assert np.count_nonzero(found) == 1


def test_a_steep_centre_lowers_the_sides_of_its_square_alone():
    slopes = grid(4, 5)
    slopes[2 * PARTS, 3 * PARTS] = 1.25  # between the nodes (1, 2) and (2, 3)
    left = EdgeShares.left_by(slopes)
    east, north = np.ones((4, 4)), np.ones((3, 5))
    east[1:3, 2], north[1, 2:4] = 0.8, 0.8
    np.testing.assert_array_equal(left.east, east)
    np.testing.assert_array_equal(left.north, north)
    assert left.crossing[1, 2] == 0.8
    assert np.count_nonzero(left.crossing < 1.0) == 1


def test_a_steep_side_lowers_itself_and_the_squares_beside_it():
    slopes = grid(4, 5)
    slopes[PARTS + PARTS // 2, 2 * PARTS] = 1.25  # between the nodes (1, 1) and (1, 2)
    left = EdgeShares.left_by(slopes)
    assert np.argwhere(left.east < 1.0).tolist() == [[1, 1]]
    assert np.argwhere(left.north < 1.0).tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert np.argwhere(left.crossing < 1.0).tolist() == [[0, 1], [1, 1]]


def test_room_is_damped_and_a_fall_is_not():
    left = EdgeShares.left_by(grid(3, 3, 0.81)).damped(0.5)
    np.testing.assert_allclose(left.east, 1 / 0.9)
    assert (EdgeShares.left_by(grid(3, 3, 0.81)).damped(0.0).north == 1.0).all()
    np.testing.assert_allclose(EdgeShares.left_by(grid(3, 3, 1.25)).damped(0.0).crossing, 0.8)


@pytest.mark.parametrize("shape", [(5, 6), (1, 7), (7, 1)])
@pytest.mark.parametrize("frame", [0, 2])
def test_shares_of_edges(shape, frame):
    if 1 in shape and frame:
        pytest.skip("a line has no frame")
    rows, cols = (count + 2 * frame for count in shape)
    edges = np.full((rows, cols, 16), 1000, np.uint16)
    whole = EdgeShares.whole(shape)
    assert (whole.of(edges, frame, 32) == edges).all()
    half = whole.times(0.5).times(whole).of(edges, frame, 32)
    for k, (di, dj) in enumerate(STENCILS[32]):
        real = half[: rows - di, max(0, -dj) : cols - max(0, dj), k]
        assert (real == 500).all()


def test_an_edge_takes_the_mean_of_the_squares_it_crosses():
    whole = EdgeShares.whole((4, 4))
    crossing = whole.crossing.copy()
    crossing[0, 0] = 0.5
    shares = EdgeShares(whole.east, whole.north, crossing)
    found = shares.of(np.full((4, 4, 16), 1000, np.uint16), 0, 32)
    at = {step: found[0, 0, k] for k, step in enumerate(STENCILS[32])}
    assert at[1, 1] == 500
    assert at[1, 2] == at[2, 1] == 750
    assert at[0, 1] == at[1, 0] == 1000


@pytest.mark.parametrize("frame", [0, 2])
def test_shares_up_to_the_largest_edges(frame):
    """Sides and diagonals at these shares are what they may be; no share is above another's."""
    rng = np.random.default_rng(2)
    edges = rng.integers(500, 2000, (5 + 2 * frame, 6 + 2 * frame, 16)).astype(np.uint16)
    most = np.full(16, 1000, np.uint16)
    highest = EdgeShares.up_to(most, edges, frame, 32)
    shares = EdgeShares.whole((5, 6)).times(9.0).at_most(highest)
    found, steps = shares.of(edges, frame, 32), list(STENCILS[32])
    inner = found[frame : frame + 5, frame : frame + 6]
    assert (np.abs(inner[:, :-1, steps.index((0, 1))].astype(int) - 1000) <= 1).all()
    assert (np.abs(inner[:-1, :, steps.index((1, 0))].astype(int) - 1000) <= 1).all()
    diagonals = inner[:-1, :-1, steps.index((1, 1))], inner[:-1, 1:, steps.index((1, -1))]
    assert (np.minimum(*diagonals) <= 1000).all()
    assert (np.maximum(*diagonals) >= 999).all()
    assert (EdgeShares.whole((5, 6)).at_most(highest).east <= 1.0).all()


def test_a_line_has_no_diagonals():
    edges = np.full((1, 5, 16), 2000, np.uint16)
    highest = EdgeShares.up_to(np.full(16, 1000, np.uint16), edges, 0, 32)
    assert (highest.east == 0.5).all()
    assert np.isinf(highest.crossing).all()
    assert highest.at_most(EdgeShares.whole((1, 5))).crossing.shape == (1, 4)


def test_the_mean_share_is_that_of_all_sides():
    shares = EdgeShares.whole((3, 4)).times(0.5)
    assert shares.mean() == 0.5
    assert EdgeShares(shares.east * 0, shares.north, shares.crossing).mean() == 0.5 * 8 / 17


def test_what_is_around_a_steep_point_falls_a_quarter_as_much():
    slopes = grid(6, 6, 0.9)
    slopes[3 * PARTS, 3 * PARTS] = 1.25
    wide = spread(slopes)
    far = np.abs(np.arange(6 * PARTS + 1) - 3 * PARTS)
    near = np.maximum.outer(far, far) < PARTS
    assert wide[3 * PARTS, 3 * PARTS] == 1.25
    np.testing.assert_allclose(wide[near & (slopes < 1)], 1.0625)
    np.testing.assert_array_equal(wide[~near], 0.9)
    # Where nothing is too steep, nothing changes: what has room keeps it.
    np.testing.assert_array_equal(spread(grid(4, 4, 0.97)), grid(4, 4, 0.97))


def test_a_steeper_point_keeps_its_own_slope():
    slopes = grid(4, 4, 1.1)
    slopes[2 * PARTS, 2 * PARTS] = 1.15
    assert spread(slopes).min() == 1.1
    assert spread(slopes).max() == 1.15


def test_no_side_rises_by_more_than_those_around_and_none_falls():
    whole = EdgeShares.whole((6, 7))
    east = whole.east.copy()
    east[2, 3], east[4, 1] = 1.2, 0.7
    found = EdgeShares(east, whole.north, whole.crossing).smoothed()
    assert 1.0 < found.east[2, 3] < 1.05  # alone it hardly rises
    assert found.east[4, 1] == 0.7  # what falls, falls whole
    rest = np.ones_like(east, bool)
    rest[2, 3] = rest[4, 1] = False
    np.testing.assert_array_equal(found.east[rest], 1.0)  # and draws nothing down
    np.testing.assert_array_equal(found.north, 1.0)
    alike = EdgeShares(1.1 * whole.east, 1.1 * whole.north, 1.1 * whole.crossing)
    np.testing.assert_allclose(alike.smoothed().east, 1.1)


def test_a_line_of_squares_is_smoothed_too():
    line = EdgeShares.whole((1, 6)).times(1.1).smoothed()
    np.testing.assert_allclose(line.east, 1.1)
    assert line.north.shape == (0, 6)
