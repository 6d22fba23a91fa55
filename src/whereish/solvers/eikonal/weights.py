"""Weights of the eikonal mechanism: E·w = 1, and w >= 0.

P(y | u) = w(y)·e^{-d(u,y)} is a law for every u when E·w = 1 (Koufogiannis and
Pappas, Location-dependent Privacy).  To leading order in the cell's area A

    w = A·(eps^2 - Laplacian ln eps) / (2·pi) = A·eps^2·(1 + K) / (2·pi),

K the Gaussian curvature of the metric eps(u)|du|, so that plain weights are
nonnegative where K >= -1.  Where some are not, the bounded problem

    min  w'E w / 2 - 1'w   over w >= 0

has E·w = 1 where w > 0 and E·w >= 1 elsewhere; the law is then normalised by
Z = E·w, and :mod:`~whereish.solvers.eikonal.certify` pays for the slope of Z.  Sums b(u) other
than 1 may be aimed at, by min w'E w / 2 - b'w (:mod:`~whereish.solvers.eikonal.aims` says why).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.privacy.maps.privacy_map import log_laplacian
from whereish.solvers.eikonal.preconditioner import Factor

__all__ = ["Inverse", "Remembered", "Weights", "closed_form_weights", "nonnegative_weights"]

Product: TypeAlias = Callable[[FloatArray], FloatArray]
"""v -> E·v."""
Inverse: TypeAlias = Callable[[NDArray[np.bool_]], Factor]
"""The preconditioner of the block of E of some free cells."""
Hopeless: TypeAlias = Callable[[FloatArray, float], bool]
"""Whether to give up, from E·w - b and about what its residual is."""
End: TypeAlias = Literal["reached", "spent", "hopeless"]
"""The minimum, the end of the products that were allowed, or given up."""

_COARSE = 3.0  # times the tolerance of a pass: far from the final active set that tells as well
_FIRST_ROUGH = 30.0  # times the tolerance, at most: rougher weights have the wrong signs
_NEAR_COST = 0.1  # of a product with all of E, or less where few cells have weight
_HALVINGS = 6  # of a step that drops cells
_RAISED = 1e-3  # of what is minimised: less is what exchanges near the end and rounding bring
_FAR_OUT = 30.0  # times the largest weight: nothing below that becomes a weight again
_STALE = 0.002  # of the cells changed since the factor was made: time for another


@dataclass
class Remembered:
    """A preconditioner's factor for about the cells that are free: the last one while it serves."""

    inverse: Inverse
    _known: tuple[NDArray[np.bool_], Factor] | None = None

    def __call__(self, free: NDArray[np.bool_]) -> Factor:
        known = self._known
        if known is None or (known[0] != free).mean() > _STALE:
            known = self._known = free.copy(), self.inverse(free)
        return known[1]


