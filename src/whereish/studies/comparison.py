"""Comparisons that a study can plot: what symmetry costs, and what a better radial gains.

A symmetric mechanism adds the same noise everywhere; among those that keep eps * d planar
Laplace is optimal, with expected distance 2/eps (ElSalamouny and Gambs 2018, Theorem 9).
A non-symmetric one may know a prior and its region: on a grid, the optimal channel.  Both are
measured from the user's real position (Figure 4 of the paper): a channel that hardly moves a cell
still moves its users to the cell's centre, and on coarse cells that alone can cost more than
Laplace noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.laplace import clamped_masses_of
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.noise.grid_remap import (
    GridRemap,
    bayesian_grid_remap,
    nearest_grid_remap,
)
from whereish.mechanisms.noise.optimal_circular import OptimalCircular, laplace_within
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.norms import Euclidean
from whereish.solvers.radial.loss import Loss
from whereish.space.points import plain_numbers
from whereish.space.prior import as_prior
from whereish.space.raster import Raster
from whereish.units import Epsilon

__all__ = [
    "RadialComparison",
    "SymmetryComparison",
    "compare_radials",
    "compare_symmetry",
    "rectangle_distance",
]

_PER_SIDE = 4  # positions along each side of a cell that stand for uniform ones under Laplace noise


@dataclass(frozen=True)
class SymmetryComparison:
    """Expected distances in metres at one epsilon, on one grid and prior.

    All are from the user's real position to the report, as `positions` says where that is.

    Attributes
    ----------
    symmetric : float
        Planar Laplace at the real position, 2/eps.
    nearest, bayesian : float
        The same, its reports moved to the nearest cell and by the Bayesian remap.
    non_symmetric : float
        The channel on cells that is optimal between their centres, as in the paper's Figure 4.
    adapted, lower_bound : float
        The channel on cells that is optimal for these positions, and a bound that no channel on
        cells beats.  Both channels keep eps * d between the centres of cells, not positions.
    positions : str
        'centres', 'uniform' or 'points'.
    """

    epsilon: Epsilon
    symmetric: float
    nearest: float
    bayesian: float
    non_symmetric: float
    lower_bound: float
    adapted: float
    positions: str


def compare_symmetry(
    raster: Raster,
    prior: ArrayLike | None,
    epsilons: Sequence[Epsilon | str],
    *,
    gap: float = 1e-3,
    positions: str | ArrayLike = "uniform",
) -> list[SymmetryComparison]:
    """Planar Laplace against the optimal channel on the cells of a coarse grid.

    Parameters
    ----------
    prior
        Probability of each cell; None with points, which are counted then.
    positions
        Where in its cell a user really is: 'uniform', at 'centres', or an (n, 2) array of points
        of the raster's plane, each as likely as its cell's prior divided by the cell's points.

    Raises
    ------
    InvalidInput
        If a cell with prior has no point, or a point lies outside the raster.
    """
    weights, places, cell, kind = _positions(raster, prior, positions)
    p = np.bincount(cell, weights, len(raster))
    losses = _mean_losses(raster, weights, places, cell, kind)
    found = []
    for epsilon in map(Epsilon.of, epsilons):
        laplace = PlanarLaplace(epsilon, plane=raster.plane)
        level = float(laplace.level)
        masses = clamped_masses_of(raster, level, places)
        bayesian = bayesian_grid_remap(laplace, raster, p)
        best = optimal_channel(raster, p, epsilon, gap=gap)
        adapted = best
        if kind != "centres":
            adapted = optimal_channel(raster, p, epsilon, loss=losses, gap=gap)
        columns = raster.locate(best.reports.coordinates)
        found.append(
            SymmetryComparison(
                epsilon,
                laplace.mean_error.m,
                _remapped(masses, weights, places, raster.centres(), nearest_grid_remap(raster)),
                _remapped(masses, weights, places, raster.centres(), bayesian),
                float((p[:, None] * best.matrix * losses[:, columns]).sum()),
                adapted.lower_bound,
                adapted.loss,
                kind,
            )
        )
    return found


def _positions(
    raster: Raster, prior: ArrayLike | None, positions: str | ArrayLike
) -> tuple[FloatArray, FloatArray, NDArray[np.intp], str]:
    """Weights and places of real positions, and their cells; uniform ones by quadrature."""
    centres = raster.centres()
    if isinstance(positions, str):
        if positions not in ("uniform", "centres"):
            raise InvalidInput(
                f"positions must be 'uniform', 'centres' or an array of points; got {positions!r}"
            )
        p = as_prior(prior, len(raster), shape=raster.shape, of="cell")
        if positions == "centres":
            return p, centres, np.arange(len(raster)), positions
        nodes, shares = np.polynomial.legendre.leggauss(_PER_SIDE)
        x, y = np.meshgrid(*(nodes * side / 2 for side in raster.cell), indexing="ij")
        inside = np.column_stack([x.ravel(), y.ravel()])
        weights = np.outer(p, np.outer(shares, shares).ravel() / 4).ravel()
        places = (centres[:, None] + inside[None]).reshape(-1, 2)
        return weights, places, np.repeat(np.arange(len(raster)), len(inside)), positions
    places = plain_numbers(positions, "positions")
    if places.ndim != 2 or places.shape[1] != 2 or not len(places):
        raise InvalidInput(f"positions must be an (n, 2) array of metres; got {places.shape}")
    cell = raster.locate(places)
    away = np.abs(places - centres[cell]) > np.asarray(raster.cell) / 2 * (1 + 1e-9)
    if away.any():
        outside = int(away.any(axis=1).sum())
        raise InvalidInput(f"positions must lie in the raster; {outside} of {len(places)} do not")
    counts = np.bincount(cell, minlength=len(raster))
    if prior is None:
        return np.full(len(places), 1 / len(places)), places, cell, "points"
    p = as_prior(prior, len(raster), shape=raster.shape, of="cell")
    empty = int(((p > 0) & (counts == 0)).sum())
    if empty:
        raise InvalidInput(f"every cell with some prior must have a point; {empty} have none")
    return p[cell] / counts[cell], places, cell, "points"


def _mean_losses(
    raster: Raster, weights: FloatArray, places: FloatArray, cell: NDArray[np.intp], kind: str
) -> FloatArray:
    """Mean distance from the positions in each cell to every centre; exact where uniform."""
    centres = raster.centres()
    if kind == "uniform":
        width, height = raster.cell
        offset = centres[None] - centres[:, None]
        return rectangle_distance(offset[..., 0], offset[..., 1], width, height)
    total = np.zeros((len(raster), len(raster)))
    np.add.at(total, cell, weights[:, None] * Euclidean().matrix(places, centres))
    mass = np.bincount(cell, weights, len(raster))[:, None]
    centre_losses = Euclidean().matrix(centres)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), centre_losses)


def rectangle_distance(x: FloatArray, y: FloatArray, width: float, height: float) -> FloatArray:
    """The mean distance of a uniform point of a centred rectangle from (x, y), in closed form.

    The integral of |v| over [0, a] x [0, b] is (2 a b c + a^3 ln((b + c)/a) + b^3 ln((a + c)/b))/6
    with c = hypot(a, b); a rectangle is four of these, with signs.
    """

    def corner(a: FloatArray, b: FloatArray) -> FloatArray:
        s, t = np.abs(a), np.abs(b)
        c = np.hypot(s, t)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(s > 0, s**3 * np.log((t + c) / s), 0.0)
            second = np.where(t > 0, t**3 * np.log((s + c) / t), 0.0)
        return np.asarray(np.sign(a) * np.sign(b) * (2 * s * t * c + first + second) / 6)

    left, right = -width / 2 - x, width / 2 - x
    below, above = -height / 2 - y, height / 2 - y
    area = corner(right, above) - corner(left, above) - corner(right, below) + corner(left, below)
    return np.asarray(area / (width * height))


def _remapped(
    masses: FloatArray,
    weights: FloatArray,
    places: FloatArray,
    centres: FloatArray,
    remap: GridRemap,
) -> float:
    """Expected distance from the positions to their reports, moved to the targets of cells."""
    apart = Euclidean().matrix(places, centres[remap.targets])
    return float((weights[:, None] * masses * apart).sum())


@dataclass(frozen=True)
class RadialComparison:
    """The optimal circular noise against planar Laplace for the same promise."""

    keeps: Distinguishability
    loss: Loss
    optimal: float
    lower_bound: float
    laplace: float

    @property
    def gain(self) -> float:
        """The share of planar Laplace's loss that the optimum saves."""
        return 1 - self.optimal / self.laplace


def compare_radials(
    promises: Sequence[Distinguishability], *, loss: Loss | None = None
) -> list[RadialComparison]:
    """Expected losses of both, each certified to keep its promise."""
    wanted = Loss.power(1) if loss is None else loss
    found = []
    for keeps in promises:
        best = OptimalCircular(keeps, wanted)
        laplace = laplace_within(keeps).expected_loss(wanted)
        found.append(RadialComparison(keeps, wanted, best.loss_value, best.lower_bound, laplace))
    return found
