"""Levels on larger cells: nowhere above the map, and none of them could be higher."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.privacy.maps.coarser import levels_below
from whereish.space.interpolation import interpolated

SHAPES = [
    ((12, 9), (6, 5)),
    ((13, 8), (5, 8)),
    ((7, 7), (1, 1)),
    ((1, 11), (1, 4)),
    ((20, 3), (7, 2)),
]


def rough(shape, seed):
    rng = np.random.default_rng(seed)
    steps = np.where(rng.random(shape) < 0.4, 1.0, 8.0)
    return steps * np.exp(rng.normal(0.0, 0.3, shape))


def at(levels, places):
    """The interpolant at places in [0, 1]^2, row first."""
    y, x = places.T * np.reshape(levels.shape, (2, 1))
    return interpolated(levels, x, y, "bilinear")


def places_for(shape, seed):
    """Random ones, and the crossings of the lines through centres, where levels have kinks."""
    rng = np.random.default_rng(seed)
    lines = [np.concatenate([(np.arange(n) + 0.5) / n, [0.0, 1.0]]) for n in shape]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.concatenate([rng.random((4000, 2)), grid])


@pytest.mark.parametrize(("fine", "coarse"), SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_coarser_levels_are_nowhere_above(fine, coarse, seed):
    levels = rough(fine, seed)
    found = levels_below(levels, coarse)
    assert found.shape == coarse
    places = np.concatenate([places_for(fine, seed), places_for(coarse, seed)])
    assert (at(found, places) <= at(levels, places) * (1 + 1e-12)).all()


@pytest.mark.parametrize(("fine", "coarse"), SHAPES)
def test_no_coarser_level_could_be_higher(fine, coarse):
    levels = rough(fine, 5)
    found = levels_below(levels, coarse)
    lines = [
        np.unique(np.concatenate([(np.arange(n) + 0.5) / n, (np.arange(m) + 0.5) / m]))
        for n, m in zip(fine, coarse, strict=True)
    ]
    kinks = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    for cell in np.ndindex(coarse):
        higher = found.copy()
        higher[cell] *= 1.01
        assert (at(higher, kinks) > at(levels, kinks)).any()


def test_a_plane_and_a_constant_lose_nothing_inside():
    constant = np.full((9, 14), 3.0)
    np.testing.assert_allclose(levels_below(constant, (4, 5)), 3.0, rtol=1e-9)
    i, j = np.mgrid[:20, :20]
    sloped = 1.0 + 0.02 * i + 0.05 * j
    found = levels_below(sloped, (10, 10))
    y, x = (np.indices((10, 10)) + 0.5) / 10
    asked = at(sloped, np.stack([y.ravel(), x.ravel()], axis=1)).reshape(10, 10)
    np.testing.assert_allclose(found[2:-2, 2:-2], asked[2:-2, 2:-2], rtol=2e-3)


def test_the_same_cells_are_the_same_map():
    levels = rough((6, 5), 1)
    np.testing.assert_allclose(levels_below(levels, (6, 5)), levels, rtol=1e-9)


def test_a_map_is_coarsened_where_it_is():
    levels = rough((15, 20), 2) * 1e-3
    fine = wh.PrivacyMap(levels, cell="100 m", origin=(500.0, -200.0))
    coarse = fine.coarsened(2)
    assert coarse.shape == (8, 10)
    for attribute in ("x_low", "x_high", "y_low", "y_high"):
        ends = getattr(coarse.raster.box, attribute), getattr(fine.raster.box, attribute)
        assert ends[0] == pytest.approx(ends[1])
    assert fine.coarsened(1).values == pytest.approx(levels)
    line = wh.PrivacyMap(np.array([1e-3, 2e-3, 3e-3]), cell="100 m").coarsened(2)
    assert line.one_dimensional
    assert line.shape == (1, 2)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(InvalidInput, match="factor must be an integer >= 1"):
            fine.coarsened(wrong)


def test_a_mechanism_of_the_coarser_map_keeps_the_fine_one():
    """Slopes of ln P at places, by differences, are at most the fine map's levels there."""
    fine = wh.PrivacyMap(np.where(rough((12, 12), 3) > 3.0, 6e-3, 2e-3), cell="100 m")
    mechanism = wh.EikonalMechanism.build(fine.coarsened(2))
    rng = np.random.default_rng(0)
    largest = 0.0
    for place in rng.uniform(20.0, 1180.0, (60, 2)):
        level = float(at(fine.values, place[None, ::-1] / 1200.0)[0])
        step = 0.05
        logs = [
            _logs(mechanism.distribution(place + step * np.array(move)))
            for move in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        slopes = np.hypot(logs[0] - logs[1], logs[2] - logs[3]) / (2 * step)
        largest = max(largest, float(np.nanmax(slopes)) / level)
    assert 0.7 < largest <= 1.0 + 1e-6


def _logs(law):
    return np.log(law[law > 0])
