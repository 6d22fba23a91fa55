"""Blocks of reports, which are seen only from where they are near, against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal.between import slopes_between
from whereish.solvers.eikonal.cells import BuiltLaw, framed_law, prices_on_cells
from whereish.solvers.splines import bound
from whereish.solvers.splines.report_blocks import report_blocks
from whereish.solvers.splines.slopes import PointSlopes, points_between
from whereish.solvers.splines.weights import around

CELL = (1.0, 1.0)


def wide_map(rows: int = 14, cols: int = 17) -> np.ndarray:
    """About 40 nats wide: the horizon is 22."""
    i, j = np.mgrid[:rows, :cols]
    return 2.5 + np.sin(i / 3.0) * np.cos(j / 2.5)


def law_of(eps: np.ndarray, frame: int) -> BuiltLaw:
    return framed_law(eps, CELL, prices_on_cells, neighbours=16, frame=frame)


@pytest.mark.parametrize("frame", [0, 2])
@pytest.mark.parametrize("horizon", [None, 6.0])
def test_blocks_are_right_where_they_are_seen_and_flat_elsewhere(frame, horizon):
    built = law_of(wide_map(), frame)
    law, (rows, cols) = built.law, built.used.shape
    farthest = 65535 if horizon is None else round(horizon / law.metric.quantum)
    distances = np.minimum(law.metric.distances(built.secrets), farthest)
    i, j = np.divmod(np.arange(rows * cols), cols)
    nine = (around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]).reshape(-1, 9)
    table = law.table / float(law.table[0])
    whole = law.weights / float(law.weights.max())
    seen, unseen, reports = 0, 0, []
    for index, (A, E, top) in report_blocks(built, horizon):
        reports.append(index)
        count = len(index)
        D = distances[:, index]
        flat = np.isneginf(top)
        assert (D[nine[flat]] == farthest).all()
        looked_at = np.unique(nine[~flat])
        np.testing.assert_allclose(A[looked_at, :count], np.log(table[D[looked_at]]), rtol=1e-6)
        lowered = table[D] - (0.0 if horizon is None else table[farthest])
        mass = (lowered * whole[index])[looked_at]
        np.testing.assert_allclose(E[looked_at, :count], mass, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(top[~flat], np.log(table[D.min(axis=1)[~flat]]), rtol=1e-6)
        assert not E[looked_at, count:].any()
        assert (A[looked_at, count:] == A[looked_at, count - 1 : count]).all()
        seen, unseen = seen + int((~flat).sum()), unseen + int(flat.sum())
    assert seen
    assert unseen
    assert sorted(np.concatenate(reports)) == list(np.flatnonzero(law.weights))


def test_reports_that_are_all_far_count_in_a_proof(monkeypatch):
    """A place that a report is beyond the horizon of sees no gradient of it: |m| is its slope."""
    eps = wide_map()
    built = law_of(eps, 0)
    claimed = np.full((eps.shape[0] - 1, eps.shape[1] - 1), 3.5)
    # A law on the corners of another map, only to have something to prove.
    assert built.used.shape == tuple(n + 1 for n in claimed.shape)
    proven = slopes_between(built, claimed, CELL).factors
    marked = []
    flat_block = bound._flat_block

    def spy(flat):
        marked.append(flat.copy())
        return flat_block(flat)

    monkeypatch.setattr(bound, "_flat_block", spy)
    np.testing.assert_array_equal(slopes_between(built, claimed, CELL).factors, proven)
    assert marked[0].any()
    monkeypatch.setattr(bound, "_flat_block", lambda flat: flat_block(np.ones_like(flat)))
    assert (slopes_between(built, claimed, CELL).factors >= proven - 1e-12).all()


def test_what_is_near_with_what_is_held_gives_all():
    """Of the law that was held; of another, about its slopes."""
    eps = wide_map()
    built = law_of(eps, 0)
    asked = np.full((eps.shape[0] - 1, eps.shape[1] - 1), 3.0)
    points = PointSlopes(built, asked, CELL)
    whole = points.hold(built)
    np.testing.assert_array_equal(whole, points_between(built, asked, CELL))
    near = points.near(built)
    looked_at = near > 0.0
    assert 0.05 < looked_at.mean() < 0.95
    np.testing.assert_allclose(near[looked_at], whole[looked_at], atol=1e-5)
    # The largest of every square, and so of what an edge falls by, is among them.
    np.testing.assert_allclose(near.max(), whole.max(), atol=1e-5)
    some = np.zeros(built.used.shape, np.bool_)
    some[3:6, 4:9] = True
    part = points.near(built, some)
    np.testing.assert_allclose(part[4, 5], near[4, 5], atol=1e-6)
    assert not part[10:].any()
    other = law_of(eps * 0.98, 0)
    exact = points_between(other, asked, CELL)
    found = points.near(other)
    off = np.abs(found - exact)[found > 0]
    assert np.quantile(off, 0.9) < 0.005
    assert off.max() < 0.05
