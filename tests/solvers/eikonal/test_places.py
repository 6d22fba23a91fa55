"""Continuous places: the norm of rounding, the bound over a square, the flat core."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import STENCILS, edge_integrals
from whereish.solvers.eikonal.bilinear.bound import _ratio_boxes, corner_levels, square_factors
from whereish.solvers.eikonal.bilinear.gradients import largest_gradients
from whereish.solvers.eikonal.bilinear.places import (
    gradient_factors,
    law_on_places,
    prices_on_places,
)
from whereish.solvers.eikonal.cells import law_on_cells
from whereish.solvers.eikonal.rounding_norm import axis_levels
from whereish.solvers.eikonal.squared_error import squared_errors
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import decay_table

GRID = np.linspace(0.0, 1.0, 33)


def true_factor(P: np.ndarray, eps: np.ndarray, cell: tuple[float, float]) -> float:
    """Largest |grad P|/(eps·P) of one square, by sampling."""
    t, s = np.meshgrid(GRID, GRID, indexing="ij")

    def bilinear(c: np.ndarray) -> np.ndarray:
        return (1 - t) * ((1 - s) * c[0, 0] + s * c[0, 1]) + t * ((1 - s) * c[1, 0] + s * c[1, 1])

    across = ((1 - t) * (P[0, 1] - P[0, 0]) + t * (P[1, 1] - P[1, 0])) / cell[1]
    down = ((1 - s) * (P[1, 0] - P[0, 0]) + s * (P[1, 1] - P[0, 1])) / cell[0]
    return float((np.hypot(across, down) / (bilinear(P) * bilinear(eps))).max())


def corner_slopes(P: np.ndarray, cell: tuple[float, float]) -> np.ndarray:
    across, down = (P[:, 1] - P[:, 0]) / cell[1], (P[1] - P[0]) / cell[0]
    return np.hypot(across[:, None], down[None]) / P


corners = st.lists(st.floats(0.3, 3.0), min_size=4, max_size=4).map(
    lambda values: np.array(values).reshape(2, 2)
)


@settings(max_examples=200)
@given(P=corners, eps=corners, height=st.floats(0.2, 2.0))
def test_the_bound_of_a_square_holds_inside_it(P, eps, height):
    cell = (height, 1.0)
    slopes = corner_slopes(P, cell)
    proven = float(square_factors(slopes, eps, cell))
    assert true_factor(P, eps, cell) <= proven * (1 + 1e-9)
    assert proven >= (slopes / eps).max()
    # Never worse than the largest slope over the least level, which would do, too.
    assert proven <= slopes.max() / eps.min() * (1 + 1e-9)


def test_corners_alone_do_not_bound_a_square_with_varying_levels():
    """Both P and eps rise to the right: inside, |grad P| / (eps P) exceeds both corners."""
    eps, P = np.array([[1.0, 2.0]] * 2), np.array([[1.0, 2.0]] * 2)
    slopes = np.broadcast_to(eps, (2, 2))  # as large as the corners alone allow
    assert square_factors(slopes, eps, (1.0, 1.0)) > 1.05
    assert true_factor(P, eps, (1.0, 1.0)) == pytest.approx(1.0)
    flat = np.ones((2, 2))
    assert square_factors(flat, flat, (1.0, 1.0)) == pytest.approx(1.0)


def test_levels_at_corners():
    levels = np.arange(6.0).reshape(2, 3)
    assert corner_levels(levels).tolist() == [[[[0, 1], [3, 4]], [[1, 2], [4, 5]]]]
    assert corner_levels(levels[:1]).tolist() == [[[[0, 1]], [[1, 2]]]]


@pytest.mark.parametrize("price", [0.05, 0.5, 2.0])
def test_the_norm_of_rounding_on_square_cells(price):
    """ln(1 + eps·h) along an axis, 2·ln(1 + eps·h/sqrt 2) along a diagonal, at most."""
    eps = np.full((5, 5), price)
    prices = prices_on_places(axis_levels(eps, (1.0, 1.0)), (1.0, 1.0), 32)
    steps = STENCILS[32]
    axis, diagonal = prices[1, 1, steps.index((0, 1))], prices[1, 1, steps.index((1, 1))]
    assert 0.975 < axis / math.log1p(price) <= 1.0
    assert 0.975 < diagonal / (2 * math.log1p(price / math.sqrt(2))) <= 1.0
    # The gradient of every cone of directions is within the set, up to the interpolated table.
    first = sorted((math.atan2(i, j), k) for k, (i, j) in enumerate(steps) if j >= 0)
    for (_, a), (_, b) in itertools.pairwise(first):
        normals = np.array([steps[a][::-1], steps[b][::-1]], float)
        p, q = np.linalg.solve(normals, prices[1, 1, [a, b]])
        assert math.hypot(math.expm1(p), math.expm1(q)) <= price * (1 + 1e-4)


def test_a_flat_core_changes_the_table_nowhere_else():
    quantum, core = 22.0 / 65535, 300
    table, flat = decay_table(quantum), decay_table(quantum, core)
    assert (flat[:core] == table[core]).all()
    assert np.array_equal(flat[core:], table[core:])


def error_in_the_middle(law, n: int) -> float:
    """Squared error at constant level 1 on n x n cells of a square of side 12."""
    side = 12.0 / n
    built = law(np.full((n, n), 1.0), (side, side))
    i, j = np.divmod(np.arange(built.law.metric.cells), built.law.metric.shape[1])
    places = np.column_stack([j, i]) * side
    middle = built.secrets[[n // 2 * n + n // 2]]
    law = built.law
    return float(squared_errors(law, middle, places, places)[0])


def test_finer_cells_cost_less_and_cutting_the_tip_off_is_why(monkeypatch):
    places = [error_in_the_middle(law_on_places, n) for n in (12, 24, 48)]
    cells = [error_in_the_middle(law_on_cells, n) for n in (12, 24, 48)]
    ratios = np.array(places) / cells
    assert (np.diff(ratios) < -0.2).all()
    assert ratios[-1] < 1.4
    monkeypatch.setattr("whereish.solvers.eikonal.bilinear.places._HARMLESS_TIP", 9.0)
    assert error_in_the_middle(law_on_places, 48) > 1.1 * places[-1]


def test_a_law_that_needs_its_core_is_refused_without_it():
    from dataclasses import replace

    eps, cell = np.full((14, 14), 0.2), (1.0, 1.0)
    built = law_on_places(eps, cell)
    assert built.law.core > 0
    assert built.gradient_factor is not None
    assert built.gradient_factor <= 1.0
    tipped = replace(built, law=replace(built.law, core=0))
    assert np.nanmax(gradient_factors(tipped, eps, cell)) > 1.05


def sampled_factor(mechanism: EikonalMechanism) -> float:
    """Largest |grad P|/(eps·P) over all squares (intervals) and reports, by sampling."""
    built, (rows, cols) = mechanism.built, mechanism.map.shape
    law, (height, width) = built.law, mechanism.map.sides
    masses = law.weights * law.table[law.metric.distances(built.secrets)]
    P = (masses.astype(float) / law.sums[built.secrets].astype(float)[:, None])[:, law.weights > 0]
    P, eps = P.reshape(rows, cols, -1), mechanism.map.plane_levels()
    if rows == 1 or cols == 1:
        side, P, eps = (width, P[0], eps[0]) if rows == 1 else (height, P[:, 0], eps[:, 0])
        t = GRID[:, None, None]
        slope = np.abs(np.diff(P, axis=0)) / side
        mixed = (1 - t) * P[:-1] + t * P[1:]
        level = ((1 - t[..., 0]) * eps[:-1] + t[..., 0] * eps[1:])[..., None]
        return float((slope / (mixed * level)).max())
    return max(
        true_factor(P[i : i + 2, j : j + 2, y], eps[i : i + 2, j : j + 2], (height, width))
        for i, j, y in itertools.product(range(rows - 1), range(cols - 1), range(P.shape[2]))
    )


@pytest.mark.parametrize("shape", [(5,), (3, 3)])
def test_edges_beyond_the_horizon_are_certified_like_all_others(shape, monkeypatch):
    """Neighbours whose distance saturates differ by all of the table, not by less.

    Such levels are refused as being in another unit; the solver must bear them all the same.
    """
    monkeypatch.setattr("whereish.privacy.maps.privacy_map._NEVER_LEAVES", math.inf)
    mechanism = EikonalMechanism.build(
        PrivacyMap(np.full(shape, 1e3), cell=(1e8, 1e8)), places="bilinear"
    )
    assert mechanism.built.law.metric.weights.min() == 65535
    factor = sampled_factor(mechanism)
    assert 0.01 < factor <= mechanism.factor <= 1.0
    assert mechanism.recertify() == mechanism.factor


def test_a_bound_over_edges_at_the_horizon_sees_them():
    """Axis edges at 65535 beside short other ones: neighbours differ by two of those."""
    weights = np.full((4, 4, 8), 3000, np.uint16)
    weights[:, :, :2] = 65535
    metric = GraphMetric(weights, 22.0 / 65535)
    k = np.ones(16, np.uint64)
    sums, _ = metric.exact_sums(k, decay_table(metric.quantum))
    slopes = largest_gradients(metric, k, sums, (1.0, 1.0))
    P = decay_table(metric.quantum)[metric.distances(np.arange(16))].astype(float)
    P = (P / P.sum(axis=1, keepdims=True)).reshape(4, 4, 16)
    steps = (P[:, 1:], P[:, :-1]), (P[1:], P[:-1])
    largest = max(np.abs(x / y - 1).max() for a, b in steps for x, y in ((a, b), (b, a)))
    assert math.expm1(5000 * metric.quantum) < largest <= slopes.max()
    assert slopes.max() <= math.sqrt(2) * largest * 1.001


@pytest.mark.parametrize("shape", [(1, 6), (6, 1)])
@pytest.mark.parametrize("frame", [0, 2])
def test_a_single_row_may_have_a_frame(shape, frame, tmp_path):
    levels = np.linspace(1e-3, 2e-3, 6).reshape(shape)
    privacy_map = PrivacyMap(levels, cell=(100.0, 60.0))
    mechanism = EikonalMechanism.build(privacy_map, places="bilinear", frame=frame)
    assert mechanism.reports.shape == (shape[0] + 2 * frame, shape[1] + 2 * frame)
    assert 0.9 < sampled_factor(mechanism) <= mechanism.factor <= 1.0
    mechanism.save(tmp_path / "row.npz")
    assert EikonalMechanism.load(tmp_path / "row.npz").factor == mechanism.factor


@pytest.mark.parametrize("cell", [(100.0, 100.0), (10.0, 200.0)])
def test_the_least_price_on_oblong_cells_is_the_one_that_is_told(cell):
    def build(price: float) -> EikonalMechanism:
        levels = np.full((3, 3), price / min(cell))
        return EikonalMechanism.build(PrivacyMap(levels, cell=cell), places="bilinear")

    with pytest.raises(InvalidInput, match=r"continuous places .*; got 0\.008:") as told:
        build(0.008)
    least = float(re.search(r"at least ([0-9.]+) ", str(told.value))[1])
    with pytest.raises(InvalidInput, match="at least"):
        build(least * 0.999)
    assert build(least * 1.001).factor <= 1.0


@pytest.mark.parametrize("price", [0.0082, 0.03])
def test_reports_on_a_small_map_depend_on_the_secret(price):
    """Where all of the map lies within the flat core, nothing else would be left."""
    mechanism = EikonalMechanism.build(
        PrivacyMap(np.full((6, 6), price / 100), cell="100 m"), places="bilinear"
    )
    assert sampled_factor(mechanism) <= mechanism.factor <= 1.0
    a, b = (mechanism.distribution(place).ravel() for place in ([50.0, 50.0], [550.0, 550.0]))
    told = np.abs(np.log(a[a > 0] / b[a > 0])).max()  # over reports with a weight
    assert told > 0.5 * price * 5 * math.sqrt(2)


@given(P=corners, height=st.floats(0.2, 2.0))
def test_the_box_of_ratios_holds_the_law_that_has_these_slopes(P, height):
    boxes = np.stack(_ratio_boxes(corner_slopes(P, (height, 1.0)), (height, 1.0)))
    ratios = P / P[0, 0]
    assert (boxes.min(axis=0) <= ratios * (1 + 1e-12)).all()
    assert (ratios <= boxes.max(axis=0) * (1 + 1e-12)).all()


def test_the_slopes_at_corners_are_bounds():
    """Single precision finds them; against masses and sums in doubles, for every report."""
    rows, cols, (height, width) = 6, 5, (1.5, 1.0)
    eps = np.random.default_rng(9).uniform(0.1, 0.6, (rows, cols))
    metric = GraphMetric.from_prices(edge_integrals(eps, (height, width)))
    k = np.full(rows * cols, 3, np.uint64)
    table = decay_table(metric.quantum)
    sums, _ = metric.exact_sums(k, table)
    slopes = largest_gradients(metric, k, sums, (height, width))
    masses = table[metric.distances(np.arange(rows * cols))].astype(float)
    masses, Z = masses.reshape(rows, cols, -1), sums.reshape(rows, cols).astype(float)

    def change(c: tuple[int, int], a: tuple[int, int]) -> np.ndarray:
        """|P_a/P_c - 1|, and at least |Z_c/Z_a - 1|, for every report."""
        ratio = Z[c] / Z[a]
        return np.maximum(np.abs(masses[a] / masses[c] * ratio - 1), abs(ratio - 1))

    for i, j, up, right in itertools.product(range(rows - 1), range(cols - 1), (0, 1), (0, 1)):
        c = i + up, j + right
        across = change(c, (i + up, j + 1 - right)) / width
        down = change(c, (i + 1 - up, j + right)) / height
        truth = float(np.hypot(across, down).max())
        assert truth <= slopes[i, j, up, right] < truth * (1 + 1e-5) + 1e-5
