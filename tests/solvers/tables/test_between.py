"""The law of landmarks on places: what it keeps, with another proof, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal.between import law_between
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.eikonal.narrow import law_on_places_of
from whereish.solvers.geodesic.masses import decay_table
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.splines.slopes import points_between, slopes_between
from whereish.solvers.splines.weights import around, spline_weights
from whereish.solvers.tables.between import kept_metric, landmarks_between
from whereish.solvers.tables.blocks import laws_of_table, table_blocks
from whereish.solvers.tables.error import table_laws


def levels(kind: str, shape: tuple[int, int], low: float = 3.0, ratio: float = 8.0) -> np.ndarray:
    """Nats per cell of a map of `low` to `low`·`ratio` nats across."""
    i, j = (np.indices(shape) + 0.5) / max(shape)
    share = {
        "bump": np.exp(-((i - 0.4) ** 2 + (j - 0.5) ** 2) * 9),
        "coast": np.where(j + 0.1 * np.sin(7 * i) > 0.6, 0.0, 0.3 + 0.7 * i),
        "noise": np.random.default_rng(1).random(shape),
        "constant": np.zeros(shape),
    }[kind]
    return np.asarray(low * ratio**share / max(shape))


def uniform(eps: np.ndarray) -> np.ndarray:
    return np.full(eps.size, 1 / eps.size)


def table_of(eps, cell=(1.0, 1.0), prior=None, *, finer=False) -> BuiltLaw:
    """The law of landmarks, whether it is better or not."""
    found = []

    def keep(first, prices):
        found.append(landmarks_between(first, eps, cell, prices, share))
        return found[0]

    share = uniform(eps) if prior is None else prior.ravel() / prior.sum()
    law_between(eps, cell, finer=finer, prior=share, frame=0, instead=keep)
    assert found[0] is not None
    return found[0]


def log_laws(built: BuiltLaw, eps: np.ndarray, places: np.ndarray) -> np.ndarray:
    """ln P(y | u) at places (row, column), in cells, by the definition and in doubles."""
    lattice = lattice_of(eps.shape, built.used.shape)
    high, wide = lattice.sides((1.0, 1.0), eps.shape)
    rows, cols = built.used.shape
    first = [0.0 if n == 1 or not lattice.half_rim else -0.5 for n in (rows, cols)]
    q, p = places[:, 0] / high - first[0], places[:, 1] / wide - first[1]
    i, j = np.minimum(q.astype(int), rows - 1), np.minimum(p.astype(int), cols - 1)
    weights = np.einsum("nr,ns->nrs", spline_weights(q - i - 0.5), spline_weights(p - j - 0.5))
    nine = around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]
    logs = np.log(table_laws(built.table))[nine]
    mean = np.einsum("nrs,nrsy->ny", weights, logs)
    return mean - np.log(np.exp(mean).sum(axis=1, keepdims=True))


def bilinear(eps: np.ndarray, places: np.ndarray) -> np.ndarray:
    q, p = (np.clip(places[:, k] - 0.5, 0, eps.shape[k] - 1) for k in (0, 1))
    i = np.minimum(q.astype(int), max(eps.shape[0] - 2, 0))
    j = np.minimum(p.astype(int), max(eps.shape[1] - 2, 0))
    up, on = np.minimum(i + 1, eps.shape[0] - 1), np.minimum(j + 1, eps.shape[1] - 1)
    t, s = q - i, p - j
    low = (1 - s) * eps[i, j] + s * eps[i, on]
    high = (1 - s) * eps[up, j] + s * eps[up, on]
    return (1 - t) * low + t * high


def steepest(built: BuiltLaw, eps: np.ndarray, count: int = 4000) -> float:
    """The largest |grad ln P| / eps at random places, by differences."""
    h, shape = 1e-5, np.array(eps.shape)
    rng = np.random.default_rng(2)
    places = rng.uniform(2 * h, shape - 2 * h, (count, 2))
    parts = [
        (log_laws(built, eps, places + step) - log_laws(built, eps, places - step)) / (2 * h)
        for step in h * np.eye(2)
    ]
    return float((np.hypot(*parts).max(axis=1) / bilinear(eps, places)).max())


@pytest.mark.parametrize("kind", ["bump", "coast", "noise", "constant"])
def test_slopes_of_the_law_itself_confirm_the_certificate_and_refute_less(kind):
    eps = levels(kind, (14, 14))
    built = table_of(eps)
    assert 0.99 < built.gradient_factor <= 1.0
    found = steepest(built, eps)
    assert found <= built.gradient_factor
    assert found > 0.97  # a few thousand places do not see the steepest
    assert slopes_between(built, 0.99 * eps, (1.0, 1.0)).factors.max() > 1.0
    points = points_between(built, 0.99 * eps, (1.0, 1.0)).max()
    assert points > 1.0  # 0.99 of the map is not kept, at a place that is known
    assert built.table.factor == kept_factor(built)


def kept_factor(built: BuiltLaw) -> float:
    """What edges use of their prices, by all pairs of rows."""
    laws, metric = np.log(table_laws(built.table)), built.table.metric
    rows, cols = metric.shape
    grid, most = laws.reshape(rows, cols, -1), 0.0
    for k, (di, dj) in enumerate(metric.steps):
        for i in range(rows - di):
            for j in range(max(0, -dj), cols - max(0, dj)):
                change = np.abs(grid[i, j] - grid[i + di, j + dj]).max()
                most = max(most, change / built.promised[i, j, k])
    return pytest.approx(most, rel=1e-5)


def test_two_nodes_to_a_cell_and_oblong_cells():
    eps = levels("coast", (9, 12))
    built = table_of(eps, finer=True)
    assert built.used.shape == (18, 24)
    assert steepest(built, eps) <= built.gradient_factor <= 1.0
    oblong = table_of(eps, (1.0, 0.4))
    proven = slopes_between(oblong, eps, (1.0, 0.4)).factors.max()
    assert 0.99 < proven == oblong.gradient_factor <= 1.0
    assert slopes_between(oblong, eps, (1.0, 0.3)).factors.max() > 1.0


@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (1, 2), (2, 2), (3, 40)])
def test_lines_and_few_cells(shape):
    eps = levels("bump", shape, 2.0, 3.0)
    built = table_of(eps)
    assert built.gradient_factor <= 1.0
    if min(shape) > 1:
        assert steepest(built, eps) <= built.gradient_factor


def test_a_prior_in_one_cell():
    eps = levels("coast", (10, 10))
    prior = np.zeros((10, 10))
    prior[4, 6] = 1.0
    built = table_of(eps, prior=prior)
    assert built.gradient_factor <= 1.0
    assert steepest(built, eps, 500) <= max(built.gradient_factor, 1e-6)


def test_a_wide_map_and_a_framed_one_have_no_table():
    wide = levels("bump", (16, 16), 30.0, 1.0)
    built = law_on_places_of(wide, (1.0, 1.0), prior=uniform(wide), frame=0)
    assert built.table is None
    assert built.comparison is None
    eps = levels("bump", (10, 10))
    framed = law_on_places_of(eps, (1.0, 1.0), prior=uniform(eps), frame=2)
    assert framed.table is None
    assert law_on_places_of(eps, (1.0, 1.0)).table is None  # nobody said where people are


def test_the_better_law_is_taken(monkeypatch):
    from whereish.solvers.eikonal import narrow

    eps = levels("coast", (12, 12))
    at_once = law_on_places_of(eps, (1.0, 1.0), prior=uniform(eps))
    assert at_once.table is not None
    assert at_once.comparison.chosen == "landmarks"
    assert at_once.comparison.unsettled > 1 / 0.97
    monkeypatch.setattr(narrow, "_SURELY", 0.0)  # both are finished, and the table is still better
    both = law_on_places_of(eps, (1.0, 1.0), prior=uniform(eps))
    assert both.comparison.chosen == "landmarks"
    assert both.comparison.unsettled is None
    np.testing.assert_array_equal(both.table.distances, at_once.table.distances)
    worse = narrow.judged_table

    def bad(*args):
        found = worse(*args)
        return type(found)(found.drawn, 10 * found.moved, found.reports)

    monkeypatch.setattr(narrow, "judged_table", bad)
    own = law_on_places_of(eps, (1.0, 1.0), prior=uniform(eps))
    assert own.table is None
    assert own.comparison.chosen == "eikonal"
    assert own.comparison.landmarks is not None
    assert own.gradient_factor <= 1.0


def test_blocks_hold_the_law():
    """More than one block: logarithms and masses are those of the integers."""
    eps = levels("noise", (10, 10), 8.0, 2.0)
    built = table_of(eps)
    table, laws = built.table, laws_of_table(built.table)
    assert len(table.weights) > 64
    seen, masses = [], np.zeros(table.metric.cells)
    decay = np.log(decay_table(table.metric.quantum).astype(float))
    for names, (A, E, top) in table_blocks(table):
        assert (top == 0).all()
        for lane in range(64):
            column = min(len(seen) + lane, len(table.weights) - 1)
            logs = decay[table.distances[column]]
            np.testing.assert_allclose(A[1:, lane] - A[0, lane], logs[1:] - logs[0], atol=4e-6)
            assert np.abs(A[:, lane]).max() <= laws.deepest * (1 + 1e-6)
        assert (E[:, len(names) :] == 0).all()
        masses += E.sum(axis=1, dtype=float)
        seen.extend(names)
    np.testing.assert_array_equal(seen, table.reported)
    np.testing.assert_allclose(masses, np.exp(laws.log_sums.ravel()), rtol=1e-6)
    grid = decay[table.distances].reshape(-1, *table.metric.shape)
    for bound, axis in ((laws.across, 2), (laws.along, 1)):
        change = np.abs(np.diff(grid, axis=axis)).max(axis=0)
        assert (change <= bound * (1 + 1e-12)).all()
        np.testing.assert_allclose(change, bound, rtol=1e-3)
    again = kept_metric(table.distances, table.metric)
    np.testing.assert_array_equal(again.weights, table.metric.weights)
