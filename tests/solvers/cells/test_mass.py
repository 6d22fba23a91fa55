from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad

from whereish.solvers.cells.mass import grid_masses


def laplace_survival(r):
    return (1 + r) * np.exp(-r)


def laplace_density(y, x):
    return np.exp(-np.hypot(x, y)) / (2 * np.pi)


@pytest.mark.parametrize(
    "shift", [(0.0, 0.0), (0.5, 0.2), (0.5, -0.5), (0.2, -0.3), (0.4999, 0.1), (7.0, 3.3)]
)
def test_all_cells_together_hold_everything(shift):
    edges = np.arange(-60, 61) - 0.5
    masses = grid_masses(laplace_survival, edges - shift[0], edges - shift[1])
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert (masses > 0).all()


@pytest.mark.parametrize("box", [(-0.2, 0.8, -0.7, 0.3), (4.8, 5.8, 2.3, 3.3), (0.1, 3, -1, 4)])
def test_rectangles_agree_with_direct_integration(box):
    x0, x1, y0, y1 = box
    direct = dblquad(laplace_density, x0, x1, y0, y1, epsabs=1e-11)[0]
    ours = grid_masses(laplace_survival, np.array([x0, x1]), np.array([y0, y1]))[0, 0]
    assert ours == pytest.approx(direct, rel=1e-8)


def test_the_tail_keeps_its_relative_accuracy():
    edges = np.array([300.0, 301.0])
    mass = grid_masses(laplace_survival, edges, edges)[0, 0]
    assert mass == pytest.approx(laplace_density(300.5, 300.5), rel=0.1)
