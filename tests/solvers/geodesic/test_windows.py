"""Sweeps that leave out what has not changed find the same distances, in as many sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.geodesic import near
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.near import NEAR, NearProduct
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances
from whereish.solvers.geodesic.windows import near_distances, nothing_reached


def rough_metric(seed: int, neighbours: int) -> GraphMetric:
    rng = np.random.default_rng(seed)
    # Few sources in the last batch, then any shape.
    shape = (8, 9) if seed == 0 else tuple(rng.integers(1, 40, 2))
    spread, level = rng.choice([0.2, 1.0, 2.0]), rng.choice([0.05, 0.3, 2.0])
    eps = level * np.exp(spread * rng.normal(size=shape))
    return GraphMetric.from_prices(edge_integrals(eps, (1.0, 1.3), neighbours=neighbours))


@pytest.mark.parametrize("horizon", [LIMIT, 20_000])
@pytest.mark.parametrize("neighbours", [8, 16, 32])
@pytest.mark.parametrize("seed", range(6))
def test_near_distances_are_those_of_full_sweeps(seed, neighbours, horizon):
    metric = rough_metric(seed, neighbours)
    rows, cols = metric.shape
    full = np.empty(((rows + 2 * BORDER) * metric.pitch, LANES), np.uint16)
    found, reach = nothing_reached(rows, cols, horizon)
    for start in range(0, metric.cells, LANES):
        sources = np.full(LANES, -1)
        batch = metric.padded(metric.order[start : start + LANES])
        sources[: len(batch)] = batch
        sweeps = batch_distances(full, metric.edges, metric.offsets, rows, cols, sources, 0)
        taken = near_distances(
            found, metric.edges, metric.offsets, rows, cols, metric.order, start, reach, horizon
        )
        np.testing.assert_array_equal(found, np.minimum(full, horizon))
        assert taken == sweeps or horizon < LIMIT
        inner = full.reshape(-1, metric.pitch, LANES)[BORDER:-BORDER, BORDER:-BORDER]
        i, j = np.nonzero(inner.min(axis=2) < horizon)
        assert (reach[i, 0] <= j).all()
        assert (j <= reach[i, 1]).all()


@pytest.mark.parametrize("kept_bytes", [0, 200_000, 2**30])
@pytest.mark.parametrize("seed", range(3))
def test_near_products_are_the_kernel_cut_off_whether_distances_are_kept_or_not(
    seed, kept_bytes, monkeypatch
):
    monkeypatch.setattr(near, "_FEW_CELLS", 0)
    metric = rough_metric(seed, 16)
    apart = metric.quantum * metric.distances(np.arange(metric.cells)).astype(float)
    kernel = np.maximum(np.exp(-apart) - np.exp(-NEAR), 0.0)
    rng = np.random.default_rng(seed)
    product = NearProduct(metric, kept_bytes=kept_bytes)
    for values in rng.normal(size=(3, metric.cells)):
        scale = np.abs(values).sum()
        assert np.abs(product(values) - kernel @ values).max() < 2e-6 * scale
        np.testing.assert_allclose(
            metric.product(values, horizon=NEAR), product(values), atol=2e-6 * scale
        )


@pytest.mark.parametrize("kept_bytes", [0, 100_000, 2**30])
@pytest.mark.parametrize("seed", range(3))
def test_near_products_follow_the_cells_in_use_as_these_come_and_go(seed, kept_bytes, monkeypatch):
    monkeypatch.setattr(near, "_FEW_CELLS", 0)
    metric = rough_metric(seed, 16)
    apart = metric.quantum * metric.distances(np.arange(metric.cells)).astype(float)
    kernel = np.maximum(np.exp(-apart) - np.exp(-NEAR), 0.0)
    rng = np.random.default_rng(seed)
    product = NearProduct(metric, kept_bytes=kept_bytes)
    used = rng.random(metric.cells) < 0.5
    for share in (0.9, 0.95, 0.2, 0.5, 1.0, 0.05, 0.0, 0.7):
        used = (used & (rng.random(metric.cells) < 0.9)) | (rng.random(metric.cells) < share)
        used &= rng.random(metric.cells) < max(share, 0.3)
        values = np.where(used, rng.normal(size=metric.cells), 0.0)
        scale = np.abs(values).sum() + 1e-300
        assert np.abs(product(values) - kernel @ values).max() <= 2e-6 * scale


def test_few_cells_in_use_are_searched_from_and_nothing_else(monkeypatch):
    monkeypatch.setattr(near, "_FEW_CELLS", 0)
    metric = rough_metric(1, 16)
    product = NearProduct(metric)
    few = np.zeros(metric.cells)
    few[[3, 77, 130]] = 1.0
    product(np.ones(metric.cells))
    product(few)
    assert sorted(np.concatenate([b.sources for b in product._batches])) == [3, 77, 130]
    more = few.copy()
    more[78] = 1.0
    product(more)
    assert sorted(np.concatenate([b.sources for b in product._batches])) == [3, 77, 78, 130]
