"""The law of landmarks: what it keeps, how near it is to the best, and where it does not exist."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.audit import exact
from whereish.mechanisms.maps.optimal import optimal_map_channel
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import edge_integrals, edge_slices
from whereish.solvers.eikonal.cells import law_on_cells
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.tables.carried import horizon_of, law_of_landmarks, metric_of_table
from whereish.solvers.tables.columns import middle as middle_of
from whereish.solvers.tables.error import table_errors, table_laws, table_means


def levels(kind: str, n: int, low: float = 3.0, ratio: float = 8.0) -> np.ndarray:
    """Nats per cell of a map of `low` to `low`·`ratio` nats across."""
    rng = np.random.default_rng(len(kind))
    i, j = (np.indices((n, n)) + 0.5) / n
    share = {
        "bump": np.exp(-((i - 0.4) ** 2 + (j - 0.5) ** 2) * 9),
        "steps": np.repeat(np.repeat(rng.random((4, 4)), n // 4, 0), n // 4, 1),
        "coast": np.where(j + 0.1 * np.sin(7 * i) > 0.6, 0.0, 0.3 + 0.7 * i),
        "constant": np.zeros((n, n)),
    }[kind]
    return np.asarray(low * ratio**share / n)


def centres(shape: tuple[int, int]) -> np.ndarray:
    return np.asarray(np.indices(shape).reshape(2, -1).T, float)


def law_of(eps: np.ndarray, prior: np.ndarray | None = None):
    share = np.full(eps.size, 1 / eps.size) if prior is None else prior / prior.sum()
    prices = edge_integrals(eps, (1.0, 1.0), neighbours=16)
    return law_of_landmarks(prices, centres(eps.shape), share.ravel())


def priors(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    half = np.zeros((n, n))
    half[:, : n // 2] = rng.gamma(0.5, size=(n, n // 2))
    one = np.zeros((n, n))
    one[n // 3, n // 2] = 1.0
    return {"uniform": np.ones((n, n)), "half empty": half, "one cell": one}


@pytest.mark.parametrize("prior", ["uniform", "half empty", "one cell"])
@pytest.mark.parametrize("kind", ["bump", "steps", "coast", "constant"])
def test_the_exact_audit_confirms_the_certificate_and_refutes_less(kind, prior):
    eps = levels(kind, 12)
    law = law_of(eps, priors(12)[prior])
    assert law is not None
    assert law.factor <= 1.0
    cells = np.arange(eps.size)
    geodesic = MapGeodesic(PrivacyMap(eps, (1.0, 1.0)))
    distances = geodesic.between_cells(cells[:, None], cells[None])
    distances = np.minimum(distances, distances.T)
    laws = table_laws(law)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
    assert exact(laws, distances).holds
    if prior != "one cell":  # where everybody may report the same
        assert exact(laws, 0.98 * distances).refuted


@pytest.mark.parametrize("kind", ["bump", "steps", "coast"])
def test_it_is_near_the_best_channel_and_better_than_laws_of_distances(kind):
    eps = levels(kind, 12)
    uniform = np.full(eps.size, 1 / eps.size)
    law, places = law_of(eps), centres(eps.shape)
    assert law is not None
    moved = uniform @ table_errors(law, places, table_means(law, places, uniform))
    best = optimal_map_channel(PrivacyMap(eps, (1.0, 1.0)), loss="squared", gap=0.01)
    assert best.lower_bound * 0.995 < moved < 1.05 * best.loss  # reports need not be cells
    built = law_on_cells(eps, (1.0, 1.0), prior=uniform)
    assert built.comparison is not None
    assert built.comparison.chosen == "landmarks"
    assert moved < 0.95 * built.comparison.eikonal


def test_more_cells_than_landmarks_lose_little():
    """A law on 48 x 48 cells, of a few hundred landmarks, against the best on 12 x 12."""
    errors = []
    for n in (12, 48):
        eps = levels("coast", n)
        law, places = law_of(eps), centres(eps.shape) / n
        assert law is not None
        uniform = np.full(eps.size, 1 / eps.size)
        errors.append(uniform @ table_errors(law, places, table_means(law, places, uniform)))
        assert len(law.weights) < 300
    assert 0.95 < errors[1] / errors[0] < 1.05


def test_errors_and_means_are_those_of_the_matrix():
    eps = levels("steps", 8)
    prior = np.random.default_rng(2).gamma(1.0, size=64)
    prior /= prior.sum()
    law, places = law_of(eps, prior), centres(eps.shape)
    assert law is not None
    laws, means = table_laws(law), table_means(law, places, prior)
    for y in range(len(law.weights)):
        share = prior * laws[:, y]
        np.testing.assert_allclose(means[y], share @ places / share.sum(), rtol=1e-9)
    away = ((places[:, None] - means[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(table_errors(law, places, means), (laws * away).sum(axis=1))
    np.testing.assert_array_equal(table_laws(law, np.array([3, 5])), laws[[3, 5]])
    assert len(set(law.reported.tolist())) == len(law.weights)


def test_a_wide_map_has_no_table():
    assert law_of(levels("bump", 16, low=30.0, ratio=1.0)) is None
    built = law_on_cells(levels("bump", 16, 30.0, 1.0), (1.0, 1.0), prior=np.full(256, 1 / 256))
    assert built.table is None
    assert built.comparison is not None
    assert built.comparison.landmarks is None


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 40), (40, 1), (3, 50)])
def test_lines_and_single_cells(shape):
    law = law_of(np.full(shape, 0.1))
    assert law is not None
    assert law.factor <= 1.0
    assert law.distances.shape[1] == shape[0] * shape[1]


def test_a_middle_keeps_the_metric_and_leaves_alone_what_does():
    rng = np.random.default_rng(1)
    metric = metric_of_table(edge_integrals(levels("steps", 12), (1.0, 1.0), neighbours=16), 8.0)
    kept = metric.distances(np.array([5, 77]))
    np.testing.assert_array_equal(middle_of(metric, kept, LIMIT - kept), kept)
    rough = rng.integers(0, 20_000, (3, 144)).astype(np.uint16)
    middle = middle_of(metric, rough, LIMIT - rough).reshape(3, 12, 12).astype(int)
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        change = np.abs(middle[:, *tail] - middle[:, *head])
        assert (change <= metric.weights[*tail, k]).all()


def test_the_largest_functions_below_are_those_of_all_pairs():
    rng = np.random.default_rng(4)
    metric = GraphMetric.from_prices(edge_integrals(levels("bump", 9), (1.0, 1.0), neighbours=8))
    values = rng.integers(0, 9000, (70, 81)).astype(np.uint16)
    pairs = metric.distances(np.arange(81)).astype(int)
    wanted = np.minimum((values[:, :, None] + pairs[None]).min(axis=1), LIMIT)
    np.testing.assert_array_equal(metric.lipschitz(values), wanted)


def test_the_horizon_is_read_off_the_metric():
    prices = np.full((2, 2, 4), 0.3)
    for eighths in range(1, 8 * 22 + 1):
        metric = metric_of_table(prices, eighths / 8)
        assert horizon_of(metric) == eighths / 8
        again = metric_of_table(prices, horizon_of(metric))
        assert again.quantum == metric.quantum
        np.testing.assert_array_equal(again.weights, metric.weights)
