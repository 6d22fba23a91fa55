"""The consumer of a finite channel: a prior, a gain, and the best remap for both.

A consumer who believes in `prior` and gains g(w, x) from taking w for the secret x
remaps each report z to the w that maximises sum_x prior_x H_xz g(w, x).  The utility is

    U(H, prior, g) = sum_z max_w sum_x prior_x H_xz g(w, x)

(Ghosh, Roughgarden, Sundararajan, STOC 2009).  Remapping sees no secret, so it costs no
privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.prior import as_prior

__all__ = ["consumer_remap", "consumer_utility"]


def consumer_utility(matrix: ArrayLike, prior: ArrayLike, gain: ArrayLike) -> float:
    """U(H, prior, gain) under the consumer's optimal remap; `gain` has a row per guess w."""
    return float(_gains(matrix, prior, gain).max(axis=0).sum())


def consumer_remap(matrix: ArrayLike, prior: ArrayLike, gain: ArrayLike) -> NDArray[np.intp]:
    """The guess w that each report z is taken for."""
    return np.asarray(_gains(matrix, prior, gain).argmax(axis=0))


def _gains(matrix: ArrayLike, prior: ArrayLike, gain: ArrayLike) -> FloatArray:
    """Row w, column z: sum_x prior_x H_xz g(w, x)."""
    h, g = (np.asarray(array, dtype=np.float64) for array in (matrix, gain))
    if h.ndim != 2 or g.ndim != 2 or g.shape[1] != len(h):
        raise InvalidInput(
            "the gain must have one column per row of the channel; got shapes"
            f" {g.shape} and {h.shape}"
        )
    p = as_prior(prior, len(h), of="row of the channel")
    if not np.isfinite(g).all():
        raise InvalidInput("gains must be finite numbers")
    return np.asarray(g @ (p[:, None] * h))
