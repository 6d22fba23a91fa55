"""Priors: the probabilities of places before any report, checked in one place.

A prior over n places is finite, >= 0 and not all zero.  Most callers take probabilities:
their sum must be 1 up to the rounding of printed decimals, and is then made 1.  Where numbers
in proportion mean the same (visits per cell, population), ``weights=True`` takes any sum.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.points import plain_numbers

__all__ = ["TOLERANCE", "as_prior"]

TOLERANCE: Final = 1e-3
"""How far probabilities may be from a sum of 1: a few hundred of them, printed with five
decimals.  What is farther off is taken for counts, or for a prior with entries lost."""


def as_prior(
    prior: ArrayLike | None,
    count: int,
    *,
    shape: tuple[int, ...] | None = None,
    weights: bool = False,
    name: str = "prior",
    of: str = "site",
) -> FloatArray:
    """Probabilities of `count` places, which sum to 1; None means uniform.

    Parameters
    ----------
    shape
        A shape other than (count,) that is accepted too, such as a raster's.
    weights
        Whether any numbers >= 0 in proportion will do.
    name, of
        What messages call the prior, and what it has an entry for.

    Raises
    ------
    InvalidInput
        Unless the prior has the right shape, is finite, >= 0 and not all zero, and sums to 1
        within :data:`TOLERANCE` (or `weights`).

    >>> as_prior([0.25, 0.75], 2).tolist(), as_prior([1, 3], 2, weights=True).tolist()
    ([0.25, 0.75], [0.25, 0.75])
    """
    if prior is None:
        return np.full(count, 1.0 / count)
    p = plain_numbers(prior, name)
    if p.shape not in ((count,), shape):
        sizes = f"{count}" if shape is None else f"{count} or {' x '.join(map(str, shape))}"
        raise InvalidInput(f"{name} must have one entry per {of}, {sizes}; got shape {p.shape}")
    if not np.isfinite(p).all() or (p < 0).any():
        raise InvalidInput(f"{name} must have finite entries >= 0")
    with np.errstate(over="ignore"):
        total = float(p.sum())
    if total == 0.0:
        raise InvalidInput(f"{name} must have an entry > 0; all are zero")
    if not weights and abs(total - 1.0) > TOLERANCE:
        raise InvalidInput(
            f"{name} must sum to 1; it sums to {total:.9g}: divide counts by their sum first"
        )
    if math.isinf(total):
        raise InvalidInput(f"{name} must have a finite sum: divide its entries by the largest")
    return np.asarray(p.ravel() / total)
