import numpy as np
import pytest

from instances import distances, peaked
from whereish.errors import NotPrivate
from whereish.randomness import SeededRandomness
from whereish.solvers.channels.ratios import largest_ratio, pair_leakage
from whereish.solvers.channels.rows import TOTAL, certified_rows, draw_columns, rounded_rows


def tight_matrix(metric):
    """Exponential at half the metric."""
    k = np.exp(-metric / 2)
    return k / k.sum(axis=1, keepdims=True)


def test_rows_sum_exactly_and_keep_the_metric():
    metric = 1.07e-3 * distances(peaked(6, 6)[0])
    rows = certified_rows(tight_matrix(metric), metric)
    assert all(sum(row) == TOTAL for row in rows.weights.tolist())
    assert rows.ratio.upper <= 1
    assert rows.mixed < 1e-9


def test_places_that_almost_coincide_are_mixed_with_little():
    """1e-12 over their distance is a thousandth: on steep metrics that is most of the loss."""
    metric = distances(np.array([[0.0, 0.0], [1e-9, 0.0], [0.0, 1e-8], [40.0, 0.0], [0.0, 45.0]]))
    rows = certified_rows(tight_matrix(metric), metric)
    assert rows.ratio.upper <= 1
    assert rows.mixed <= 1e-8


def test_a_matrix_that_is_not_private_is_refused():
    metric = 1.07e-3 * distances(peaked(4, 4)[0])
    with pytest.raises(NotPrivate, match="integer rows"):
        certified_rows(tight_matrix(metric), 0.4 * metric)


def test_solver_zeros_are_mended_or_refused():
    metric = np.array([[0.0, 2.0], [2.0, 0.0]])
    mended = certified_rows(np.array([[1 - 1e-9, 1e-9], [1 - 1e-9, 1e-9]]), metric)
    assert (mended.weights > 0).all()
    with pytest.raises(NotPrivate):
        certified_rows(np.eye(2), metric)


def test_leakage_is_the_least_metric_that_is_kept():
    rng = np.random.default_rng(5)
    weights = rounded_rows(rng.dirichlet(np.ones(6), size=5))
    weights = np.vstack([weights, weights[:1]])
    leakage = pair_leakage(weights)
    assert leakage[0, 5] == 0
    assert largest_ratio(weights, leakage).upper <= 1
    assert largest_ratio(weights, 0.99 * leakage).lower > 1
    assert np.isinf(pair_leakage(rounded_rows(np.eye(3)))[0, 1])


def test_draws_follow_the_integers():
    weights = rounded_rows(np.array([[0.5, 0.25, 0.0, 0.25]]))
    cumulative = np.cumsum(weights, axis=1)
    last = np.array([2**64 - 1, 0, 2**63, 2**63 - 4], dtype=np.uint64)
    assert draw_columns(cumulative, np.zeros(4, np.int64), last).tolist() == [3, 0, 1, 0]
    words = SeededRandomness(4).words(400_000)
    counts = np.bincount(draw_columns(cumulative, np.zeros(words.size, np.int64), words))
    np.testing.assert_allclose(counts / words.size, [0.5, 0.25, 0.0, 0.25], atol=0.004)
    assert counts[2] == 0


def test_rows_are_certified_by_the_upper_bound():
    """A tight channel, distances known to one part in 10^9: what may be broken is not kept."""
    ratio, places = np.exp(-0.7), np.arange(6)
    tight = ratio ** np.abs(places[:, None] - places) / (1 + ratio)
    tight[:, 1:-1] *= 1 - ratio
    metric = 0.7 * np.abs(places[:, None] - places).astype(float)
    rows = certified_rows(tight, metric, metric_error=1e-9)
    assert rows.ratio.upper <= 1
    assert rows.ratio.lower > 1 - 1e-6


def test_what_rounding_leaves_goes_where_it_changes_least():
    """Thirds of 2^62 and one tiny entry, which must stay what it is."""
    matrix = np.array([[1 / 3, 1 / 3, 1 / 3 - 1e-15, 1e-15]])
    weights = rounded_rows(matrix)[0]
    assert sum(weights.tolist()) == TOTAL
    assert abs(int(weights[3]) - 1e-15 * TOTAL) <= 1