@dataclass(frozen=True, eq=False)
class Weights:
    """Nonnegative weights, and how they were found.

    Attributes
    ----------
    values : w >= 0 per cell.
    dropped : cells whose plain weight would have been negative, now zero.
    residual : largest |(E·w)(u) - b(u)| over the cells with w > 0.
    products : products with E that it took; those with the near part of it are not counted.
    image : E·w, to the rounding of single precision.
    far : what of that is far, (E - N)·w; 0 unless they were solved for.
    """

    values: FloatArray
    dropped: int
    residual: float
    products: int
    image: FloatArray
    far: FloatArray | float = 0.0

    @classmethod
    def of(
        cls,
        values: FloatArray,
        image: FloatArray,
        aim: FloatArray,
        products: int,
        far: FloatArray | float = 0.0,
    ) -> Self:
        """With what follows from the weights, E·w and b."""
        zero = values == 0
        residual = float(np.where(zero, 0.0, np.abs(image - aim)).max())
        return cls(values, int(zero.sum()), residual, products, image, far)


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

    def solve(self, target: FloatArray, tolerance: float, budget: float, hopeless: Hopeless) -> End:
        """Move to the minimum for b = `target`, to `tolerance`, by `budget` products; how it ended.

        `hopeless` is asked about A·w - b and its residual once cells are dropped.  A rougher
        solution tells first who leaves; then every exchange is followed by a tenth of the residual
        that it left, not by a solution.
        """
        end, rough = self.products + budget, _COARSE * tolerance
        while self.products < end:
            before = self.weights, self.image
            self._conjugate_gradients(target, rough, end)
            given_up = not self.free.all() and hopeless(self.image - target, rough)
            dropped = self._drop_negative(target, *before)
            if given_up:
                return "hopeless"
            if not dropped:
                lacking = ~self.free & (self.image < target - 10 * rough)
                if not lacking.any() and rough <= tolerance:
                    return "reached"
                self.free |= lacking
            left = np.abs(np.where(self.free, target - self.image, 0.0)).max()
            rough = max(tolerance, min(0.1 * float(left), _COARSE * tolerance))
        return "spent"

    def _drop_negative(self, target: FloatArray, weights: FloatArray, image: FloatArray) -> bool:
        """Take the cells of negative weight out; whether there are any.

        Without them w'A w/2 - b'w may be larger by far than at the `weights` before, with their
        `image`: then half of the step is gone, or a quarter of it, ..., and cells are dropped that
        are negative after that.
        """
        if not (self.weights < 0).any():
            return False
        step, before = self.weights - weights, _energy(weights, image, target)
        most = before + _RAISED * abs(before)
        for halvings in range(_HALVINGS + 1):
            moved = weights + 0.5**halvings * step
            self.weights = np.maximum(moved, 0.0)
            self.image = self.product(self.weights)
            self.products += 1
            if _energy(self.weights, self.image, target) <= most:
                break
        self.free = self.free & (moved >= 0)
        return True

    def _conjugate_gradients(self, target: FloatArray, tolerance: float, end: float) -> None:
        """Solve (A·w)_F = b on the free cells F."""
        residual = np.where(self.free, target - self.image, 0.0)
        direction, rz, first = np.zeros_like(residual), 1.0, True
        lowest = -_FAR_OUT * float(self.weights.max())
        while np.abs(residual).max() > tolerance and self.products < end:
            z = np.where(self.free, self.inverse(self.free).preconditioned(residual), 0.0)
            rz, previous = float(residual @ z), rz
            direction = z if first else z + (rz / previous) * direction
            first = False
            image = self.product(direction)
            self.products += 1
            curvature = float(direction @ image)
            if curvature <= 0.0:  # neither A nor its near part need be positive definite
                break
            self.weights = self.weights + (rz / curvature) * direction
            self.image = self.image + (rz / curvature) * image
            residual = np.where(self.free, target - self.image, 0.0)
            if self.weights.min() < lowest:  # nor is a minimum far outside of any use
                break


def _energy(weights: FloatArray, image: FloatArray, target: FloatArray) -> float:
    """w'A w/2 - b'w."""
    return float(weights @ (0.5 * image - target))


def nonnegative_weights(
    product: Product,
    near: Product,
    inverse: Inverse,
    start: FloatArray,
    *,
    aim: FloatArray | None = None,
    tolerance: float = 1e-5,
    budget: int = 1000,
    hopeless: Hopeless | None = None,
    far: FloatArray | None = None,
) -> Weights:
    """Minimise w'Ew/2 - b'w over w >= 0.

    What is far is held: with N the part of E that is near, each pass solves

        min  w'N w / 2 - (b - (E - N)·v)'w   over w >= 0

    for the weights v before it, and ends with one product with E.  E - N is smooth and has little
    mass, so a pass leaves about a tenth of the residual.

    Parameters
    ----------
    product : v -> E·v for a symmetric positive definite E with entries in (0, 1].
    near : v -> N·v.
    inverse : the preconditioner's factor for a set of free cells.
    start : a first guess.
    aim : b, about 1; None for 1.
    tolerance : the residual asked for.
    budget : products with E, near ones counted as a tenth; when they are spent, what is there is
        returned.
    hopeless : asked about E·w - b and its residual once cells are dropped, says whether the caller
        will not use these weights as they are; then, too, they are returned.
    far : about (E - N)·v for the guess v, if that is known: it saves a product.
    """
    free = start > 0
    first = np.where(free, start, 0.0)
    near_image = near(first)
    image = product(first) if far is None else near_image + far
    aim = np.ones_like(first) if aim is None else aim
    scale = float(first @ aim) / float(first @ image)  # the best multiple of the guess
    first, image = scale * first, scale * image
    solver = _Exchange(near, Remembered(inverse), first, scale * near_image, free)
    found = Weights.of(first, image, aim, 1 if far is None else 0)
    while (left := budget - found.products - _NEAR_COST * solver.products) > 0:
        rough = max(tolerance / 2, min(found.residual / 20, _FIRST_ROUGH * tolerance))
        target = aim - (found.image - solver.image)
        end = solver.solve(target, rough, left / _NEAR_COST, hopeless or _never)
        weights = solver.weights
        if not np.isfinite(weights).all() or not weights.any():
            raise SolverError(
                "the weights of the privacy map did not converge; is the map extreme?"
            )
        image = product(weights)
        found = Weights.of(weights, image, aim, found.products + 1, image - solver.image)
        if end == "hopeless" or (end == "reached" and found.residual <= tolerance):
            break
    return found


def _never(excess: FloatArray, rough: float) -> bool:
    return False
