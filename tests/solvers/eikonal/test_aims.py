"""Sums other than 1: weights that solve for them, and less error where a map is narrow."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import whereish as wh
from solvers.eikonal.test_cells import dense, true_factor
from solvers.eikonal.test_lowering import CELL, tracts
from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.eikonal import aims
from whereish.solvers.eikonal.aims import finer_aim, judgement
from whereish.solvers.eikonal.cells import law_on_cells
from whereish.solvers.eikonal.preconditioner import approximate_inverse_factor
from whereish.solvers.eikonal.squared_error import posterior_means, squared_errors
from whereish.solvers.eikonal.weights import closed_form_weights, nonnegative_weights
from whereish.solvers.geodesic.coarse import coarse_sums
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.near import NearProduct

UNIFORM = np.full(36 * 36, 1 / 36**2)


def narrow_coast(seed: int, n: int = 36) -> np.ndarray:
    """Three nats of sea, up to 24 on land."""
    return tracts(seed, n, count=40, coast=True, low=3.0 / n, high=24.0 / n)


def moved_error(built) -> float:
    """Squared error of reports moved to posterior means, over all secrets."""
    cells = np.arange(built.law.metric.cells)
    places = np.indices(built.law.metric.shape).reshape(2, -1).T.astype(float)
    uniform = np.full(len(cells), 1.0 / len(cells))
    moved = posterior_means(built.law, cells, places, uniform)
    return float(squared_errors(built.law, cells, places, moved).mean())


@pytest.mark.parametrize("seed", range(3))
def test_weights_for_other_sums_satisfy_both_conditions(seed):
    """E·w = b on the support and >= b off it, in doubles."""
    eps = tracts(seed, 30, count=40, coast=True, low=0.2, high=1.6)
    metric = GraphMetric.from_prices(edge_integrals(eps, CELL))
    x, y = np.indices(eps.shape) / 30
    aim = np.exp(0.4 * np.sin(5 * x + seed) * np.cos(4 * y)).ravel()
    solved = nonnegative_weights(
        metric.product,
        NearProduct(metric),
        partial(approximate_inverse_factor, eps, CELL),
        closed_form_weights(eps, CELL),
        aim=aim,
        tolerance=1e-5,
    )
    image, free = dense(metric) @ solved.values, solved.values > 0
    assert 0 < free.sum() < free.size
    assert np.abs(image - aim)[free].max() < 5e-5
    assert (image - aim)[~free].min() > -5e-4
    assert solved.residual < 5e-5


@pytest.mark.parametrize("seed", [0, 4, 6])
def test_moved_reports_of_a_narrow_coast_err_less(seed):
    """By 2% and more on about half of such coasts, with the promise kept to the same point."""
    eps = narrow_coast(seed)
    aimed, plain = law_on_cells(eps, CELL, prior=UNIFORM), law_on_cells(eps, CELL)
    assert aimed.law.aim is not None
    assert plain.law.aim is None
    assert moved_error(aimed) < 0.98 * moved_error(plain)
    assert 0.999 < true_factor(aimed, eps, CELL) <= aimed.law.factor <= 1.0
    assert true_factor(aimed, 0.99 * eps, CELL) > 1.0


def test_sums_that_gain_nothing_are_not_kept(monkeypatch):
    eps = narrow_coast(2)
    aimed = law_on_cells(eps, CELL, prior=UNIFORM)
    monkeypatch.setattr(aims, "_NARROW", 0.0)
    plain = law_on_cells(eps, CELL, prior=UNIFORM)
    assert aimed.law.rounds > plain.law.rounds  # it was tried
    np.testing.assert_array_equal(aimed.law.weights, plain.law.weights)


def test_a_wide_map_aims_at_one():
    """Where moving reports gains little there is nothing to give away."""
    eps = tracts(3, 36, count=40, coast=True, low=0.4, high=3.2)
    assert law_on_cells(eps, CELL, prior=UNIFORM).law.aim is None


def test_the_aim_follows_the_errors():
    """Each secret's error over the mean, to the power 1/5; constant around the secrets."""
    built = law_on_cells(narrow_coast(1), CELL, frame=3, prior=UNIFORM)
    law, inner = built.law, built.secrets
    places = np.indices(law.metric.shape).reshape(2, -1).T.astype(float)
    assert judgement(law, inner, places).aim is None  # without a prior
    found = judgement(law, inner, places, UNIFORM)
    moved = posterior_means(law, inner, places, UNIFORM)
    errors = squared_errors(law, inner, places, moved)
    expected = (errors / errors.mean()) ** 0.2
    off = np.abs(found.aim[inner] / expected - 1).reshape(36, 36)
    sampled = np.unique(np.linspace(0, 35, 20).round().astype(int))
    assert off[np.ix_(sampled, sampled)].max() < 2e-3
    assert off.max() < 0.1
    assert np.ptp(found.aim[inner]) > 0.2
    aim = found.aim.reshape(law.metric.shape)
    np.testing.assert_array_equal(aim[:3, 3:-3], np.tile(aim[3, 3:-3], (3, 1)))
    np.testing.assert_array_equal(aim[3:-3, -1], aim[3:-3, -4])


@pytest.mark.parametrize("shape", [(12, 9), (7, 10), (1, 8)])
def test_a_finer_aim_lies_between(shape):
    """A plane over every other cell is that plane over all of them, but at the rim."""
    i, j = np.indices(shape, dtype=float)
    plane = 1 + 0.02 * i - 0.03 * j
    rows, columns = (shape[0] + 1) // 2, (shape[1] + 1) // 2
    a, b = np.indices((rows, columns))
    coarse = 1 + 0.02 * (2 * a + 0.5) - 0.03 * (2 * b + 0.5)
    finer = finer_aim(coarse.ravel(), shape).reshape(shape)
    inside = slice(1, -1) if shape[0] > 2 else slice(None), slice(1, 2 * columns - 2)
    if shape[0] > 2:
        np.testing.assert_allclose(finer[inside], plane[inside])
    else:  # a line: half a cell off it everywhere
        np.testing.assert_allclose(finer[inside], (plane + 0.01)[inside])


def test_a_prior_is_judged_by_on_coarse_cells_too():
    """A map of many cells starts from the law of every other one, which has the prior's sums."""
    values = np.arange(35.0).reshape(5, 7)
    sums = coarse_sums(values, 2)
    assert sums.shape == (3, 4)
    assert sums.sum() == values.sum()
    assert sums[0, 0] == values[:2, :2].sum()
    assert sums[2, 3] == values[4, 6]
    np.testing.assert_array_equal(coarse_sums(sums, 2), coarse_sums(values, 4))


def test_continuous_places_are_solved_for_a_prior():
    """The gain of cells reaches the places between them, with the slope certified as ever."""
    levels = wh.PrivacyMap(narrow_coast(0, 24) / 100, cell="100 m")
    prior = np.ones(levels.shape)
    aimed = wh.EikonalMechanism.build(levels, prior=prior)
    plain = wh.EikonalMechanism.build(levels)
    assert aimed.built.law.aim is not None
    moved = [one.mse(remap=one.posterior_mean()) for one in (aimed, plain)]
    assert moved[0] < 0.99 * moved[1]
    assert 0.99 < aimed.factor <= 1.0
    assert aimed.recertify() == aimed.factor
