"""Planar Laplace noise on a grid, as a channel.

The continuous mechanism keeps eps * Euclidean; replacing its report by the cell that
holds it, and reports beyond the grid by the closest cell, is post-processing.  The
probability of a cell is the mass of its rectangle, where cells on the border reach to
infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from whereish.errors import InvalidInput
from whereish.mechanisms.channel import Channel
from whereish.mechanisms.finite import sites_metric
from whereish.privacy.metric import Scaled
from whereish.solvers.cell_mass import grid_masses
from whereish.space.points import FloatArray
from whereish.space.raster import Raster
from whereish.units import Epsilon

__all__ = ["clamped_masses", "laplace_channel"]

_FAR = 800.0  # in units of 1/eps: the survival function is zero there in doubles
_GROWTH = 1.7


def laplace_channel(raster: Raster, epsilon: Epsilon | str) -> Channel:
    """Planar Laplace of level epsilon from and to the cells of `raster`.

    Secrets are cell centres.  All triples of cells are checked, so the cost grows with
    the third power of their number: a second for 1,000 cells, minutes for 5,000.
    """
    if not isinstance(raster, Raster):
        raise InvalidInput(
            f"laplace_channel needs a Raster of cells; got {type(raster).__name__}: declare one"
            " with Raster.over(box, cell)"
        )
    places = raster.sites()
    kept = sites_metric(places, epsilon, None)
    level = kept.metric.factor if isinstance(kept.metric, Scaled) else 1.0
    return Channel.certified(
        clamped_masses(raster, level),
        places,
        places,
        kept,
        source="planar Laplace (Andrés et al. 2013) over grid cells, clamped",
    )


def clamped_masses(raster: Raster, level: float) -> FloatArray:
    """Probability of each cell's clamped rectangle for noise around each cell's centre.

    The noise is the same everywhere, so one table of masses by offset serves all
    secrets; strips beyond the grid are added to the cells of its border.
    """

    def survival(radius: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(gammaincc(2.0, level * radius))

    x_edges = _offset_edges(raster.cell[0], raster.columns, level)
    y_edges = _offset_edges(raster.cell[1], raster.rows, level)
    table = np.maximum(grid_masses(survival, x_edges, y_edges), 0.0)
    # (column of secret, column of report, y offset), then the same along y.
    by_column = _folded(table, raster.columns)
    by_both = _folded(np.moveaxis(by_column, 2, 0), raster.rows)
    # by_both: (row of secret, row of report, column of secret, column of report).
    matrix = np.moveaxis(by_both, 2, 1).reshape(len(raster), len(raster))
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _offset_edges(side: float, count: int, level: float) -> FloatArray:
    """Edges of cells around the origin, 2 count - 1 of them, and of growing strips beyond.

    The quadrature of `cell_mass` is for edges of moderate length, so the way to
    infinity is cut into strips.
    """
    inner = side * (np.arange(2 * count) - count + 0.5)
    steps = [min(side, 1.0 / level)]
    while steps[-1] < _FAR / level:
        steps.append(_GROWTH * steps[-1])
    outward = np.array(steps)
    return np.concatenate([inner[0] - outward[::-1], inner, inner[-1] + outward])


def _folded(table: FloatArray, count: int) -> FloatArray:
    """From masses by offset (axis 0) to (secret, report, ...) with the border clamped."""
    centre = (table.shape[0] - 1) // 2
    until = np.cumsum(table, axis=0)
    since = np.cumsum(table[::-1], axis=0)[::-1]
    out = np.empty((count, count, *table.shape[1:]))
    for secret in range(count):
        first = centre - secret
        out[secret] = table[first : first + count]
        out[secret, 0] = until[first]
        out[secret, -1] = since[first + count - 1]
    if count == 1:
        out[0, 0] = table.sum(axis=0)
    return out
