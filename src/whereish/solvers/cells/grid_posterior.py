"""Bayesian remapping on a grid, for noise that is the same everywhere.

Secrets are the centres of rows x columns cells, and a report is the cell that holds the
noisy place, or the closest cell to it.  The probability of a report depends only on the
offset of the two cells, except that cells on the border also collect what falls beyond:
nine small tables by offset (inner or border along x and along y) hold the whole channel,
of which rows of the posterior are filled as they are needed.  The minimiser of each
posterior expected distance comes from
:func:`~whereish.solvers.channels.posterior.euclidean_argmin`, as for finite mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.cells.mass import grid_masses
from whereish.solvers.channels.posterior import euclidean_argmin

__all__ = ["bayesian_targets", "expected_distance", "offset_tables", "report_rows"]

Survival: TypeAlias = Callable[[FloatArray], FloatArray]
_GROWTH, _STRIPS = 1.5, 40
_BLOCK = 128


def offset_tables(
    survival: Survival, shape: tuple[int, int], cell: tuple[float, float]
) -> FloatArray:
    """Entry (a, b, i, j): probability of a report that lies i - (columns - 1) columns and
    j - (rows - 1) rows from the secret, where a (along x) and b (along y) say whether the
    report's cell is on the low border (0), inside (1) or on the high border (2).
    """  # noqa: D205
    rows, columns = shape
    x, y = (_edges(n, side) for n, side in ((columns, cell[0]), (rows, cell[1])))
    masses = np.maximum(grid_masses(survival, x, y), 0.0)
    masses /= masses.sum()
    along_x = _bordered(masses)
    return np.stack([np.moveaxis(_bordered(np.moveaxis(t, 1, 0)), 1, 2) for t in along_x])


def _edges(count: int, side: float) -> FloatArray:
    """Edges of the cells at offsets up to count - 1, and of growing strips on both sides."""
    inner = side * (np.arange(2 * count) - (count - 0.5))
    outer = np.cumsum(side * _GROWTH ** np.arange(_STRIPS))
    return np.concatenate([inner[0] - outer[::-1], inner, inner[-1] + outer])


def _bordered(masses: FloatArray) -> FloatArray:
    """Along the first axis: all up to each offset, each offset alone, all from it on."""
    below, above = np.cumsum(masses, axis=0), np.cumsum(masses[::-1], axis=0)[::-1]
    inner = slice(_STRIPS, len(masses) - _STRIPS)
    return np.stack([below[inner], masses[inner], above[inner]])


@kernel
def report_rows(
    tables: FloatArray, shape: tuple[int, int], secrets: IntArray, first: int, rows: FloatArray
) -> None:
    """Fill rows with P(report | secret): a row for each report from `first` on."""
    height, width = shape
    for k in range(rows.shape[0]):
        z_row, z_column = (first + k) // width, (first + k) % width
        a = 0 if z_column == 0 else (2 if z_column == width - 1 else 1)
        b = 0 if z_row == 0 else (2 if z_row == height - 1 else 1)
        table = tables[a, b]
        for i in range(secrets.size):
            x_row, x_column = secrets[i] // width, secrets[i] % width
            rows[k, i] = table[z_column - x_column + width - 1, z_row - x_row + height - 1]


def bayesian_targets(
    tables: FloatArray,
    shape: tuple[int, int],
    centres: FloatArray,
    prior: FloatArray,
    candidates: IntArray,
) -> IntArray:
    """For each report the cell, out of `candidates`, of least posterior expected distance."""
    secrets = np.flatnonzero(prior > 0)
    places, chances = np.ascontiguousarray(centres[secrets]), prior[secrets]
    among = np.ascontiguousarray(centres[candidates])
    targets = np.empty(len(centres), np.int64)
    block = np.empty((_BLOCK, len(secrets)))
    for first in range(0, len(centres), _BLOCK):
        rows = block[: min(_BLOCK, len(centres) - first)]
        report_rows(tables, shape, secrets, first, rows)
        rows *= chances
        total = rows.sum(axis=1, keepdims=True)
        rows /= np.where(total > 0, total, 1.0)
        best = euclidean_argmin(rows, places, among)
        for k in np.flatnonzero(total[:, 0] == 0):  # no possible secret: the closest candidate
            best[k] = np.argmin(((among - centres[first + k]) ** 2).sum(axis=1))
        targets[first : first + len(rows)] = candidates[best]
    return targets


@kernel
def expected_distance(
    tables: FloatArray,
    shape: tuple[int, int],
    centres: FloatArray,
    prior: FloatArray,
    targets: IntArray,
) -> float:
    """sum_x prior_x sum_z P(z | x) |x - target_z|."""
    height, width = shape
    total = 0.0
    for x in range(centres.shape[0]):
        if prior[x] == 0:
            continue
        x_row, x_column = x // width, x % width
        loss = 0.0
        for z in range(centres.shape[0]):
            z_row, z_column = z // width, z % width
            a = 0 if z_column == 0 else (2 if z_column == width - 1 else 1)
            b = 0 if z_row == 0 else (2 if z_row == height - 1 else 1)
            chance = tables[a, b, z_column - x_column + width - 1, z_row - x_row + height - 1]
            dx = centres[x, 0] - centres[targets[z], 0]
            dy = centres[x, 1] - centres[targets[z], 1]
            loss += chance * np.sqrt(dx * dx + dy * dy)
        total += prior[x] * loss
    return total
