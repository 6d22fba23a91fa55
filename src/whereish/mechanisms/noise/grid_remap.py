"""Remaps of continuous noise onto the cells of a grid: nearest and Bayesian.

A remap is post-processing and keeps every promise.  The Bayesian one moves a report to
the admissible cell of least posterior expected distance under a prior (Chatzikokolakis,
ElSalamouny, Palamidessi, PETS 2017; ElSalamouny and Gambs 2018 use an 80 x 60 grid);
the nearest one to the closest admissible cell, off rivers and seas, or onto roads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Remap
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.solvers.cells.grid_posterior import bayesian_targets, expected_distance, offset_tables
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.prior import as_prior
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.units import Length

__all__ = ["GridRemap", "bayesian_grid_remap", "lattice_remap", "nearest_grid_remap"]

Noise: TypeAlias = CircularNoise | PlanarLaplace


@dataclass(frozen=True, eq=False)
class GridRemap:
    """Moves the reports of a cell to the centre of the cell's target.

    Use it as ``mechanism >> remap``.  Reports beyond the grid go with their closest cell.
    """

    raster: Raster
    targets: IntArray = field(repr=False)

    def __call__(self, reports: Points) -> Points:
        centres = self.raster.centres()
        moved = centres[self.targets[self.raster.locate(reports.coordinates)]]
        return Points(moved, reports.space, reports.reproducible)

    def expected_distance(self, noise: Noise, prior: ArrayLike) -> Length:
        """Expected distance of the remapped report from a secret cell's centre."""
        weights = _prior(prior, self.raster)
        tables = offset_tables(_survival(noise), self.raster.shape, self.raster.cell)
        centres = self.raster.centres()
        return Length(
            float(expected_distance(tables, self.raster.shape, centres, weights, self.targets))
        )


def nearest_grid_remap(raster: Raster, *, onto: ArrayLike | None = None) -> GridRemap:
    """Each cell to the closest admissible one: itself by default.

    Raises
    ------
    InvalidInput
        If `onto` is no mask of the raster, or admits no cell.

    Examples
    --------
    >>> import whereish as wh
    >>> raster = wh.Raster(1, 3, (100, 100))
    >>> remap = wh.nearest_grid_remap(raster, onto=[[True, False, True]])
    >>> remap(wh.Points([[120, 50], [290, 10]], wh.Plane())).coordinates.tolist()
    [[50.0, 50.0], [250.0, 50.0]]
    """
    cells = _admissible(onto, raster)
    centres = raster.centres()
    sites = Sites(Points(centres[cells], raster.plane))
    return GridRemap(raster, cells[sites.nearest(centres)])


def bayesian_grid_remap(
    noise: Noise, raster: Raster, prior: ArrayLike, *, onto: ArrayLike | None = None
) -> GridRemap:
    """Each cell to the admissible one of least posterior expected distance.

    Parameters
    ----------
    noise
        Planar Laplace or any circular noise on the raster's plane.
    prior
        Probability of each cell, rows x columns or flat.
    onto
        Admissible cells as a mask of the raster; all by default.

    Raises
    ------
    InvalidInput
        If the raster is on another plane, or the prior is not a distribution on its cells.

    Examples
    --------
    >>> import whereish as wh
    >>> raster = wh.Raster(2, 3, (100, 100))
    >>> noise = wh.PlanarLaplace("0.01/m")
    >>> remap = wh.bayesian_grid_remap(noise, raster, [0.9, 0.02, 0.02, 0.02, 0.02, 0.02])
    >>> (noise >> remap).report([[50, 50]])
    Points(1 in the plane in metres)
    """
    if noise.space != raster.plane:
        raise InvalidInput("the raster must lie on the mechanism's plane")
    weights, cells = _prior(prior, raster), _admissible(onto, raster)
    tables = offset_tables(_survival(noise), raster.shape, raster.cell)
    return GridRemap(
        raster, bayesian_targets(tables, raster.shape, raster.centres(), weights, cells)
    )


def _survival(noise: Noise) -> Callable[[FloatArray], FloatArray]:
    if isinstance(noise, CircularNoise):
        return noise.radial.survival
    if not isinstance(noise, PlanarLaplace):
        raise InvalidInput(
            "a remap on a grid needs planar Laplace or circular noise; got"
            f" {type(noise).__name__}: for finite mechanisms use bayesian_remap"
        )
    level = noise.level
    from scipy.special import gammaincc

    return lambda r: np.asarray(gammaincc(2.0, level * r))


def _prior(prior: ArrayLike, raster: Raster) -> FloatArray:
    return as_prior(prior, len(raster), shape=raster.shape, of="cell")


def _admissible(onto: ArrayLike | None, raster: Raster) -> IntArray:
    if onto is None:
        return np.arange(len(raster), dtype=np.int64)
    mask = np.asarray(onto)
    if mask.dtype != np.bool_ or mask.shape not in (raster.shape, (len(raster),)):
        raise InvalidInput(
            f"admissible cells must be a mask of booleans of shape {raster.shape}; got"
            f" {mask.dtype} of {mask.shape}"
        )
    if not mask.any():
        raise InvalidInput("at least one cell must be admissible; got none")
    return np.flatnonzero(mask.ravel()).astype(np.int64)


def lattice_remap(u: Length | str, v: Length | str) -> Remap:
    """Rounds each report to the nearest point of a lattice with steps u along x and v along y.

    As in Bordenabe's thesis, section 5.2, where the two steps may differ.  It is post-processing:
    ``noise >> lattice_remap("3 m", "5 m")`` keeps what `noise` keeps.  Where u and v are odd
    multiples of the noise's own resolution, the result is the ideal report rounded once, since
    the borders of the larger cells are borders of the smaller; otherwise it is rounded twice.

    Raises
    ------
    InvalidInput
        If a step is not a length > 0, or the reports are not on a plane.

    Examples
    --------
    >>> import whereish as wh
    >>> remap = lattice_remap("3 m", "5 m")
    >>> remap(wh.Points([[4.4, 7.6]], wh.Plane())).coordinates.tolist()
    [[3.0, 10.0]]
    """
    steps = np.array([Length.positive(u, name="u").m, Length.positive(v, name="v").m])

    def rounded(reports: Points) -> Points:
        if not isinstance(reports.space, Plane):
            raise InvalidInput(
                f"a lattice in metres needs reports on a plane; got {reports.space.description}"
            )
        nearest = np.floor(reports.coordinates / steps + 0.5) * steps
        return Points(nearest, reports.space, reports.reproducible)

    return rounded
