"""Metrics on sites: every composition of matrix metrics and metrics on coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.privacy.finite import Finite
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric, Scaled, Sum
from whereish.privacy.norms import Chebyshev, Euclidean, Geodesic, GreatCircle, Manhattan
from whereish.privacy.on_sites import check_fits, indexed, restricted_metric, site_distances
from whereish.privacy.tuples import TupleMax, TupleSum
from whereish.solvers.channels.rows import TOTAL

COUNT = 6
PLACES = np.random.default_rng(3).normal(0, 5, (COUNT, 2))


def _matrix(seed: int, largest: float = 3.0) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).uniform(0, largest, (COUNT, COUNT)), 1)
    return upper + upper.T


matrices = st.integers(0, 2**32 - 1).map(lambda seed: Finite(_matrix(seed)))
norms = st.sampled_from([Euclidean(), Manhattan(), Chebyshev()])
factors = st.floats(0.01, 10.0)


def _nested(parts: st.SearchStrategy[Metric]) -> st.SearchStrategy[Metric]:
    return st.one_of(
        st.builds(Scaled, factors, parts),
        st.lists(parts, min_size=1, max_size=3).map(lambda found: Sum(tuple(found))),
        st.lists(parts, min_size=1, max_size=3).map(lambda found: Sum.of(*found)),
    )


expressions = st.recursive(st.one_of(matrices, norms), _nested, max_leaves=8)
rows_of = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=COUNT, unique=True)


def _by_definition(metric: Metric, i: int, j: int) -> float:
    if isinstance(metric, Scaled):
        return metric.factor * _by_definition(metric.base, i, j)
    if isinstance(metric, Sum):
        return sum(_by_definition(part, i, j) for part in metric.parts)
    if isinstance(metric, Finite):
        return float(metric.distances[i, j])
    return float(metric(PLACES[i], PLACES[j]))


@given(expressions, rows_of)
def test_restriction_keeps_every_distance_of_every_composition(metric, rows):
    index = np.array(rows)
    distances, _ = site_distances(metric, COUNT, PLACES)
    wanted = [[_by_definition(metric, i, j) for j in range(COUNT)] for i in range(COUNT)]
    np.testing.assert_allclose(distances, wanted, rtol=1e-14)
    some, _ = site_distances(restricted_metric(metric, index), len(rows), PLACES[index])
    np.testing.assert_array_equal(some, distances[np.ix_(index, index)])


@given(st.recursive(matrices, _nested, max_leaves=5), rows_of, st.integers(1, 3))
def test_restriction_of_metrics_on_tuples_of_sites(base, rows, size):
    index, generator = np.array(rows), np.random.default_rng(len(rows))
    x, y = generator.integers(0, len(rows), (2, 20, size))
    for kind in (TupleSum, TupleMax):
        metric = 0.5 * kind(base, size)
        assert indexed(metric)
        np.testing.assert_allclose(
            restricted_metric(metric, index)(x, y), metric(index[x], index[y]), rtol=1e-14
        )


def _channel(metric: Metric, leakage: np.ndarray) -> wh.Channel:
    """Two reports; secret i gives the first with probability exp(-leakage_i) / 2."""
    first = (TOTAL * np.exp(-leakage) / 2).astype(np.int64)
    weights = np.column_stack([first, TOTAL - first])
    promise = Guarantee(metric, Basis.CERTIFIED, "a test")
    return wh.Channel(
        wh.Sites(wh.Points(PLACES, wh.Plane())),
        wh.Sites(wh.Points(PLACES[:2], wh.Plane())),
        weights,
        promise,
    )


def test_a_restricted_channel_on_a_sum_of_matrices_certifies_no_falsehood(tmp_path):
    """Issue 11, fault 8: secrets 4 and 5 leak 9, and were promised what 0 and 1 are: 0.1."""
    leakage = np.array([0.0, 0.05, 0.0, 0.0, 9.0, 0.0])
    true = np.abs(leakage[:, None] - leakage[None])
    part = np.where(true > 0, true, 0.05) * (1 - np.eye(COUNT))
    metric = 0.51 * Finite(part) + Finite(0.5 * part)
    channel = _channel(metric, leakage)
    assert channel.verify().upper <= 1
    some = channel.restricted([4, 5])
    (distances, _) = site_distances(some.guarantee.metric, 2, some.secrets.coordinates)
    assert distances[0, 1] == pytest.approx(9 * 1.01)
    assert 0.98 < some.verify().upper <= 1
    some.save(tmp_path / "some.npz")
    again = wh.Channel.load(tmp_path / "some.npz")
    assert again.verify().upper == pytest.approx(some.verify().upper)
    # What was certified before: the first rows and columns, for whatever rows are kept.
    short = Guarantee(Sum((Finite(part[:2, :2]),)), Basis.CERTIFIED, "a test")
    with pytest.raises(NotPrivate):
        wh.Channel(some.secrets, some.reports, some.weights, short).verify()


@settings(max_examples=40)
@given(expressions, rows_of)
def test_a_restricted_channel_verifies_saves_and_loads(tmp_path_factory, metric, rows):
    distances, _ = site_distances(metric, COUNT, PLACES)
    near = distances[~np.eye(COUNT, dtype=bool)].min()
    # At most 20 nats, so that no weight rounds to zero.
    leakage = np.linspace(0, min(0.9 * near, 20.0), COUNT)
    some = _channel(metric, leakage).restricted(rows)
    upper = some.verify().upper
    assert upper <= 1
    path = tmp_path_factory.mktemp("saved") / "some.npz"
    some.save(path)
    assert wh.Channel.load(path).verify().upper == pytest.approx(upper, abs=1e-9)


def test_a_matrix_metric_takes_indices_and_no_coordinates():
    """Coordinates that are truncated to indices are other sites: a false certificate."""
    metric = Finite(_matrix(1))
    assert metric([0, 1], [2, 5]).tolist() == [metric.distances[0, 2], metric.distances[1, 5]]
    for sites in ([0.0, 1.0], [-1], [COUNT], PLACES):
        with pytest.raises(InvalidInput, match="indices"):
            metric(sites, sites)
    mixed = metric + Euclidean()
    with pytest.raises(InvalidInput, match="indices"):
        mixed.matrix(PLACES)
    assert not indexed(mixed)
    with pytest.raises(InvalidInput, match="of the 5 sites"):
        site_distances(mixed, 5, PLACES[:5])
    with pytest.raises(InvalidInput, match="must come with `sites`"):
        site_distances(mixed, COUNT)
    with pytest.raises(InvalidInput, match="no tuples"):
        site_distances(TupleSum(metric, 2), COUNT)


def test_a_composition_that_is_not_known_must_not_hide_a_matrix():
    @dataclass(frozen=True)
    class Larger(Metric):
        parts: tuple[Metric, ...]
        description = "the larger"

        def __call__(self, x, y):
            return np.maximum(*(part(x, y) for part in self.parts))

    hidden = 2.0 * Larger((Euclidean(), 0.5 * Finite(_matrix(1))))
    for refused in (
        lambda: site_distances(hidden, COUNT, PLACES),
        lambda: restricted_metric(hidden, np.arange(2)),
    ):
        with pytest.raises(InvalidInput, match="inside"):
            refused()
    open_one = Larger((Euclidean(), Manhattan()))
    assert site_distances(open_one, COUNT, PLACES)[0].shape == (COUNT, COUNT)


@pytest.mark.parametrize(
    ("metric", "metres", "degrees"),
    [
        (Euclidean(), True, False),
        (Manhattan(), True, False),
        (wh.Distinguishability.location("1 km", 5.0).metric, True, False),
        (GreatCircle(), False, True),
        (Geodesic(), False, True),
        (Finite(_matrix(2)), True, True),
        (2.0 * Geodesic() + Finite(_matrix(2)), False, True),
        (TupleMax(0.1 * Euclidean(), 3), True, False),
    ],
    ids=lambda value: getattr(value, "description", None),
)
def test_metrics_of_degrees_and_of_metres_are_told_apart(metric, metres, degrees):
    for space, fits in ((wh.Plane(), metres), (wh.Line(), metres), (wh.Sphere(), degrees)):
        assert metric.fits(space) is fits
        if fits:
            check_fits(metric, space)
            continue
        with pytest.raises(InvalidInput, match="the metric must be one on"):
            check_fits(metric, space)


def test_the_metric_of_a_map_is_one_on_its_own_plane():
    row = wh.PrivacyMap([[1e-3, 1e-3]], "500 m")
    metric = wh.EikonalMechanism.exponential(row).metric
    assert metric.fits(row.plane)
    assert not metric.fits(wh.Sphere())
    assert not metric.fits(wh.Line())
