"""Certified laws on hard maps, checked against all triples; continuous gradients."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.privacy.maps.stencil import edge_integrals, edge_slices
from whereish.solvers.eikonal.bilinear.places import gradient_factors, law_on_places
from whereish.solvers.eikonal.cells import (
    BuiltLaw,
    exponential_law,
    law_on_cells,
)
from whereish.solvers.eikonal.preconditioner import _solve, approximate_inverse_factor
from whereish.solvers.eikonal.squared_error import squared_errors
from whereish.solvers.eikonal.weights import closed_form_weights, nonnegative_weights
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import TABLE_BITS, decay_table
from whereish.solvers.geodesic.near import NearProduct

N, SIDE = 40, 2.5
TILES = np.ones((14, 14))


def maps() -> dict[str, np.ndarray]:
    x = (np.arange(N) + 0.5) * SIDE
    grid, other = np.meshgrid(x, x)
    tight = np.full((N, N), 0.4)
    tight[N // 2, N // 2] = 0.04
    return {
        "step 10:1": np.where(grid > 50, 0.4, 0.04),
        "valley": 0.4 - 0.34 * np.exp(-((grid - 50) ** 2) / 2 / 4.0**2),
        "single tight cell": tight,
        "checkerboard": np.where((grid // 20 + other // 20) % 2 == 1, 0.4, 0.08),
    }


def log_law(built: BuiltLaw) -> np.ndarray:
    law = built.law
    D = law.metric.distances(built.secrets)
    masses = law.weights * law.table[D]
    assert np.array_equal(masses.sum(axis=1), law.sums[built.secrets])
    used = law.weights > 0
    logs = np.log(masses[:, used].astype(float))
    return logs - np.log(law.sums[built.secrets].astype(float))[:, None]


def true_factor(built: BuiltLaw, eps: np.ndarray, cell: tuple[float, float]) -> float:
    """Largest log-ratio over the promise, by brute force over edges and reports."""
    logs = log_law(built)
    neighbours = built.law.metric.neighbours
    prices = edge_integrals(eps, cell, neighbours=neighbours)
    cells = np.arange(eps.size).reshape(eps.shape)
    worst = 0.0
    for k, step in enumerate(built.law.metric.steps):
        tail, head = edge_slices(eps.shape, step)
        if cells[tail].size:
            apart = np.abs(logs[cells[tail].ravel()] - logs[cells[head].ravel()]).max(axis=1)
            worst = max(worst, float((apart / prices[*tail, k].ravel()).max()))
    return worst


def mean_squared_error(built: BuiltLaw, cell: tuple[float, float]) -> float:
    rows, cols = built.law.metric.shape
    i, j = np.divmod(np.arange(rows * cols), cols)
    places = np.column_stack([j * cell[1], i * cell[0]])
    law = built.law
    return float(squared_errors(law, built.secrets, places, places).mean())


@pytest.mark.parametrize("name", list(maps()))
def test_hard_maps_are_certified_tightly_and_beat_the_exponential(name):
    eps, cell = maps()[name], (SIDE, SIDE)
    plain = np.linalg.solve(
        dense(GraphMetric.from_prices(edge_integrals(eps, cell))), np.ones(N * N)
    )
    assert plain.min() < 0  # the published construction fails here
    built = law_on_cells(eps, cell)
    worst = true_factor(built, eps, cell)
    assert worst <= built.law.factor <= 1.0
    assert worst > 0.999
    assert true_factor(built, 0.99 * eps, cell) > 1.0  # 0.99 of the map is not kept
    assert mean_squared_error(built, cell) < mean_squared_error(exponential_law(eps, cell), cell)


def test_the_exponential_baseline_is_private():
    eps = maps()["checkerboard"]
    built = exponential_law(eps, (SIDE, SIDE))
    assert true_factor(built, eps, (SIDE, SIDE)) <= built.law.factor <= 1.0


def test_a_frame_keeps_the_weights_nonnegative_and_the_secrets_inside():
    i, j = np.mgrid[:N, :N] / N
    eps = 0.1 + 0.1 * np.exp(-((i - 0.5) ** 2 + (j - 0.4) ** 2) * 8)
    built = law_on_cells(eps, (SIDE, SIDE))
    assert built.frame > 0
    assert built.law.rounds == 1
    assert built.law.dropped == 0
    assert np.flatnonzero(built.law.sums).tolist() == built.secrets.tolist()
    assert true_factor(built, eps, (SIDE, SIDE)) <= built.law.factor <= 1.0


def dense(metric: GraphMetric):
    return np.exp(-metric.quantum * metric.distances(np.arange(metric.cells)).astype(float))


def solved_weights(metric, eps, cell, **options):
    return nonnegative_weights(
        metric.product,
        NearProduct(metric, **options),
        partial(approximate_inverse_factor, eps, cell),
        closed_form_weights(eps, cell),
        tolerance=1e-5,
    )


def test_weights_solve_the_system_and_follow_the_closed_form():
    eps = np.full((60, 60), 0.5)
    metric = GraphMetric.from_prices(edge_integrals(eps, (1.0, 1.0), neighbours=32))
    guess = closed_form_weights(eps, (1.0, 1.0))
    assert guess[0] == pytest.approx(0.25 / (2 * math.pi))
    solved = solved_weights(metric, eps, (1.0, 1.0))
    image = metric.product(solved.values)
    free = solved.values > 0
    assert np.abs(image[free] - 1).max() < 2e-5
    assert (image[~free] > 1 - 1e-3).all()
    middle = solved.values.reshape(60, 60)[20:40, 20:40]
    assert np.abs(middle / guess[0] - 1).max() < 0.1


@pytest.mark.parametrize("name", list(maps()))
def test_weights_are_the_minimum_where_cells_are_dropped(name):
    """Both conditions of the bounded problem, in doubles: E·w = 1 on the support, >= 1 off it."""
    eps, cell = maps()[name], (SIDE, SIDE)
    metric = GraphMetric.from_prices(edge_integrals(eps, cell))
    solved = solved_weights(metric, eps, cell)
    image = dense(metric) @ solved.values
    free = solved.values > 0
    assert 0 < solved.dropped == np.count_nonzero(~free)
    assert np.abs(image[free] - 1).max() < 2e-5
    assert image[~free].min() > 1 - 2e-4


def test_a_preconditioner_of_the_free_cells_is_the_inverse_of_their_block():
    rng = np.random.default_rng(5)
    eps, cell = np.full((24, 24), 0.4), (1.0, 1.0)
    E = dense(GraphMetric.from_prices(edge_integrals(eps, cell, neighbours=32)))
    free = rng.random(24 * 24) < 0.5

    def spread(factor):
        columns = np.array([factor.preconditioned(unit) for unit in np.eye(24 * 24)])
        inverse = columns[np.ix_(free, free)]
        values = np.linalg.eigvals(inverse @ E[np.ix_(free, free)]).real
        return values.max() / values.min()

    of_block = spread(approximate_inverse_factor(eps, cell, free))
    of_all = spread(approximate_inverse_factor(eps, cell))
    assert of_block < 6
    assert of_all > 2 * of_block


@pytest.mark.parametrize("n", [1, 2, 7, 21])
def test_small_systems_are_solved_with_pivots(n):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    A[0, 0] = 0.0 if n > 1 else 1.0
    solution = b.copy()
    _solve(A.copy(), solution)
    assert solution == pytest.approx(np.linalg.solve(A, b), rel=1e-9)


def test_the_preconditioner_is_close_to_the_inverse():
    eps, cell = np.exp(np.random.default_rng(3).normal(size=(9, 8)) * 0.2) * 0.4, (1.0, 1.2)
    factor = approximate_inverse_factor(eps, cell)
    G = np.zeros((72, 72))
    np.add.at(G, (np.arange(72)[:, None], factor.columns), factor.entries)
    residual = np.random.default_rng(4).normal(size=72)
    assert factor.preconditioned(residual) == pytest.approx(G.T @ G @ residual, rel=1e-12)
    metric = GraphMetric.from_prices(edge_integrals(eps, cell, neighbours=32))
    E = np.column_stack([metric.product(one) for one in np.eye(72)])
    spectrum = np.linalg.eigvals(G.T @ G @ E).real
    assert 0.5 < spectrum.min() < spectrum.max() < 2.0


def test_the_table_falls_no_faster_than_its_quantum():
    from flint import arb, ctx

    ctx.prec = 200
    quantum = 22.0 / 65535
    table = [int(t) for t in decay_table(quantum)]
    assert table[0] == 2**TABLE_BITS
    growth = arb(quantum).exp()
    for i in list(range(200)) + list(range(200, 65535, 97)):
        assert table[i] <= arb(table[i + 1]) * growth
        assert table[i + 1] - 1 < arb(table[i]) / growth  # and no slower than it must
    assert all(a >= b > 0 for a, b in itertools.pairwise(table))


@pytest.mark.parametrize("shape", [(8, 9), (1, 20)])
def test_continuous_places_keep_the_gradient_everywhere(shape):
    """Brute force over every report, at corners and at random places of each square."""
    rng = np.random.default_rng(5)
    eps = 0.2 * np.exp(0.04 * np.cumsum(rng.normal(size=shape), axis=1))
    cell = (1.2, 0.8)
    built = law_on_places(eps, cell)
    assert built.gradient_factor is not None
    assert 0.9 < built.gradient_factor <= 1.0
    P = np.exp(log_law(built)).reshape(*shape, -1)
    worst = 0.0
    rows, cols = max(shape[0] - 1, 1), shape[1] - 1
    up = 1 if shape[0] > 1 else 0
    for s, t in [(0, 0), (0, 1), (1, 0), (1, 1), *rng.random((20, 2))]:
        a, b = P[:rows, :cols], P[:rows, 1:]
        c, d = P[up : rows + up, :cols], P[up : rows + up, 1:]
        here = (1 - t) * ((1 - s) * a + s * b) + t * ((1 - s) * c + s * d)
        gx = ((1 - t) * (b - a) + t * (d - c)) / cell[1]
        gy = ((1 - s) * (c - a) + s * (d - b)) / cell[0]
        e = eps[:rows, :cols], eps[:rows, 1:], eps[up : rows + up, :cols], eps[up : rows + up, 1:]
        level = (1 - t) * ((1 - s) * e[0] + s * e[1]) + t * ((1 - s) * e[2] + s * e[3])
        worst = max(worst, float((np.hypot(gx, gy) / here / level[..., None]).max()))
    assert worst <= 1.0
    assert worst > 0.8
    per_cell = law_on_cells(eps, cell)
    assert np.nanmax(gradient_factors(per_cell, eps, cell)) > 1.0


def test_one_cell_non_square_cells_and_one_dimension():
    alone = law_on_cells(np.array([[0.5]]), (1.0, 1.0))
    assert alone.law.factor == 0.0
    assert np.exp(log_law(alone)).tolist() == [[1.0]]
    for eps in (np.full((7, 9), 0.3), 0.2 + 0.1 * np.sin(np.arange(30.0))[None]):
        built = law_on_cells(eps, (1.0, 2.0))
        assert true_factor(built, eps, (1.0, 2.0)) <= built.law.factor <= 1.0


def test_cells_too_fine_for_the_quantum_are_refused():
    with pytest.raises(InvalidInput, match="larger cells"):
        law_on_cells(np.full((5, 5), 1e-3), (1.0, 1.0))
