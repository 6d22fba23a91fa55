"""Problem IV of Koufogiannis and Pappas, by a metric and a linear programme written out here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel

SIDE = 500.0
LEVELS = np.array([[0.4, 0.5, 0.9], [0.4, 1.2, 2.0], [0.7, 1.9, 1.1]]) * 1e-3
PRIOR = np.array([[1, 2, 3], [1, 6, 9], [2, 4, 8.0]])


def level(x: float, y: float) -> float:
    """The bilinear interpolant between centres, which are whole numbers here."""
    i, j = min(int(y), 1), min(int(x), 1)
    s, t = x - j, y - i
    low = LEVELS[i, j] * (1 - s) + LEVELS[i, j + 1] * s
    high = LEVELS[i + 1, j] * (1 - s) + LEVELS[i + 1, j + 1] * s
    return low * (1 - t) + high * t


def by_hand(reach: int) -> np.ndarray:
    """Floyd and Warshall over segments with coprime steps of at most `reach` cells."""
    places = list(itertools.product(range(3), repeat=2))
    d = np.full((9, 9), np.inf)
    np.fill_diagonal(d, 0)
    for a, b in itertools.permutations(range(9), 2):
        (i, j), (k, m) = places[a], places[b]
        if np.gcd(k - i, m - j) == 1 and max(abs(k - i), abs(m - j)) <= reach:
            length = SIDE * np.hypot(k - i, m - j)
            d[a, b] = (
                length
                * quad(
                    lambda t, i=i, j=j, k=k, m=m: level(j + t * (m - j), i + t * (k - i)),
                    0,
                    1,
                    points=[0.5],
                    epsabs=1e-12,
                )[0]
            )
    for k in range(9):
        d = np.minimum(d, d[:, k, None] + d[None, k])
    return d


def least_loss(d: np.ndarray, prior: np.ndarray, losses: np.ndarray) -> float:
    n = len(d)
    rows = []
    for u, v, y in itertools.product(range(n), repeat=3):
        if u != v:
            row = np.zeros((n, n))
            row[u, y], row[v, y] = 1, -np.exp(d[u, v])
            rows.append(row.ravel())
    ones = np.kron(np.eye(n), np.ones(n))
    found = linprog(
        (prior[:, None] * losses).ravel(),
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=ones,
        b_eq=np.ones(n),
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize(("neighbours", "reach"), [(8, 1), (16, 2)])
def test_the_optimum_on_a_map_is_that_of_the_programme_written_out(neighbours, reach):
    made = wh.PrivacyMap(LEVELS, "500 m")
    d = by_hand(reach)
    places = np.array([[j, i] for i, j in itertools.product(range(3), repeat=2)]) * SIDE
    squared = ((places[:, None] - places) ** 2).sum(axis=-1)
    prior = PRIOR.ravel() / PRIOR.sum()
    best = wh.optimal_map_channel(made, PRIOR, neighbours=neighbours, gap=1e-6)
    np.testing.assert_allclose(best.guarantee.metric.distances, d, rtol=1e-9)
    expected = least_loss(d, prior, squared)
    assert best.status == "optimal"
    assert best.loss == pytest.approx(expected, rel=2e-6)
    assert best.lower_bound <= expected * (1 + 1e-9)
    # Certified against the metric by hand, and against nothing less.
    table = best.matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(table[:, None] / table[None])
    assert (np.nan_to_num(ratios, nan=0.0).max(axis=2) <= d + 1e-9).all()
    assert wh.audit.exact(best, wh.Finite(0.99 * best.guarantee.metric.distances)).refuted
    # Another loss, and the eikonal mechanism, which keeps the same metric and loses more.
    plain = wh.optimal_map_channel(made, PRIOR, "euclidean", neighbours=neighbours, gap=1e-6)
    assert plain.loss == pytest.approx(least_loss(d, prior, np.sqrt(squared)), rel=2e-6)
    eikonal = wh.EikonalMechanism.build(made, places="cells", neighbours=neighbours, frame=0)
    assert best.lower_bound <= eikonal.mse(PRIOR)


def test_maps_along_a_line_and_saved_channels(tmp_path):
    levels = np.array([0.5, 1.0, 2.0, 2.0]) * 1e-3
    best = wh.optimal_map_channel(wh.PrivacyMap(levels, "500 m"), gap=1e-6)
    steps = SIDE * (levels[1:] + levels[:-1]) / 2
    at = np.concatenate([[0], np.cumsum(steps)])
    d = np.abs(at[:, None] - at)
    np.testing.assert_allclose(best.guarantee.metric.distances, d, rtol=1e-9)
    x = SIDE * np.arange(4)
    assert best.loss == pytest.approx(
        least_loss(d, np.full(4, 0.25), (x[:, None] - x) ** 2), rel=2e-6
    )
    path = tmp_path / "best.npz"
    best.save(path)
    read = wh.load(path)
    assert isinstance(read, Channel)
    np.testing.assert_array_equal(read.weights, best.weights)
    assert read.details["map_sha256"] == wh.PrivacyMap(levels, "500 m").digest()


def test_cells_outside_the_declared_region_are_no_secrets():
    plane = wh.Plane.projected("EPSG:32618", wh.Box(-75.20, 39.90, -75.14, 39.95))
    corner = plane.from_degrees([-75.199], [39.901]).coordinates[0]
    made = wh.PrivacyMap(LEVELS, "3 km", tuple(corner - 1500.0), plane)
    inside = plane.in_region(made.raster.centres())
    assert 0 < inside.sum() < 9
    best = wh.optimal_map_channel(made, np.where(inside.reshape(3, 3), PRIOR, 0.0))
    assert len(best.secrets) == inside.sum()
    # Paths may go through the others: cells of the whole map, and the plane's scale is charged.
    cells = np.flatnonzero(inside)
    whole = wh.PrivacyMap(LEVELS / plane.scale, "3 km")
    free = wh.optimal_map_channel(whole).guarantee.metric.distances
    np.testing.assert_allclose(
        best.guarantee.metric.distances, free[np.ix_(cells, cells)], rtol=1e-9
    )
    uniform = wh.optimal_map_channel(made)
    np.testing.assert_array_equal(uniform.secrets.coordinates, best.secrets.coordinates)
    with pytest.raises(InvalidInput, match=r"outside the region"):
        wh.optimal_map_channel(made, PRIOR)


def test_what_does_not_fit_is_refused():
    made = wh.PrivacyMap(LEVELS, "500 m")
    for arguments, message in [
        ({"prior": [1, 2]}, "one entry per cell"),
        ({"neighbours": 12}, "8, 16 or 32"),
        ({"loss": "cubic"}, "loss must be"),
        ({"gap": 0.0}, "gap"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            wh.optimal_map_channel(made, **arguments)
    with pytest.raises(InvalidInput, match="at most"):
        wh.optimal_map_channel(wh.PrivacyMap(np.full((150, 150), 1e-3), "500 m"))
