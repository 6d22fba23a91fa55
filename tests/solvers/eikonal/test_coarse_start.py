"""Every other cell: exact where the map is constant, and a start that costs no accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.eikonal.test_cells import mean_squared_error, true_factor
from solvers.eikonal.test_lowering import CELL, tracts
from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.eikonal import lowering
from whereish.solvers.eikonal.cells import law_on_cells
from whereish.solvers.geodesic.coarse import (
    coarse_cells,
    coarse_levels,
    coarse_prices,
    fine_shares,
    fine_weights,
)


@pytest.mark.parametrize("neighbours", [8, 16, 32])
@pytest.mark.parametrize("shape", [(12, 10), (11, 10), (12, 9), (7, 7), (1, 9), (2, 2)])
def test_coarse_prices_of_a_constant_map_are_those_of_larger_cells(shape, neighbours):
    rows, cols = shape
    fine = edge_integrals(np.full(shape, 0.3), (1.0, 2.0), neighbours=neighbours)
    large = np.full(((rows + 1) // 2, (cols + 1) // 2), 0.3)
    np.testing.assert_array_equal(coarse_levels(np.full(shape, 0.3)), large)
    expected = edge_integrals(large, (2.0, 4.0), neighbours=neighbours)
    np.testing.assert_allclose(coarse_prices(fine), expected, rtol=1e-12)


def test_a_coarse_edge_costs_the_mean_of_its_four_paths():
    eps = np.random.default_rng(5).uniform(0.2, 0.9, (8, 8))
    fine = edge_integrals(eps, CELL)
    steps = [(0, 1), (1, 0), (1, 1)]
    for k, (di, dj) in enumerate(steps):
        paths = [
            fine[2 + a, 4 + b, k] + fine[2 + a + di, 4 + b + dj, k] for a in (0, 1) for b in (0, 1)
        ]
        assert coarse_prices(fine)[1, 2, k] == pytest.approx(np.mean(paths), rel=1e-12)


def test_fine_cells_take_over_shares_and_quarters():
    eps = np.full((9, 11), 0.5)
    built = law_on_cells(eps, CELL, frame=0)
    promised = edge_integrals(eps, CELL) / 0.9
    shares = fine_shares(built.law.metric, promised, (17, 22))
    used = built.law.metric.weights[4, 5] * built.law.metric.quantum
    np.testing.assert_allclose(shares[9, 11], used / promised[4, 5], rtol=1e-12)
    assert (shares[-1][:, [1, 2]] == 1.0).all()  # no such edge on the last row
    counts = built.law.weights.astype(float)
    weights = fine_weights(counts, (18, 22))
    np.testing.assert_allclose(weights.reshape(9, 2, 11, 2).sum(axis=(1, 3)).ravel(), counts)
    assert (
        fine_weights(counts, (17, 21)).tolist()
        == weights.reshape(18, 22)[:17, :21].ravel().tolist()
    )


@pytest.mark.parametrize(("seed", "coast"), [(3, True), (4, False), (11, False), (12, True)])
def test_a_map_that_starts_from_its_coarse_law_keeps_its_promise_as_well(seed, coast, monkeypatch):
    n = 37
    eps = tracts(seed, n, count=40, coast=coast, low=0.1, high=0.8)
    errors, starts = [], []
    plain = lowering._first

    def first(edges, start):
        starts.append(edges.secrets.shape)
        return plain(edges, start)

    monkeypatch.setattr(lowering, "_first", first)
    for many in (300, 10**6):
        monkeypatch.setattr(lowering, "_MANY", many)
        built = law_on_cells(eps, CELL, frame=0)
        assert 0.999 < true_factor(built, eps, CELL) <= built.law.factor <= 1.0
        assert true_factor(built, 0.99 * eps, CELL) > 1.0
        errors.append(mean_squared_error(built, CELL))
    assert starts == [(10, 10), (n, n)]
    assert errors[0] < 1.02 * errors[1]


@pytest.mark.parametrize("frame", [0, 2, 3])
def test_a_line_of_secrets_between_rows_that_are_left_out(frame, monkeypatch):
    """With an odd frame the line lies on none of the rows that every other one is."""
    rng = np.random.default_rng(6)
    eps = np.repeat(rng.uniform(0.1, 0.8, 10), 6)[None]
    monkeypatch.setattr(lowering, "_MANY", 60)
    built = law_on_cells(eps, CELL, frame=frame)
    assert 0.99 < true_factor(built, eps, CELL) <= built.law.factor <= 1.0


def test_a_coarse_cell_is_chosen_with_any_of_its_four():
    chosen = np.zeros((5, 6), np.bool_)
    chosen[1, 3] = chosen[4, 4] = True
    expected = np.zeros((3, 3), np.bool_)
    expected[0, 1] = expected[2, 2] = True
    np.testing.assert_array_equal(coarse_cells(chosen), expected)
