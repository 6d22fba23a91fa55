import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish.solvers.channels.posterior import euclidean_argmin, geometric_medians


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 25), st.integers(0, 10**6))
def test_cutting_planes_find_the_exact_argmin(n, columns, seed):
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 6, (n, 2)).astype(float)
    candidates = rng.integers(-1, 7, (12, 2)).astype(float)
    weights = rng.gamma(0.3, size=(columns, n)) * (rng.uniform(size=(columns, n)) < 0.7)
    best = euclidean_argmin(weights, places, candidates)
    apart = np.linalg.norm(places[:, None] - candidates[None], axis=2)
    losses = weights @ apart
    chosen = losses[np.arange(columns), best]
    np.testing.assert_allclose(chosen, losses.min(axis=1), rtol=1e-12, atol=1e-12)


def test_geometric_medians():
    square = np.array([[0.0, 0], [2, 0], [2, 2], [0, 2], [1, 1]])
    weights = np.array([[1.0, 1, 1, 1, 0], [1, 0, 0, 0, 5], [0, 0, 0, 0, 0]])
    medians = geometric_medians(weights, square, 1e-10)
    np.testing.assert_allclose(medians[0], [1, 1], atol=1e-6)
    np.testing.assert_allclose(medians[1], [1, 1], atol=1e-6)  # the majority's place
    rng = np.random.default_rng(2)
    places, weights = rng.uniform(0, 1, (30, 2)), rng.gamma(1, size=(1, 30))
    (median,) = geometric_medians(weights, places, 1e-10)
    value = weights @ np.linalg.norm(places - median, axis=1)
    for step in 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):
        assert value < weights @ np.linalg.norm(places - median - step, axis=1)


def test_candidates_of_almost_the_same_loss_are_told_apart():
    """Three hundred candidates beside the median, where the loss is flat."""
    rng = np.random.default_rng(6)
    places, weights = rng.normal(size=(40, 2)), rng.gamma(1, size=(20, 40))
    candidates = rng.normal(scale=0.02, size=(300, 2))
    losses = weights @ np.linalg.norm(places[:, None] - candidates[None], axis=2)
    best = euclidean_argmin(weights, places, candidates)
    assert (np.ptp(losses, axis=1) < 0.06 * losses.min(axis=1)).all()
    np.testing.assert_allclose(losses[np.arange(20), best], losses.min(axis=1), rtol=1e-12)
