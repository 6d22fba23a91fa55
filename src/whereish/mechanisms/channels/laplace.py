"""Planar Laplace noise on cells, as a channel.

The continuous mechanism keeps eps * Euclidean; replacing its report by the cell that
holds it is post-processing.  On a grid, reports beyond it go to the closest cell, so
that cells on the border reach to infinity; the cells of other sites are their Voronoi
cells, which hold the places that are closest to them.  The probability of a report is
the mass of its cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.calibrated import Target
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import (
    Loss,
    PlacesLike,
    as_secrets,
    as_sites,
    check_entries,
    refuse_degrees,
    sites_metric,
)
from whereish.privacy.metric import Scaled
from whereish.solvers.cells.mass import Survival, grid_masses
from whereish.solvers.cells.voronoi import voronoi_masses
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.units import Epsilon, Length

__all__ = ["clamped_masses", "clamped_masses_of", "laplace_channel", "nearest_site_masses"]

_FAR = 800.0  # in units of 1/eps: the survival function is zero there in doubles
_GROWTH = 1.7


def laplace_channel(
    cells: Raster | PlacesLike,
    epsilon: Epsilon | str | None = None,
    *,
    secrets: PlacesLike | None = None,
    quality_loss: float | None = None,
    accuracy: tuple[float, Length | str] | None = None,
    prior: ArrayLike | None = None,
    loss: Loss = "euclidean",
) -> Channel:
    """Planar Laplace of level epsilon, reported as cells of a raster or as the closest site.

    Contract: keeps ``eps * Euclidean()`` between the secrets, in true metres; certified.

    Secrets are places of the same plane, by default the cell centres or sites.  All
    triples are checked, so the cost grows with secrets² x cells: a second for 1,000
    cells, minutes for 5,000.

    Instead of epsilon, `quality_loss` is the expected `loss` under `prior` that the channel may
    have, or `accuracy` = (c, radius) the probability c of a report within `radius`: epsilon is
    found to 1e-9 of it.

    Raises
    ------
    InvalidInput
        If the cells or secrets are not places of one plane, or no epsilon gives the loss.
    NotPrivate
        If the integer weights fail their certificate.

    Examples
    --------
    >>> import whereish as wh
    >>> channel = wh.laplace_channel(wh.Raster(2, 2, (100, 100)), "0.01/m")
    >>> channel.matrix.shape
    (4, 4)
    >>> same_loss = wh.laplace_channel(wh.Raster(2, 2, (100, 100)), quality_loss=30.0)
    >>> round(wh.quality_loss(same_loss, None), 6)
    30.0
    """
    reports = as_secrets(cells) if secrets is None else as_sites(cells)
    places = reports if secrets is None else as_secrets(secrets)
    check_entries(len(places), len(reports))
    if not isinstance(reports.points.space, Plane):
        raise InvalidInput(
            "laplace_channel needs a Raster, or sites on a plane in metres; got sites on a"
            f" {type(reports.points.space).__name__.lower()}: project them with Plane.around(box)"
        )
    if places.points.space != reports.points.space:
        raise InvalidInput("secrets must be places of the same plane as the cells")

    def masses(level: float) -> FloatArray:
        if not isinstance(cells, Raster):
            return nearest_site_masses(reports.coordinates, level, places.coordinates)
        if secrets is None:
            return clamped_masses(cells, level)
        return clamped_masses_of(cells, level, places.coordinates)

    if quality_loss is not None or accuracy is not None or epsilon is None:
        if epsilon is not None:
            raise InvalidInput("give one of epsilon, quality_loss and accuracy")
        target = Target.of(
            places,
            reports,
            prior=prior,
            loss=loss,
            quality_loss=quality_loss,
            accuracy=accuracy,
        )
        scale = reports.points.space.scale
        extent = float(np.ptp(reports.coordinates, axis=0).max()) or 1.0
        epsilon = target.epsilon(lambda eps: masses(eps / scale), 8 / extent)
    kept = sites_metric(places, epsilon, None)
    refuse_degrees(cells if secrets is None else secrets, places, float(kept.distances.max()))
    level = kept.metric.factor if isinstance(kept.metric, Scaled) else 1.0
    kind = "grid cells, clamped" if isinstance(cells, Raster) else "Voronoi cells"
    source = f"planar Laplace (Andrés et al. 2013) over {kind}"
    return Channel.certified(masses(level), places, reports, kept, source=source)


def nearest_site_masses(sites: FloatArray, level: float, secrets: FloatArray) -> FloatArray:
    """Probability that each site is the closest to planar Laplace noise around each secret."""
    return voronoi_masses(level, sites, secrets)


def clamped_masses_of(raster: Raster, level: float, secrets: FloatArray) -> FloatArray:
    """Probability of each cell's clamped rectangle for noise around each of `secrets`."""
    (x_low, y_low), (width, height) = raster.origin, raster.cell
    x_edges = x_low + _with_strips(width * np.arange(raster.columns + 1.0), level)
    y_edges = y_low + _with_strips(height * np.arange(raster.rows + 1.0), level)
    # Strips before the first and after the last cell belong to those cells.
    x_first, y_first = (
        np.r_[0, (edges.size - 1 - count) // 2 + np.arange(1, count)]
        for edges, count in ((x_edges, raster.columns), (y_edges, raster.rows))
    )
    out = np.empty((len(secrets), len(raster)))
    for row, (x, y) in enumerate(secrets):
        masses = np.maximum(grid_masses(_survival(level), x_edges - x, y_edges - y), 0.0)
        folded = np.add.reduceat(np.add.reduceat(masses, x_first, axis=0), y_first, axis=1)
        out[row] = folded.T.ravel()
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def clamped_masses(raster: Raster, level: float) -> FloatArray:
    """Probability of each cell's clamped rectangle for noise around each cell's centre.

    The noise is the same everywhere, so one table of masses by offset serves all
    secrets; strips beyond the grid are added to the cells of its border.
    """
    x_edges, y_edges = (
        _with_strips(side * (np.arange(2.0 * count) - count + 0.5), level)
        for side, count in zip(raster.cell, (raster.columns, raster.rows), strict=True)
    )
    table = np.maximum(grid_masses(_survival(level), x_edges, y_edges), 0.0)
    # (column of secret, column of report, y offset), then the same along y.
    by_column = _folded(table, raster.columns)
    by_both = _folded(np.moveaxis(by_column, 2, 0), raster.rows)
    # by_both: (row of secret, row of report, column of secret, column of report).
    matrix = np.moveaxis(by_both, 2, 1).reshape(len(raster), len(raster))
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _survival(level: float) -> Survival:
    return lambda radius: (1.0 + level * radius) * np.exp(-level * radius)


def _with_strips(inner: NDArray[np.floating[Any]], level: float) -> FloatArray:
    """Edges of cells and, on both sides, of growing strips to where no mass is left.

    The quadrature of `solvers.cells.mass` is for edges of moderate length, so the way to
    infinity is cut into strips.
    """
    reach = _FAR / level + float(inner[-1] - inner[0])
    steps = [min(float(inner[1] - inner[0]), 1.0 / level)]
    while steps[-1] < reach:
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
