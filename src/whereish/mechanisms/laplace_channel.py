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
from whereish.mechanisms.finite import as_sites, sites_metric
from whereish.privacy.metric import Scaled
from whereish.solvers.cell_mass import grid_masses
from whereish.space.points import FloatArray, Points
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.units import Epsilon

__all__ = ["laplace_channel"]

_FAR = 800.0  # in units of 1/eps: the survival function is zero there in doubles
_GROWTH = 1.7


def laplace_channel(
    raster: Raster, epsilon: Epsilon | str, *, secrets: Sites | Points | None = None
) -> Channel:
    """Planar Laplace of level epsilon, reported as cells of `raster`.

    `secrets` are places of the raster's plane, by default its cell centres.
    """
    if not isinstance(raster, Raster):
        raise InvalidInput(
            f"laplace_channel needs a Raster of cells; got {type(raster).__name__}: declare one"
            " with Raster.over(box, cell)"
        )
    places = raster.sites() if secrets is None else as_sites(secrets)
    kept = sites_metric(places, epsilon, None)
    level = kept.metric.factor if isinstance(kept.metric, Scaled) else 1.0
    matrix = _masses(raster, places.coordinates, level)
    return Channel.certified(
        matrix,
        places,
        raster.sites(),
        kept,
        source="planar Laplace (Andrés et al. 2013) over grid cells, clamped",
    )


def _masses(raster: Raster, secrets: FloatArray, level: float) -> FloatArray:
    def survival(radius: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(gammaincc(2.0, level * radius))

    x_edges, x_cells = _extended(raster.origin[0], raster.cell[0], raster.columns, level)
    y_edges, y_cells = _extended(raster.origin[1], raster.cell[1], raster.rows, level)
    cells = y_cells[:, None] * raster.columns + x_cells
    out = np.empty((len(secrets), len(raster)))
    for row, (x, y) in enumerate(secrets):
        masses = np.maximum(grid_masses(survival, x_edges - x, y_edges - y).T, 0.0)
        out[row] = np.bincount(cells.ravel(), masses.ravel(), minlength=len(raster))
    return out / out.sum(axis=1, keepdims=True)


def _extended(
    origin: float, side: float, count: int, level: float
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Edges of cells and of growing strips beyond them, with the cell that each belongs to.

    The quadrature of `cell_mass` is for edges of moderate length, so the way to
    infinity is cut into strips.
    """
    inner = origin + side * np.arange(count + 1)
    reach = _FAR / level + side * count
    steps = [min(side, 1.0 / level)]
    while steps[-1] < reach:
        steps.append(_GROWTH * steps[-1])
    outward = np.array(steps)
    edges = np.concatenate([inner[0] - outward[::-1], inner, inner[-1] + outward])
    beyond = outward.size
    owner = np.clip(np.arange(edges.size - 1) - beyond, 0, count - 1)
    return edges, owner.astype(np.intp)
