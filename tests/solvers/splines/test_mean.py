"""The enclosure of the mean slope that certificates between cells stand on."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal.between import law_between, slopes_between
from whereish.solvers.splines import slopes as slopes_module
from whereish.solvers.splines.blocks import raise_fine_slopes
from whereish.solvers.splines.bound import (
    CellLaws,
    _degrees,
    _least_normaliser,
    _left_out,
    _Mean,
    _mean,
    _sums,
    mean_slopes,
)
from whereish.solvers.splines.interpolation import _lagrange, chebyshev_points
from whereish.solvers.splines.weights import around, spline_slopes, spline_weights

CELL = (1.0, 1.0)


def hills(rows: int, cols: int, level: float) -> np.ndarray:
    i, j = np.mgrid[:rows, :cols]
    return level * (1 + 0.8 * np.sin(i / 1.5) * np.cos(j / 1.3))


def enclosed(controls: np.ndarray, v: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Biquadratics (n, 9, 2) at the places (v, h) of their squares."""
    down, across = (np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=-1) for t in (v, h))
    basis = (down[:, :, None] * across[:, None, :]).reshape(len(v), 9)
    return np.einsum("nk,nkd->nd", basis, controls)


@pytest.mark.parametrize("level", [0.3, 1.0, 1.8])
def test_the_mean_lies_in_its_enclosure(level, monkeypatch):
    """m = E[G] by the law itself, against the control points and their radius."""
    built = law_between(hills(7, 8, level), CELL)
    seen: list[CellLaws] = []
    bound = slopes_module.largest_slopes

    def spy(laws, levels, cell, **options):
        seen.append(laws)
        return bound(laws, levels, cell, **options)

    monkeypatch.setattr(slopes_module, "largest_slopes", spy)
    slopes_between(built, hills(7, 8, level), CELL)
    law, (rows, cols) = built.law, built.used.shape
    eps = built.used.ravel()
    mean = _mean(seen[0], CELL, 1e-3 * eps)
    used = law.weights > 0
    logs = np.log(law.table[law.metric.distances(built.secrets)][:, used] / float(law.table[0]))
    weights = law.weights[used].astype(float)
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 1, (2000, 2)) * (rows, cols)
    i, j = places.astype(int).T
    v, h = (places - np.stack([i, j], axis=1)).T
    nine = logs[around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]]
    down, across = spline_weights(v - 0.5), spline_weights(h - 0.5)

    def mixed(a, b):
        return np.einsum("ni,nj,nijy->ny", a, b, nine)

    P = weights * np.exp(mixed(down, across))
    P /= P.sum(axis=1, keepdims=True)
    m = np.stack(
        [
            (P * mixed(down, spline_slopes(h - 0.5))).sum(axis=1),
            (P * mixed(spline_slopes(v - 0.5), across)).sum(axis=1),
        ],
        axis=1,
    )
    cells = i * cols + j
    off = np.hypot(*(m - enclosed(mean.controls[cells], v, h)).T)
    radius = mean.radius.ravel()[cells]
    assert (off <= radius).all()
    assert (np.hypot(*m.T) <= mean.steepest.ravel()[cells]).all()
    assert np.median(radius / eps[cells]) < 0.2  # so it says something
    assert off.max() > 0.2 * radius[off.argmax()]  # and is no hundred times too wide

    controls, radii = mean.pieces(np.arange(rows * cols))
    a, b = (4 * v).astype(int), (4 * h).astype(int)
    part = 8 * (a // 2) + 4 * (b // 2) + 2 * (a % 2) + b % 2
    finer = np.hypot(*(m - enclosed(controls[cells, part], 4 * v - a, 4 * h - b)).T)
    assert (finer <= radii[cells, part]).all()
    shared = np.empty(rows * cols)  # what interpolants miss of m is the same on every square
    for _, mine, _, missed in mean.interpolants:
        shared[mine] = missed
    assert np.median((radii[cells, part] - shared[cells]) / (radius - shared[cells])) < 0.1


def test_interpolants_lie_in_the_enclosures_of_sixteenths():
    """Where nothing else is uncertain, how far they are from quadratics decides."""
    rng = np.random.default_rng(7)
    interpolants = []
    for degree, cells in ((2, [1, 4]), (4, [0, 5]), (8, [2, 3])):
        x = chebyshev_points(degree)
        a, b, c = rng.uniform(1, 3, (3, 2, 2, 1, 1))
        means = np.sin(a * x[:, None] + b * x + c) + b * x
        interpolants.append((degree, np.array(cells), means, np.zeros(2)))
    mean = _Mean(np.empty((6, 9, 2)), np.empty(6), np.empty(6), 1.0, interpolants)
    asked = np.array([0, 2, 3, 4, 5])
    controls, radii = mean.pieces(asked)
    v, h = rng.uniform(0, 1, (2, 3000))
    i, j = (4 * v).astype(int), (4 * h).astype(int)
    part = 8 * (i // 2) + 4 * (j // 2) + 2 * (i % 2) + j % 2
    for degree, cells, means, _ in interpolants:
        down, across = _lagrange(degree, v - 0.5), _lagrange(degree, h - 0.5)
        for cell, values in zip(cells, np.moveaxis(means, 1, 0), strict=True):
            if cell not in asked:
                continue
            k = int(np.flatnonzero(asked == cell)[0])
            truth = np.einsum("na,nb,mab->nm", down, across, values)
            off = np.hypot(*(truth - enclosed(controls[k][part], 4 * v - i, 4 * h - j)).T)
            assert (off <= radii[k, part] + 1e-12).all()
            if degree > 2:
                assert off.max() > 0.5 * radii[k].max() > 1e-5  # near what it may be


@pytest.mark.parametrize("bar", [0.0, np.inf])  # cut into quarters again, and not
def test_the_slope_is_looked_for_on_every_sixteenth(bar):
    """A logarithm that is steep on one side of its cell only, against that side's own place."""
    for turn in range(4):
        a = np.rot90(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [3.0, 3.0, 3.0]]), turn)
        A = np.repeat(a.reshape(9, 1).astype(np.float32), 64, axis=1)
        levels, best = np.ones((9, 16, 9), np.float32), np.zeros(1)
        none = np.zeros((1, 16, 9, 2), np.float32)
        off = np.zeros((1, 16))
        block = A, np.ones_like(A), np.zeros(9, np.float32)
        whole = np.zeros((9, 9, 2), np.float32), np.ones((9, 9), np.float32), np.zeros(9)
        raise_fine_slopes(block, np.array([4]), (3, 3), CELL, whole, none, levels, off, bar, best)
        # Along the axis the spline's slope runs from 0 to the difference of the outer two cells.
        assert best[0] == pytest.approx(3.0, rel=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("change", [0.3, 1.0, 3.0, 6.0])
def test_the_error_of_interpolants_is_bounded_and_no_more_than_it_must(change, axis):
    """Two reports of opposite slope: m = c tanh(c x), with poles where the bound expects them."""
    changes = [np.zeros((1, 1)), np.zeros((1, 1))]
    changes[axis] = np.full((1, 1), change)
    x = np.linspace(-0.5, 0.5, 2001)
    for wanted in (1e-1, 1e-3, 1e-6):
        degrees, missed = _degrees((changes[0], changes[1]), CELL, np.array([wanted]))
        points = chebyshev_points(int(degrees[0]))
        assert len(points) == degrees[0] + 1
        assert points[[0, -1]] == pytest.approx([-0.5, 0.5])
        found = _lagrange(int(degrees[0]), x) @ (change * np.tanh(change * points))
        error = np.abs(found - change * np.tanh(change * x)).max()
        assert error <= missed[0]
        if degrees[0] < 32:
            assert missed[0] <= wanted
        if change >= 3.0:
            assert missed[0] < 1000 * error


def test_the_normaliser_may_fall_between_points():
    """Where Z is 1 at all points and falls at the largest slope from each."""
    laws = CellLaws(lambda _: iter(()), np.zeros((3, 3)), np.zeros((3, 2)), np.zeros((2, 3)), 1.0)
    x = np.linspace(-0.5, 0.5, 201)
    for degree in (2, 3, 8):
        apart = np.abs(x[:, None] - chebyshev_points(degree)).min(axis=1)
        mass = np.ones((9, degree + 1, degree + 1))
        for cell in (CELL, (0.5, 2.0)):
            farthest = np.hypot(cell[0] * apart.max(), cell[1] * apart.max())
            least = _least_normaliser(laws, cell, mass, degree, np.arange(9), np.full(9, 0.7))
            assert np.exp(-0.8 * farthest) <= least <= np.exp(-0.7 * farthest)


def test_changes_are_those_of_all_nine_cells():
    rng = np.random.default_rng(1)
    rows, cols = 5, 6
    along, across = rng.random((rows - 1, cols)), rng.random((rows, cols - 1))
    laws = CellLaws(lambda _: iter(()), np.zeros((rows, cols)), across, along, 1.0)
    down, right = laws.change
    for i in range(rows):
        for j in range(cols):
            near_i = range(max(i - 1, 0), min(i + 2, rows))
            near_j = range(max(j - 1, 0), min(j + 2, cols))
            vertical = [along[k, m] for k in near_i if k + 1 in near_i for m in near_j]
            horizontal = [across[k, m] for k in near_i for m in near_j if m + 1 in near_j]
            assert down[i, j] == max(vertical)
            assert right[i, j] == max(horizontal)


@pytest.mark.parametrize("level", [0.05, 1.0, 3.0])
def test_single_precision_moves_the_mean_by_no_more_than_is_counted(level):
    built = law_between(hills(7, 8, level), CELL)
    laws = slopes_module.spline_laws(built)
    law, (rows, cols) = built.law, built.used.shape
    used = law.weights > 0
    logs = np.log(law.table[law.metric.distances(built.secrets)][:, used] / float(law.table[0]))
    points = chebyshev_points(4)
    B, S = spline_weights(points), spline_slopes(points)
    i, j = np.divmod(np.arange(rows * cols), cols)
    nine = logs[around(i, rows)[:, :, None] * cols + around(j, cols)[:, None, :]]
    P = law.weights[used] * np.exp(np.einsum("va,hb,nabk->nvhk", B, B, nine))
    P /= P.sum(axis=-1, keepdims=True)
    exact = np.stack(
        [
            (P * np.einsum("va,hb,nabk->nvhk", B, S, nine)).sum(axis=-1),
            (P * np.einsum("va,hb,nabk->nvhk", S, B, nine)).sum(axis=-1),
        ],
        axis=-1,
    )
    off = np.linalg.norm(mean_slopes(laws, CELL, points) - exact, axis=-1).max(axis=(1, 2))
    mine = np.arange(rows * cols)
    [(mass, absent)] = _sums(laws, CELL, [(mine, points)])
    counted = _left_out(laws, CELL, mass[..., 0], absent, 4, mine)
    assert (off <= counted / 2).all()
