"""Weights of the eikonal mechanism: E·w = 1, and w >= 0.

P(y | u) = w(y)·e^{-d(u,y)} is a law for every u when E·w = 1 (Koufogiannis and
Pappas, Location-dependent Privacy).  To leading order in the cell's area A

    w = A·(eps^2 - Laplacian ln eps) / (2·pi) = A·eps^2·(1 + K) / (2·pi),

K the Gaussian curvature of the metric eps(u)|du|, so that plain weights are
nonnegative where K >= -1.  Where some are not, the bounded problem

    min  w'E w / 2 - 1'w   over w >= 0

has E·w = 1 where w > 0 and E·w >= 1 elsewhere; the law is then normalised by
Z = E·w, and :mod:`~whereish.solvers.eikonal.certify` pays for the slope of Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.privacy.maps.privacy_map import log_laplacian

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["Inverse", "Weights", "closed_form_weights", "nonnegative_weights"]

Product: TypeAlias = Callable[[FloatArray], FloatArray]
"""v -> E·v."""
Factor: TypeAlias = "sp.csr_matrix[np.float64]"
"""A preconditioner's factor G: G'G is close to the inverse of E."""
Inverse: TypeAlias = Callable[[NDArray[np.bool_]], Factor]
"""That of the block of E of some free cells."""

_COARSE = 10.0  # times the tolerance of a pass: far from the final active set that tells as well
_NEAR_BUDGET = 60  # near products in one pass
_STALE = 0.002  # of the cells changed since the factor was made: time for another


@dataclass(frozen=True, eq=False)
class Weights:
    """Nonnegative weights, and how they were found.

    Attributes
    ----------
    values : w >= 0 per cell.
    dropped : cells whose plain weight would have been negative, now zero.
    residual : largest |(E·w)(u) - 1| over the cells with w > 0.
    products : products with E that it took; those with the near part of it are not counted.
    image : E·w, to the rounding of single precision.
    """

    values: FloatArray
    dropped: int
    residual: float
    products: int
    image: FloatArray


def closed_form_weights(eps: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """The leading-order weights A·(eps^2 - Laplacian ln eps)/(2 pi), per cell."""
    area = cell[0] * cell[1]
    return np.asarray((eps**2 - log_laplacian(eps, cell)) * area / (2 * math.pi)).ravel()


@dataclass(eq=False)
class _Exchange:
    """Minimises w'A w/2 - b'w over w >= 0 by exchanging the active set, for one operator A.

    Cells that turn negative are dropped and cells with (A·w)(u) < b(u) taken back, until
    neither happens.

    Attributes
    ----------
    product : v -> A·v.
    inverse : the preconditioner's factor for a set of free cells.
    weights, image : w, and A·w.
    free : cells that may have weight.
    products : how many were taken.
    """

    product: Product
    inverse: Inverse
    weights: FloatArray
    image: FloatArray
    free: NDArray[np.bool_]
    products: int = 0
    _known: tuple[NDArray[np.bool_], Factor, Factor] | None = None

    def solve(self, target: FloatArray, tolerance: float, budget: int, coarse: float) -> bool:
        """Move to the minimum for b = `target`, to `tolerance`; whether `budget` products sufficed.

        A solution `coarse` times as rough tells first who leaves, then a tenth of that, and so on.
        """
        end = self.products + budget
        while self.products < end:
            rough = tolerance * max(1.0, coarse)
            coarse /= 10.0
            self._conjugate_gradients(target, rough, end)
            negative = self.free & (self.weights < 0)
            if negative.any():
                self.free &= ~negative
                self.weights = np.where(self.free, self.weights, 0.0)
                self.image = self.product(self.weights)
                self.products += 1
                continue
            lacking = ~self.free & (self.image < target - 10 * rough)
            if not lacking.any() and rough <= tolerance:
                return True
            self.free |= lacking
        return False

    def _conjugate_gradients(self, target: FloatArray, tolerance: float, end: int) -> None:
        """Solve (A·w)_F = b on the free cells F."""
        residual = np.where(self.free, target - self.image, 0.0)
        direction, rz, first = np.zeros_like(residual), 1.0, True
        while np.abs(residual).max() > tolerance and self.products < end:
            factor, transpose = self._factor()
            z = np.where(self.free, np.asarray(transpose @ (factor @ residual)), 0.0)
            rz, previous = float(residual @ z), rz
            direction = z if first else z + (rz / previous) * direction
            first = False
            image = self.product(direction)
            self.products += 1
            curvature = float(direction @ image)
            if curvature <= 0.0:  # the near operator need not be positive definite
                break
            self.weights = self.weights + (rz / curvature) * direction
            self.image = self.image + (rz / curvature) * image
            residual = np.where(self.free, target - self.image, 0.0)

    def _factor(self) -> tuple[Factor, Factor]:
        """The preconditioner's factor and its transpose, for about the cells that are free."""
        known = self._known
        if known is None or (known[0] != self.free).mean() > _STALE:
            factor = self.inverse(self.free)
            known = self._known = self.free.copy(), factor, factor.T.tocsr()
        return known[1:]


def nonnegative_weights(
    product: Product,
    near: Product,
    inverse: Inverse,
    start: FloatArray,
    *,
    tolerance: float = 1e-5,
    budget: int = 1000,
    hopeless: Callable[[FloatArray, float], bool] | None = None,
) -> Weights:
    """Minimise w'Ew/2 - 1'w over w >= 0.

    What is far is held: with N the part of E that is near, each pass solves

        min  w'N w / 2 - (1 - (E - N)·v)'w   over w >= 0

    for the weights v before it, and ends with one product with E.  E - N is smooth and has little
    mass, so a pass leaves about a tenth of the residual.

    Parameters
    ----------
    product : v -> E·v for a symmetric positive definite E with entries in (0, 1].
    near : v -> N·v.
    inverse : the preconditioner's factor for a set of free cells.
    start : a first guess.
    tolerance : the residual asked for.
    budget : products with E; when they are spent, what is there is returned.
    hopeless : asked about E·w and its residual once cells are dropped, says whether the caller
        will not use these weights as they are; then, too, they are returned.
    """
    free = start > 0
    first = np.where(free, start, 0.0)
    solver = _Exchange(near, inverse, first, near(first), free)
    image = product(first)
    products = 1
    left = _residual(image, solver.free)
    while products < budget:
        aim = max(tolerance / 2, left / 20)
        solved = solver.solve(1.0 - (image - solver.image), aim, _NEAR_BUDGET, _COARSE)
        if (solver.weights < 0).any():
            break
        image = product(solver.weights)
        products += 1
        left = _residual(image, solver.free)
        if left <= tolerance and solved:
            break
        if hopeless is not None and not solver.free.all() and hopeless(image, left):
            break
    weights = solver.weights
    if not np.isfinite(weights).all() or not (weights > 0).any():
        raise SolverError("the weights of the privacy map did not converge; is the map extreme?")
    if (weights < 0).any():  # the near products ended between two exchanges
        weights = np.maximum(weights, 0.0)
        image = product(weights)
        products += 1
    return Weights(weights, int((~solver.free).sum()), left, products, image)


def _residual(image: FloatArray, free: NDArray[np.bool_]) -> float:
    """The largest |E·w - 1| on the free cells."""
    return float(np.where(free, np.abs(image - 1.0), 0.0).max())
