"""Blocks of reports, which are seen only from where they are near, against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal.between import slopes_between
from whereish.solvers.eikonal.cells import BuiltLaw, framed_law, prices_on_cells
from whereish.solvers.geodesic.lanes import LIMIT
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
def test_blocks_are_right_where_they_are_seen_and_flat_elsewhere(frame):
    built = law_of(wide_map(), frame)
    law, (rows, cols) = built.law, built.used.shape
    distances = law.metric.distances(built.secrets)
    i, j = np.divmod(np.arange(rows * cols), cols)
    nine = (around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]).reshape(-1, 9)
    table = law.table / float(law.table[0])
    whole = law.weights / float(law.weights.max())
    seen, unseen, reports = 0, 0, []
    for index, (A, E, top) in report_blocks(built):
        reports.append(index)
        count = len(index)
        D = distances[:, index]
        flat = np.isneginf(top)
        assert (D[nine[flat]] == LIMIT).all()
        looked_at = np.unique(nine[~flat])
        np.testing.assert_allclose(A[looked_at, :count], np.log(table[D[looked_at]]), rtol=1e-6)
        mass = (table[D] * whole[index])[looked_at]
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


def test_points_that_matter_have_the_slopes_of_all():
    """Of the law by which they are chosen, and of another."""
    eps = wide_map()
    built = law_of(eps, 0)
    asked = np.full((eps.shape[0] - 1, eps.shape[1] - 1), 3.0)
    points = PointSlopes(built, asked, CELL)
    whole = points.everywhere(built)
    np.testing.assert_array_equal(whole, points_between(built, asked, CELL))
    for law, all_of_it in (
        (built, whole),
        (law_of(eps * 0.98, 0), points_between(law_of(eps * 0.98, 0), asked, CELL)),
    ):
        found = points.chosen(law)
        looked_at = found > 0.0
        assert 0.05 < looked_at.mean() < 0.95
        np.testing.assert_allclose(found[looked_at], all_of_it[looked_at], rtol=1e-6)
        # The largest of every square, and so of what an edge falls by, is among them.
        np.testing.assert_allclose(found.max(), all_of_it.max(), rtol=1e-6)
    some = np.zeros(built.used.shape, np.bool_)
    some[3:6, 4:9] = True
    part = points.chosen(built, some)
    np.testing.assert_allclose(part[4, 5], points.chosen(built)[4, 5], rtol=1e-6)
    assert not part[10:].any()
