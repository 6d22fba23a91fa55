"""The enclosure of the mean slope that certificates between cells stand on."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal import between
from whereish.solvers.eikonal.between import law_between, slopes_between
from whereish.solvers.splines.bound import CellLaws, _largest_changes, _mean
from whereish.solvers.splines.weights import around, spline_slopes, spline_weights


def hills(rows: int, cols: int, level: float) -> np.ndarray:
    i, j = np.mgrid[:rows, :cols]
    return level * (1 + 0.8 * np.sin(i / 1.5) * np.cos(j / 1.3))


def bernstein(t: np.ndarray) -> np.ndarray:
    return np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=-1)


@pytest.mark.parametrize("level", [0.3, 1.0, 1.8])
def test_the_mean_lies_in_its_enclosure(level, monkeypatch):
    """m = E[G] by the law itself, against the control points and their radius."""
    eps = hills(7, 8, level)
    built = law_between(eps, (1.0, 1.0))
    seen: list[CellLaws] = []
    bound = between.largest_slopes

    def spy(laws, levels, cell, *, bar=0.0):
        seen.append(laws)
        return bound(laws, levels, cell, bar=bar)

    monkeypatch.setattr(between, "largest_slopes", spy)
    slopes_between(built, eps, (1.0, 1.0))
    mean = _mean(seen[0], (1.0, 1.0))
    law, (rows, cols) = built.law, eps.shape
    used = law.weights > 0
    logs = np.log(law.table[law.metric.distances(built.secrets)][:, used] / float(law.table[0]))
    weights = law.weights[used].astype(float)
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 1, (2000, 2)) * eps.shape
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
    basis = (bernstein(v)[:, :, None] * bernstein(h)[:, None, :]).reshape(len(v), 9)
    cells = i * cols + j
    M = np.einsum("nk,nkd->nd", basis, mean.controls[cells])
    off, radius = np.hypot(*(m - M).T), mean.radius.ravel()[cells]
    assert (off <= radius).all()
    assert (np.hypot(*m.T) <= mean.steepest.ravel()[cells]).all()
    assert np.median(radius / eps.ravel()[cells]) < 0.2  # so it says something
    assert off.max() > 0.2 * radius[off.argmax()]  # and is no hundred times too wide


def test_changes_are_those_of_all_nine_cells():
    rng = np.random.default_rng(1)
    rows, cols = 5, 6
    along, across = rng.random((rows - 1, cols)), rng.random((rows, cols - 1))
    laws = CellLaws(lambda: iter(()), np.zeros((rows, cols)), across, along, 1.0)
    down, right = _largest_changes(laws)
    for i in range(rows):
        for j in range(cols):
            near_i = range(max(i - 1, 0), min(i + 2, rows))
            near_j = range(max(j - 1, 0), min(j + 2, cols))
            vertical = [along[k, m] for k in near_i if k + 1 in near_i for m in near_j]
            horizontal = [across[k, m] for k in near_i for m in near_j if m + 1 in near_j]
            assert down[i, j] == max(vertical)
            assert right[i, j] == max(horizontal)
