import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from instances import distances, peaked
from whereish.errors import InvalidInput
from whereish.solvers.optimal.spanner import greedy_spanner, shortest_path_closure


@pytest.mark.parametrize("factor", [1.0, 1.05, 1.5, 3.0])
def test_dilation_is_kept_and_reported(factor):
    d = distances(np.random.default_rng(3).uniform(0, 1, (40, 2)))
    spanner = greedy_spanner(d, factor)
    graph = np.full_like(d, np.inf)
    i, j = spanner.edges.T
    graph[i, j] = graph[j, i] = d[i, j]
    reference = shortest_path(np.where(np.isinf(graph), 0, graph), directed=False)
    np.testing.assert_allclose(spanner.graph_distances, reference, rtol=1e-12)
    ratio = (reference[d > 0] / d[d > 0]).max()
    assert spanner.dilation == pytest.approx(max(1.0, ratio), rel=1e-12)
    assert spanner.dilation <= factor * (1 + 1e-9)


def test_larger_factors_need_fewer_edges():
    places, _ = peaked(8, 8)
    d = distances(places)
    counts = [len(greedy_spanner(d, factor).edges) for factor in (1.0, 1.05, 1.2, 2.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0] / 3


def test_points_on_a_line_need_only_neighbours():
    d = distances(np.c_[np.arange(9.0), np.zeros(9)])
    assert len(greedy_spanner(d, 1.0).edges) == 8


@pytest.mark.parametrize("factor", [0.9, float("nan")])
def test_bad_factor(factor):
    with pytest.raises(InvalidInput, match="dilation must be"):
        greedy_spanner(np.zeros((2, 2)), factor)


@settings(max_examples=30)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_closure_is_the_largest_metric_below(n, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0, 5, (n, n))
    lengths = np.minimum(lengths, lengths.T)
    np.fill_diagonal(lengths, 0)
    closed = shortest_path_closure(lengths)
    assert (closed <= lengths).all()
    assert (closed[:, None] <= closed[:, :, None] + closed[None] + 1e-12).all()
