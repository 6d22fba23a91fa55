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
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.privacy.maps.privacy_map import log_laplacian
from whereish.solvers.eikonal.preconditioner import Factor

__all__ = ["Weights", "closed_form_weights", "nonnegative_weights", "plain_weights"]

Product: TypeAlias = Callable[[FloatArray], FloatArray]
"""v -> E·v."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Nonnegative weights, and how they were found.

    Attributes
    ----------
    values : w >= 0 per cell.
    dropped : cells whose plain weight would have been negative, now zero.
    residual : largest |(E·w)(u) - 1| over the cells with w > 0.
    products : products with E that it took.
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


def _conjugate_gradients(
    product: Product,
    factor: Factor,
    start: FloatArray,
    image: FloatArray,
    free: NDArray[np.bool_],
    tolerance: float,
    budget: int,
) -> tuple[FloatArray, FloatArray, int]:
    """Solve (E·w)_F = 1 on the free cells F; w, E·w and the number of products.

    `image` is E·start, so that a restart costs no product.
    """
    w, Ew = start.copy(), image.copy()
    residual = np.where(free, 1.0 - Ew, 0.0)
    used = 0
    direction, rz = np.zeros_like(w), 1.0
    while np.abs(residual).max() > tolerance and used < budget:
        z = np.where(free, factor.preconditioned(residual), 0.0)
        rz, previous = float(residual @ z), rz
        direction = z + (rz / previous) * direction if used else z
        Ep = product(direction)
        used += 1
        step = rz / float(direction @ Ep)
        w += step * direction
        Ew += step * Ep
        residual = np.where(free, 1.0 - Ew, 0.0)
    return w, Ew, used


def plain_weights(
    product: Product, factor: Factor, start: FloatArray, *, budget: int = 40
) -> FloatArray:
    """Solve E·w = 1 whatever the signs of w."""
    free = np.ones(len(start), np.bool_)
    w, _, _ = _conjugate_gradients(
        product, factor, start, product(start), free, tolerance=1e-5, budget=budget
    )
    return w


def nonnegative_weights(
    product: Product,
    factor: Factor,
    start: FloatArray,
    *,
    tolerance: float = 1e-5,
    budget: int = 1000,
    hopeless: Callable[[FloatArray, float], bool] | None = None,
) -> Weights:
    """Minimise w'Ew/2 - 1'w over w >= 0 by exchanging the active set.

    Cells that turn negative are dropped and cells with (E·w)(u) < 1 taken back, until
    neither happens.  `product` is v -> E·v for a symmetric positive definite E with
    entries in (0, 1], `factor` the preconditioner, `start` a first guess.  When `budget`
    products are spent, the nonnegative part of what is there is returned; so it is when
    `hopeless`, asked about E·w and its residual once cells are dropped, says that the caller
    will not use these weights as they are.
    """
    free = start > 0
    w = np.where(free, start, 0.0)
    image = product(w)
    products = 1
    exchange = 0
    while products < budget:
        # Far from the final active set a rough solution tells as well who leaves.
        rough = tolerance * max(1.0, 100.0 * 0.1**exchange)
        w, image, used = _conjugate_gradients(
            product, factor, w, image, free, rough, budget - products
        )
        products += used
        exchange += 1
        negative = free & (w < 0)
        if hopeless is not None and not free.all() and hopeless(image, rough):
            break
        if negative.any():
            free &= ~negative
            w = np.where(free, w, 0.0)
            image = product(w)
            products += 1
            continue
        lacking = ~free & (image < 1.0 - 10 * rough)
        if not lacking.any() and rough <= tolerance:
            break
        free |= lacking
    if not np.isfinite(w).all() or not (w > 0).any():
        raise SolverError("the weights of the privacy map did not converge; is the map extreme?")
    residual = float(np.abs(np.where(free, image - 1.0, 0.0)).max())
    if (w < 0).any():  # the budget ended between two exchanges
        w = np.maximum(w, 0.0)
        image = product(w)
        products += 1
    return Weights(w, int((~free).sum()), residual, products, image)
