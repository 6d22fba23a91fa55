"""Comparisons that a study can plot: what symmetry costs, and what a better radial gains.

A symmetric mechanism adds the same noise everywhere; among those that keep eps * d planar
Laplace is optimal, with expected distance 2/eps (ElSalamouny and Gambs 2018, Theorem 9).
A non-symmetric one may know a prior and its region: on a grid, the optimal channel.  Both
are measured here on the same cells, the symmetric one also after remapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.noise.grid_remap import bayesian_grid_remap, nearest_grid_remap
from whereish.mechanisms.noise.optimal_circular import OptimalCircular, laplace_within
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.loss import Loss
from whereish.space.raster import Raster
from whereish.units import Epsilon

__all__ = ["RadialComparison", "SymmetryComparison", "compare_radials", "compare_symmetry"]


@dataclass(frozen=True)
class SymmetryComparison:
    """Expected distances in metres at one epsilon, on one grid and prior.

    Attributes
    ----------
    symmetric : float
        Planar Laplace, 2/eps.
    nearest, bayesian : float
        The same, its reports moved to the nearest cell and by the Bayesian remap.
    non_symmetric, lower_bound : float
        The optimal channel on the cells, and a bound that no channel beats.
    """

    epsilon: Epsilon
    symmetric: float
    nearest: float
    bayesian: float
    non_symmetric: float
    lower_bound: float


def compare_symmetry(
    raster: Raster,
    prior: ArrayLike,
    epsilons: Sequence[Epsilon | str],
    *,
    gap: float = 1e-3,
) -> list[SymmetryComparison]:
    """Planar Laplace against the optimal channel on the cells of a coarse grid."""
    found = []
    for epsilon in map(Epsilon.of, epsilons):
        laplace = PlanarLaplace(epsilon, plane=raster.plane)
        remap = bayesian_grid_remap(laplace, raster, prior)
        best = optimal_channel(raster, np.ravel(prior), epsilon, gap=gap)
        found.append(
            SymmetryComparison(
                epsilon,
                laplace.mean_error.m,
                nearest_grid_remap(raster).expected_distance(laplace, prior).m,
                remap.expected_distance(laplace, prior).m,
                best.loss,
                best.lower_bound,
            )
        )
    return found


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
