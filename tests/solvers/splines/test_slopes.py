"""Slopes at points between two looks at all of them: means that are carried on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from whereish.solvers.eikonal.cells import framed_law, prices_on_cells
from whereish.solvers.splines.points import PARTS, point_gradients
from whereish.solvers.splines.slopes import PointSlopes

CELL = (1.0, 1.0)


@pytest.mark.parametrize("cell", [(1.0, 1.0), (2.0, 1.0), (0.5, 3.0)])
def test_gradients_of_a_spline_are_those_of_what_it_reproduces(cell):
    """A quadratic spline of values at equal steps has the slopes of lines and parabolas."""
    i, j = np.mgrid[:6, :7]
    along = np.linspace(-0.5, 0.5, PARTS + 1)
    found = point_gradients(3.0 * j - 2.0 * i + 0.5 * j**2, cell)[1:-1, 1:-1]
    longer = max(cell)
    across = 3.0 + (j[1:-1, 1:-1, None, None] + along[None, None, None, :])
    np.testing.assert_allclose(
        found[..., 0], np.broadcast_to(across * longer / cell[1], found.shape[:-1]), atol=1e-12
    )
    np.testing.assert_allclose(found[..., 1], -2.0 * longer / cell[0], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_means_that_are_carried_are_nearly_those_of_the_law(seed):
    """Of a law with other weights, and so other sums at the nodes."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[:14, :17]
    eps = 0.6 + 0.25 * np.sin(i / 3.0) * np.cos(j / 2.5)
    first = framed_law(eps, CELL, prices_on_cells, neighbours=16, frame=0)
    law = first.law
    weights = np.rint(law.weights * rng.uniform(0.5, 1.5, law.weights.shape)).astype(np.uint64)
    sums, _ = law.metric.exact_sums(weights, law.table, first.secrets)
    other = replace(first, law=replace(law, weights=weights, sums=sums))
    points = PointSlopes(first, np.full((13, 16), 0.6), CELL)
    points.everywhere(first)
    exact, carried = points.chosen(other), points.chosen(other, carried=True)
    assert np.array_equal(exact > 0.0, carried > 0.0)
    off = np.abs(carried - exact).max()
    # The means of before alone, which know nothing of the sums of the nodes.
    same_sums = replace(other, law=replace(other.law, sums=law.sums))
    held = np.abs(points.chosen(same_sums, carried=True) - exact).max()
    assert off < 0.25 * held
    assert held > 0.01


def test_squares_that_are_looked_at_have_all_their_points():
    """Where proofs say more than points that matter, all points do, until all are chosen anew."""
    i, j = np.mgrid[:14, :17]
    eps = 0.6 + 0.25 * np.sin(i / 3.0) * np.cos(j / 2.5)
    first = framed_law(eps, CELL, prices_on_cells, neighbours=16, frame=0)
    points = PointSlopes(first, np.full((13, 16), 0.6), CELL)
    whole, before = points.everywhere(first), points.chosen(first)
    squares = np.zeros(first.used.shape, np.bool_)
    squares[5, 6] = True
    points.look_at(squares)
    after = points.chosen(first)
    assert (before[5, 6] == 0.0).any()
    np.testing.assert_allclose(after[5, 6], whole[5, 6], rtol=1e-6)
    assert np.array_equal(after[:4] > 0.0, before[:4] > 0.0)
    points.everywhere(first)
    np.testing.assert_array_equal(points.chosen(first), before)
