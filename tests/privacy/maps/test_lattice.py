"""Geodesic distances on lattices of any dimension, and the channels that keep them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from whereish.audit import exact
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.exponential import exponential_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.lattice import lattice_distances, lattice_factor
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import stencil_factor
from whereish.units import Length

SHAPE, SIDE = (3, 4, 5), 200.0


def tower() -> np.ndarray:
    """Levels per metre in three dimensions, loose in the middle of the ground floor."""
    z, y, x = np.indices(SHAPE)
    return 1e-3 + 4e-3 * np.exp(-((x - 2) ** 2 + (y - 1.5) ** 2 + 2 * z**2) / 3)


def test_in_two_dimensions_it_is_the_metric_of_a_map():
    levels = np.random.default_rng(1).uniform(1e-3, 5e-3, (7, 9))
    cells = np.arange(levels.size)
    of_map = MapGeodesic(PrivacyMap(levels, (150.0, 90.0)), 8)
    np.testing.assert_allclose(
        lattice_distances(levels, (90.0, 150.0)),
        of_map.between_cells(cells[:, None], cells[None]),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("dimensions", "factor"), [(1, 1.0), (2, 1.0824), (3, 1.1281)])
def test_constant_levels_reach_their_factor_and_not_more(dimensions, factor):
    shape = (13,) * dimensions
    corner = lattice_distances(np.full(shape, 0.5), 2.0)[0]
    straight = np.linalg.norm(np.indices(shape).reshape(dimensions, -1), axis=0)
    ratio = corner[1:] / straight[1:]
    assert ratio.min() == pytest.approx(1.0)
    assert factor - 2e-3 < ratio.max() < factor + 1e-4


def test_edges_integrate_the_trilinear_map_exactly():
    levels = np.random.default_rng(2).uniform(1.0, 1.2, (2, 2, 2))
    t = np.polynomial.legendre.leggauss(4)
    s = (t[0] + 1) / 2
    along = sum(levels[c] * s ** sum(c) * (1 - s) ** (3 - sum(c)) for c in np.ndindex(2, 2, 2))
    wanted = math.sqrt(3) * float(t[1] @ along) / 2
    assert lattice_distances(levels, 1.0)[0, 7] == pytest.approx(wanted, rel=1e-13)


def test_channels_keep_a_map_in_three_dimensions():
    levels = tower()
    distances = lattice_distances(levels, SIDE)
    centres = SIDE * np.indices(SHAPE).reshape(3, -1).T
    errors = ((centres[:, None] - centres[None]) ** 2).sum(axis=-1)
    cells = np.arange(levels.size, dtype=float)[:, None]  # secrets by the number of their cell
    plain = exponential_channel(cells, None, metric=distances)
    best = optimal_channel(cells, None, None, metric=distances, loss=errors, gap=1e-2)
    for channel in (plain, best):
        assert exact(channel, distances).holds
    assert exact(best, 0.98 * distances).refuted
    assert best.loss < 0.8 * float((plain.matrix * errors).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("levels", "cell", "words"),
    [
        (np.zeros((2, 2, 2)), 1.0, "above zero"),
        (np.full((2, 2, 2), np.nan), 1.0, "fill holes"),
        (np.ones((2, 2, 2)), (1.0, 1.0), "each of 3 axes"),
        (np.ones((2, 2, 2)), 0.0, "side in metres > 0"),
        (np.ones((17, 17, 17)), 1.0, "at most 4096"),
        (1.0, 1.0, "one for each cell"),
    ],
)
def test_bad_lattices_are_refused(levels, cell, words):
    with pytest.raises(InvalidInput, match=words):
        lattice_distances(levels, cell)


@pytest.mark.parametrize(
    ("sides", "shape", "direction"),
    [
        ((1.0, 1.0, 10.0), (25, 11, 3), (24, 10, 2)),
        ((3.0, 1.0), (5, 40), (4, 17)),
        ((1.0, 2.0, 3.0), (19, 7, 5), (18, 6, 3)),
        ((1.0, 5.0), (9, 1), (8, 0)),
    ],
)
def test_the_factor_of_oblong_cells_is_a_bound_and_nearly_reached(sides, shape, direction):
    d = lattice_distances(np.full(shape, 0.5), sides)[0].reshape(shape)
    axes = np.indices(shape).reshape(len(shape), -1) * np.array(sides)[:, None]
    straight = 0.5 * np.linalg.norm(axes, axis=0)
    factor = lattice_factor(sides, shape)
    assert (d.ravel() <= factor * straight * (1 + 1e-12)).all()
    there = 0.5 * math.hypot(*(n * side for n, side in zip(direction, sides, strict=True)))
    assert d[direction] > (factor - 2e-2) * there
    divided = lattice_distances(np.full(shape, 0.5), sides, divide_stencil=True)[0]
    assert (divided <= straight * (1 + 1e-12)).all()
    assert divided[1:] == pytest.approx(d.ravel()[1:] / factor)


def test_the_factor_by_all_orders_of_the_axes():
    sides = (1.0, 1.0, 10.0)
    wanted = 0.0
    for order in itertools.permutations(sides):
        lengths = [math.hypot(*order[:k]) for k in range(4)]
        gradient = [(lengths[k + 1] - lengths[k]) / order[k] for k in range(3)]
        wanted = max(wanted, math.hypot(*gradient))
    assert lattice_factor(sides, (2, 2, 2)) == pytest.approx(wanted)
    assert wanted == pytest.approx(1.387, abs=1e-3)
    for sides_2d in ((1.0, 1.0), (2.0, 7.0)):
        assert lattice_factor(sides_2d, (2, 2)) == pytest.approx(stencil_factor(8, sides_2d))


def test_sides_with_units():
    levels = tower()
    plain = lattice_distances(levels, (200.0, 100.0, 1000.0))
    mixed = lattice_distances(levels, ("200 m", Length.metres(100), "1 km"))
    assert np.array_equal(plain, mixed)
    assert np.array_equal(lattice_distances(levels, "0.2 km"), lattice_distances(levels, 200))
    for wrong in ("200", "200 s", True, [200.0] * 3):
        with pytest.raises(InvalidInput, match="cell must"):
            lattice_distances(levels, wrong)
