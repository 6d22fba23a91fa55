"""The discrete metric: exact shortest paths, and how close to the continuous ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from whereish.errors import InvalidInput, NotPrivate
from whereish.privacy.maps.stencil import STENCILS, edge_integrals, edge_slices, stencil_factor
from whereish.solvers.geodesic.fast_marching import fast_marching
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.geodesic.masses import decay_table
from whereish.solvers.geodesic.near import NearProduct
from whereish.solvers.geodesic.sweeps import batch_distances


def random_map(seed: int, shape: tuple[int, int]) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0, 0.8, shape))


def by_dijkstra(metric: GraphMetric) -> np.ndarray:
    cells = np.arange(metric.cells).reshape(metric.shape)
    tails, heads, costs = [], [], []
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        tails.append(cells[tail].ravel())
        heads.append(cells[head].ravel())
        costs.append(metric.weights[*tail, k].ravel().astype(float))
    graph = coo_matrix(
        (np.concatenate(costs), (np.concatenate(tails), np.concatenate(heads))),
        shape=(metric.cells, metric.cells),
    )
    return np.minimum(dijkstra(graph.tocsr(), directed=False), LIMIT)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 12),
    cols=st.integers(1, 12),
    neighbours=st.sampled_from([8, 16, 32]),
    side=st.sampled_from([0.3, 1.0, 6.0]),
)
def test_a_metric_exactly(seed, rows, cols, neighbours, side):
    eps = random_map(seed, (rows, cols))
    prices = edge_integrals(eps, (side, 1.5 * side), neighbours=neighbours)
    metric = GraphMetric.from_prices(prices)
    D = metric.distances(np.arange(metric.cells)).astype(np.int64)
    assert np.array_equal(D, by_dijkstra(metric))
    assert np.array_equal(D, D.T)
    assert not np.diag(D).any()
    through = (D[:, :, None] + D[None, :, :]).min(axis=1)
    assert (np.minimum(through, LIMIT) >= D).all()
    finite = np.isfinite(prices)
    assert (metric.weights[finite] * metric.quantum <= prices[finite]).all()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.89, 1.0])
@pytest.mark.parametrize("core", [0, 3000])
def test_products_with_few_cells_against_the_dense_matrix(share, core):
    metric = GraphMetric.from_prices(edge_integrals(random_map(1, (19, 23)), (0.4, 0.4)))
    D = np.maximum(metric.distances(np.arange(metric.cells)), core) * metric.quantum
    rng = np.random.default_rng(3)
    values = np.where(rng.random(metric.cells) < share, rng.normal(size=metric.cells), 0.0)
    scale = np.abs(values).sum()
    assert np.abs(metric.product(values, core) - np.exp(-D) @ values).max() <= 2e-6 * scale
    near = np.maximum(np.exp(-D) - np.exp(-5.0), 0.0) @ values
    assert np.abs(metric.product(values, core, horizon=5.0) - near).max() <= 2e-6 * scale


def test_products_where_they_are_wanted_are_those_everywhere():
    metric = GraphMetric.from_prices(edge_integrals(random_map(1, (19, 23)), (0.4, 0.4)))
    values = np.random.default_rng(2).normal(size=(metric.cells, 3))
    wanted = np.random.default_rng(3).random(metric.cells) < 0.3
    found, whole = metric.product(values, wanted=wanted), metric.product(values)
    np.testing.assert_allclose(found[wanted], whole[wanted], rtol=1e-5, atol=1e-5)
    assert not found[~wanted].any()


def test_product_and_exact_sums_against_the_dense_matrix():
    metric = GraphMetric.from_prices(edge_integrals(random_map(1, (19, 23)), (0.4, 0.4)))
    D = metric.distances(np.arange(metric.cells))
    values = np.random.default_rng(2).normal(size=(metric.cells, 3))
    dense = np.exp(-metric.quantum * D.astype(float)) @ values
    assert np.abs(metric.product(values) - dense).max() < 2e-6 * np.abs(values).sum(axis=0).max()
    core = 3000  # quanta: more than most edges
    flat = np.exp(-metric.quantum * np.maximum(D, core).astype(float)) @ values
    scale = np.abs(values).sum(axis=0).max()
    assert np.abs(metric.product(values, core) - flat).max() < 2e-6 * scale
    assert np.abs(dense - flat).max() > 1e-3 * scale
    weights = np.arange(1, metric.cells + 1, dtype=np.uint64)
    decay = (2.0**30 * np.exp(-metric.quantum * np.arange(LIMIT + 1))).astype(np.uint64)
    sums, _ = metric.exact_sums(weights, decay)
    assert np.array_equal(sums, (weights * decay[D]).sum(axis=1))


def test_a_fixed_number_of_sweeps_gives_the_same_distances():
    metric = GraphMetric.from_prices(edge_integrals(random_map(3, (15, 11)), (1.0, 1.0)))
    sources = metric.padded(np.arange(64, dtype=np.int64))
    D = np.empty((metric.edges.shape[1], 64), np.uint16)
    taken = batch_distances(D, metric.edges, metric.offsets, *metric.shape, sources, 0)
    settled = D.copy()
    batch_distances(D, metric.edges, metric.offsets, *metric.shape, sources, taken)
    assert np.array_equal(D, settled)
    batch_distances(D, metric.edges, metric.offsets, *metric.shape, sources, 1)
    assert not np.array_equal(D, settled)


def test_edges_integrate_the_bilinear_map_exactly():
    rows, cols, h = 9, 12, 0.7
    y, x = np.mgrid[:rows, :cols] * h
    levels = 2.0 + 0.3 * x + 0.5 * y + 0.4 * x * y  # along a slanted edge of degree two
    prices = edge_integrals(levels, (h, h), neighbours=32)
    for k, step in enumerate(STENCILS[32]):
        tail, head = edge_slices((rows, cols), step)
        middle_x, middle_y = (x[tail] + x[head]) / 2, (y[tail] + y[head]) / 2
        middle = 2.0 + 0.3 * middle_x + 0.5 * middle_y + 0.4 * middle_x * middle_y
        wanted = (levels[tail] + 4 * middle + levels[head]) / 6 * math.hypot(*step) * h
        np.testing.assert_allclose(prices[*tail, k], wanted, rtol=1e-13)


@pytest.mark.parametrize(("neighbours", "factor"), [(8, 1.0824), (16, 1.0275), (32, 1.0131)])
def test_constant_levels_reach_the_stencil_factor_and_not_more(neighbours, factor):
    assert stencil_factor(neighbours, (1.0, 1.0)) == pytest.approx(factor, abs=1e-4)
    n, eps = 61, 0.1
    metric = GraphMetric.from_prices(
        edge_integrals(np.full((n, n), eps), (1.0, 1.0), neighbours=neighbours)
    )
    D = metric.distances(np.array([30 * n + 30]))[0].reshape(n, n) * metric.quantum
    i, j = np.mgrid[:n, :n] - 30
    true = eps * np.hypot(i, j)
    ratio = D[true > 2] / true[true > 2]
    assert ratio.max() <= factor + 1e-4
    assert ratio.max() > factor - 6e-3
    assert ratio.min() > 1 - 6e-3  # quanta rounded down, 300 of them per cell


def test_fast_marching_is_no_metric():
    levels = np.where(np.arange(40) < 20, 0.2, 2.0)[None].repeat(40, axis=0)
    there = fast_marching(levels, (5, 10), 1.0, 1.0)[30, 25]
    back = fast_marching(levels, (30, 25), 1.0, 1.0)[5, 10]
    assert abs(there / back - 1) > 0.01


def test_maps_too_large_are_refused():
    for shape in [(514, 514), (2, 2**18 + 2), (1, 2**18 + 2)]:
        with pytest.raises(InvalidInput, match="at most"):
            GraphMetric.from_prices(np.ones((*shape, 8)))


def test_a_search_up_a_single_column_settles():
    """The first sweep goes the other way and changes nothing, which proves nothing."""
    metric = GraphMetric.from_prices(edge_integrals(random_map(4, (70, 1)), (0.1, 0.1)))
    last = metric.distances(np.array([69]))
    assert np.array_equal(last[0], by_dijkstra(metric)[69])


def test_sums_that_reach_the_limit_stop_there():
    """Sixteen cells of 2^60 each would be 2^64, which wraps around to nothing."""
    metric = GraphMetric.from_prices(edge_integrals(np.full((4, 4), 1e-3), (1.0, 1.0)))
    decay = np.full(LIMIT + 1, 2**40, np.uint64)
    weights = np.full(16, 2**20, np.uint64)
    with pytest.raises(NotPrivate, match="less than"):
        metric.exact_sums(weights, decay)


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_products_do_not_depend_on_threads(threads, monkeypatch):
    """Dense and sparse vectors, matrices, what is near, integers and envelopes; all sources in."""
    metric = GraphMetric.from_prices(edge_integrals(random_map(3, (41, 43)), (0.3, 0.3)))
    rng = np.random.default_rng(4)
    dense, sides = rng.random(metric.cells), rng.random((metric.cells, 3))
    sparse = np.where(rng.random(metric.cells) < 0.4, dense, 0.0)
    weights = rng.integers(0, 1000, metric.cells).astype(np.uint64)
    values = rng.integers(0, LIMIT, (130, metric.cells)).astype(np.uint16)
    wanted = rng.random(metric.cells) < 0.3

    def everything() -> list[np.ndarray]:
        near = NearProduct(metric, kept_bytes=2**20)
        return [
            metric.product(dense),
            metric.product(sparse),
            metric.product(sides, wanted=wanted),
            near(sparse),
            near(dense),  # in part from what was kept
            metric.exact_sums(weights, decay_table(metric.quantum))[0],
            metric.lipschitz(values),
        ]

    monkeypatch.setenv("WHEREISH_THREADS", "3")
    expected = everything()
    monkeypatch.setenv("WHEREISH_THREADS", threads)
    for found, known in zip(everything(), expected, strict=True):
        assert np.array_equal(found, known)
    decay = np.exp(-metric.quantum * metric.distances(np.arange(metric.cells)).astype(float))
    np.testing.assert_allclose(expected[0], decay @ dense, rtol=1e-5)
    np.testing.assert_allclose(expected[1], decay @ sparse, rtol=1e-5)
    np.testing.assert_allclose(expected[2][wanted], (decay @ sides)[wanted], rtol=1e-5)
    assert not expected[2][~wanted].any()


def test_a_product_without_sources_is_nothing():
    metric = GraphMetric.from_prices(edge_integrals(random_map(1, (40, 40)), (0.3, 0.3)))
    assert not metric.product(np.zeros(metric.cells)).any()
    assert not NearProduct(metric)(np.zeros(metric.cells)).any()
