"""One-line use: blur longitudes and latitudes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.mechanisms.globe_laplace import GlobeLaplace
from whereish.randomness import Randomness
from whereish.space.points import FloatArray
from whereish.units import Epsilon

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["perturb"]


def perturb(
    lon: ArrayLike,
    lat: ArrayLike,
    *,
    epsilon: Epsilon | str,
    decimals: int = 5,
    rng: Randomness | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Report each place roughly, anywhere on Earth: degrees in, degrees out.

    Every report alone keeps ``epsilon`` times the true distance in metres
    (:class:`~whereish.GlobeLaplace`); n reports of one place keep n times that.

    >>> lon, lat = perturb([2.33316], [48.85412], epsilon="ln(4)/200 m")
    >>> len(lon)
    1
    """
    try:
        x, y = np.asarray(lon, float), np.asarray(lat, float)
    except (TypeError, ValueError):
        raise InvalidInput("lon and lat must be numbers in degrees") from None
    if x.shape != y.shape:
        raise InvalidInput(f"lon and lat must have one shape; got {x.shape} and {y.shape}")
    mechanism = GlobeLaplace(epsilon, decimals=decimals)
    pairs: NDArray[np.float64] = np.column_stack([x.ravel(), y.ravel()])
    reports = mechanism.report(pairs, rng=rng).coordinates
    return reports[:, 0].reshape(x.shape), reports[:, 1].reshape(x.shape)
