"""Smoothing of columns: means of neighbours where levels are alike, nothing across a step."""

from __future__ import annotations

import numpy as np

from whereish.solvers.tables.smoothing import smoothed


def test_kinks_are_smoothed_and_slopes_stay():
    i, j = np.indices((7, 8)).astype(float)
    plane = (0.3 * i - 0.2 * j)[None]
    edges = np.full((7, 7), 0.3), np.full((6, 8), 0.3)
    np.testing.assert_allclose(smoothed(plane, *edges), plane, atol=1e-12)
    zigzag = plane + 0.1 * ((i + j) % 2)
    out = smoothed(zigzag, *edges)
    assert np.abs(out - plane - 0.05)[:, 1:-1, 1:-1].max() < 1e-12


def test_a_step_between_levels_is_left_alone():
    j = np.indices((5, 9))[1].astype(float)
    kink = np.where(j < 4, 0.1 * j, 0.4 + 0.4 * (j - 4))[None]
    across = np.where(np.arange(8) < 4, 0.1, 0.4) * np.ones((5, 1))
    out = smoothed(kink, across, np.full((4, 9), 0.1))
    np.testing.assert_allclose(out, kink, atol=1e-4)
    alike = smoothed(kink, np.full((5, 8), 0.2), np.full((4, 9), 0.1))
    assert np.abs(alike - kink).max() > 0.07


def test_lines_have_one_axis():
    line = np.random.default_rng(1).normal(size=(3, 1, 9))
    out = smoothed(line, np.full((1, 8), 0.1), np.empty((0, 9)))
    wanted = (line[:, :, :-2] + 2 * line[:, :, 1:-1] + line[:, :, 2:]) / 4
    np.testing.assert_allclose(out[:, :, 1:-1], wanted)
    np.testing.assert_array_equal(out[:, :, [0, -1]], line[:, :, [0, -1]])
