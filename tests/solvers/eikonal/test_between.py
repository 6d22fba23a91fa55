"""Laws between cells: the certified slope against dense sampling, on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal.between import (
    law_between,
    points_between,
    prices_between,
    slopes_between,
)
from whereish.solvers.eikonal.cells import BuiltLaw, framed_law
from whereish.solvers.splines.corners import Corners, corner_prices, mean_at_corners
from whereish.solvers.splines.halves import Halves, levels_below
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.splines.weights import around, spline_slopes, spline_weights

CELL = (1.0, 1.0)


def levels_at(eps: np.ndarray, down: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The bilinear interpolant at places in units of cells."""
    q = np.clip(down - 0.5, 0, eps.shape[0] - 1)
    p = np.clip(across - 0.5, 0, eps.shape[1] - 1)
    i, j = np.floor(q).astype(int), np.floor(p).astype(int)
    u, v = np.minimum(i + 1, eps.shape[0] - 1), np.minimum(j + 1, eps.shape[1] - 1)
    t, s = q - i, p - j
    south = (1 - s) * eps[i, j] + s * eps[i, v]
    return np.asarray((1 - t) * south + t * ((1 - s) * eps[u, j] + s * eps[u, v]))


def slopes(
    built: BuiltLaw, eps: np.ndarray, cell: tuple[float, float], places: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|grad ln P| / eps at places (rows, columns in cells), the nodes they are at, and Z."""
    law, (rows, cols) = built.law, built.used.shape
    inner = places
    lattice = lattice_of(eps.shape, (rows, cols))
    # In squares around the nodes.
    if isinstance(lattice, Halves):
        places = places * np.array([rows, cols]) / eps.shape
    else:
        places = places + (np.array([rows, cols]) - eps.shape) / 2
    cell = lattice.sides(cell, eps.shape)
    masses = law.weights * law.table[law.metric.distances(built.secrets)].astype(float)
    logs = np.log(masses[:, law.weights > 0] / law.sums[built.secrets].astype(float)[:, None])
    i = np.minimum(places[:, 0].astype(int), rows - 1)
    j = np.minimum(places[:, 1].astype(int), cols - 1)
    down, across = places[:, 0] - i - 0.5, places[:, 1] - j - 0.5
    cells = around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]
    nine = logs[cells]
    value = (spline_weights(down), spline_weights(across))
    slope = (spline_slopes(down) / cell[0], spline_slopes(across) / cell[1])

    def mixed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum("ni,nj,nijy->ny", a, b, nine)

    P = np.exp(mixed(*value))
    Z = P.sum(axis=1)
    P /= Z[:, None]
    G = np.stack([mixed(slope[0], value[1]), mixed(value[0], slope[1])])
    G -= (P * G).sum(axis=2, keepdims=True)
    largest = np.hypot(*G).max(axis=1)
    return largest / levels_at(eps, inner[:, 0], inner[:, 1]), i * cols + j, Z


def random_places(shape: tuple[int, int], count: int, seed: int) -> np.ndarray:
    """Anywhere, on centres, borders and corners of cells, and at the rim."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 1, (count, 2)) * shape
    places[: count // 4] = np.round(places[: count // 4] * 2) / 2
    places[-3:] = [[0, 0], [shape[0], shape[1]], [0, shape[1]]]
    return places


def hills(rows: int, cols: int) -> np.ndarray:
    i, j = np.mgrid[:rows, :cols]
    return 0.3 + 0.25 * np.sin(i / 3.0) * np.cos(j / 2.5)


def steps(rows: int, cols: int) -> np.ndarray:
    i, j = np.mgrid[:rows, :cols]
    return np.where((i // 4 + j // 5) % 2, 0.9, 0.15)


def extreme(rows: int, cols: int) -> np.ndarray:
    out = np.full((rows, cols), 0.05)
    out[rows // 2, cols // 2] = 5.0
    return out


MAPS = {
    "hills": (hills(12, 14), CELL),
    "steps": (steps(11, 12), CELL),
    "coarse": (np.full((8, 8), 2.0), CELL),
    "extreme": (extreme(9, 9), CELL),
    "line": (hills(1, 20), CELL),
    "column": (hills(20, 1), CELL),
    "oblong": (hills(9, 10), (0.6, 1.7)),
    "pair": (np.array([[0.2, 0.7]]), CELL),
}


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("name", sorted(MAPS))
def test_the_certified_slope_holds_at_every_place(name, finer):
    eps, cell = MAPS[name]
    built = law_between(eps, cell, finer=finer)
    assert built.used.shape == (Halves() if finer else Corners()).shape(eps.shape)
    assert built.gradient_factor <= 1.0
    assert 0.0 < built.acceptance <= 1.0
    certified = slopes_between(built, eps, cell)
    found, where, Z = slopes(built, eps, cell, random_places(eps.shape, 1500, 3))
    assert (found <= certified.factors.ravel()[where]).all()
    assert found.max() <= 1.0
    assert Z.min() >= certified.acceptance
    assert Z.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("name", ["hills", "coarse", "line"])
def test_the_bound_is_close_and_nearly_the_whole_map_is_used(name, finer):
    """Two-sided: 0.97 of the map is refuted by the slope itself, 0.99 by the certificate."""
    eps, cell = MAPS[name]
    built = law_between(eps, cell, finer=finer)
    assert slopes_between(built, 0.99 * eps, cell).factors.max() > 1.0
    found, _, _ = slopes(built, 0.97 * eps, cell, random_places(eps.shape, 4000, 5))
    assert found.max() > 1.0


def test_units_of_length_do_not_matter():
    """Powers of two, which round nothing: one quantum of one edge may grow over the rounds."""
    eps, _ = MAPS["hills"]
    near = slopes_between(law_between(eps, CELL), eps, CELL).factors
    for unit in (2.0**-10, 2.0**20):
        cell = (unit, unit)
        found = slopes_between(law_between(eps / unit, cell), eps / unit, cell).factors
        np.testing.assert_allclose(found, near, rtol=1e-9)


def test_prices_that_take_the_mean_along_borders_are_refuted():
    """What cells promise between their corners is steeper than eps at a centre beside a step."""
    eps = steps(11, 12)

    def prices(levels, cell, neighbours):
        return corner_prices(eps, cell, neighbours=neighbours, tight=False)

    nodes = mean_at_corners(eps)
    built = framed_law(nodes, CELL, prices, neighbours=32, frame=0, progress=None)
    places = random_places(eps.shape, 3000, 7)
    truth = slopes(built, eps, CELL, places)[0].max()
    assert truth > 1.1
    assert slopes_between(built, eps, CELL).factors.max() >= truth


@pytest.mark.parametrize("name", ["hills", "steps", "line", "oblong"])
@pytest.mark.parametrize("finer", [False, True])
def test_slopes_at_points_are_those_of_the_law_and_below_the_proven(name, finer):
    eps, cell = MAPS[name]
    built = law_between(eps, cell, finer=finer)
    points = points_between(built, eps, cell)
    proven = slopes_between(built, eps, cell).factors
    largest = points.max(axis=(2, 3))
    assert (largest <= proven).all()
    assert (largest > 0.97 * proven).mean() > 0.9
    # Points on the border of two squares are points of both, and outside the map there are none.
    np.testing.assert_allclose(points[:, 1:-2, :, -1], points[:, 2:-1, :, 0], rtol=1e-4)
    assert points[:, 0, :, :2].any() == points[:, -1, :, 3:].any() == finer
    assert (points[:, -1, 2, 2] > 0).all()
    # The same at one of them by the law itself.
    rows, cols = built.used.shape
    scale = (np.array([rows, cols]) - (0 if finer else 1)) / np.array(eps.shape)
    i, j = rows // 2, cols // 2
    middle = (np.array([i, j]) + (0.5 if finer else 0.0)) / np.where(scale > 0, scale, 1.0)
    middle = np.where(np.array(eps.shape) == 1, 0.5, middle)
    found, _, _ = slopes(built, eps, cell, middle[None])
    np.testing.assert_allclose(points[i, j, 2, 2], found[0], rtol=1e-3)


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_hardly_a_place_has_room_left(finer, seed):
    """On a rough map the whole of eps is used beside nearly every node."""
    eps = np.random.default_rng(seed).uniform(0.4, 1.0, (9, 10))
    built = law_between(eps, CELL, finer=finer)
    largest = points_between(built, eps, CELL).max(axis=(2, 3))
    assert np.median(largest) > 0.97


@pytest.mark.parametrize("axis", [0, 1])
def test_a_steep_rim_is_seen(axis):
    """Prices of a level map keep their slopes where the map allows less, up to its edge."""
    eps = np.full((8, 9), 0.5)
    built = law_between(eps, CELL)
    low = eps.copy()
    rim = [slice(None), slice(None)]
    rim[axis] = slice(0, 1)
    low[*rim] = 0.4
    places = random_places(eps.shape, 3000, 11)
    near = places[:, axis] < 0.5
    found, where, _ = slopes(built, low, CELL, places[near])
    certified = slopes_between(built, low, CELL).factors.ravel()[where]
    assert found.max() > 1.05
    assert (found <= certified).all()


def test_shares_are_what_a_constant_level_leaves():
    """On a large map at a constant level the shares themselves are hardly exceeded."""
    eps = np.full((23, 23), 0.5)

    def prices(levels, cell, neighbours):
        return prices_between(Corners(), eps, cell, neighbours)

    nodes = mean_at_corners(eps)
    built = framed_law(nodes, CELL, prices, neighbours=32, frame=0, progress=None)
    inner = slopes_between(built, eps, CELL).factors[8:-8, 8:-8]
    assert 0.98 < inner.max() < 1.012


def test_saturated_edges_and_single_cells():
    built = law_between(np.full((2, 2), 1e3), (1e8, 1e8))
    assert built.gradient_factor <= 1.0
    alone = law_between(np.array([[1e-3]]), (500.0, 500.0))
    assert alone.gradient_factor == 0.0
    assert alone.acceptance == 1.0


def test_levels_at_half_cells_are_those_of_the_map_where_it_is_straight():
    """On a ramp they are the ramp's; in a valley the mean of a cell's two nodes is its level."""
    ramp = np.outer(np.ones(5), np.linspace(1.0, 2.0, 6))
    half = levels_below(ramp)
    inside = slice(None), slice(2, -2)  # at the rim a map is as if it went on level
    np.testing.assert_allclose(half[inside], Halves().levels(ramp)[inside], rtol=1e-14)
    np.testing.assert_allclose(half[4, 2:-2], np.linspace(1.15, 1.85, 8), rtol=1e-14)
    rng = np.random.default_rng(4)
    rough = rng.uniform(0.01, 5.0, (7, 9))
    below = levels_below(rough)
    assert (below > 0).all()
    assert (below <= Halves().levels(rough) * (1 + 1e-14)).all()
    along = levels_below(rough[:, :1])[:, 0].reshape(7, 2).mean(axis=1)
    assert (along <= rough[:, 0] * (1 + 1e-14)).all()


def test_levels_around_half_cells_are_the_maps():
    """Corners of the squares around nodes, against the interpolant itself."""
    eps = hills(5, 6)
    levels = Halves().square_levels(eps)
    down, across = np.meshgrid(np.arange(11) / 2, np.arange(13) / 2, indexing="ij")
    np.testing.assert_allclose(levels, levels_at(eps, down, across), rtol=1e-13)


def test_shares_of_half_cells_are_those_of_their_cells():
    weights = np.random.default_rng(1).random((4, 5))
    for lattice in (Corners(), Halves()):
        for part in (weights, weights[:1], weights[:, :1]):
            assert lattice.shares(part).sum() == pytest.approx(part.sum())
            shape = lattice.shape(part.shape)
            ones = lattice.over_cells(np.ones(shape), part.shape)
            np.testing.assert_allclose(ones, np.ones(part.shape))
