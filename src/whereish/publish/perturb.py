"""One-line use: blur longitudes and latitudes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.randomness import Randomness
from whereish.space.points import one_place, plain_numbers
from whereish.units import Epsilon

__all__ = ["ReproducibleArray", "perturb"]


class ReproducibleArray(np.ndarray[Any, np.dtype[np.float64]]):
    """Reports whose noise came from a seed: marked as `Points.reproducible` marks points.

    The type stays with slices, arithmetic, copies and pickles, and is in the array's text
    form; `numpy.asarray` takes it off.
    """

    reproducible: ClassVar[bool] = True


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
    (:class:`~whereish.GlobeLaplace`); n reports of one place keep n times that.  Reports
    of a seeded `rng`, which protect nobody, come as :class:`ReproducibleArray`.

    Raises
    ------
    InvalidInput
        If coordinates are no degrees, or epsilon is not > 0 per length.

    Examples
    --------
    >>> lon, lat = perturb([2.33316], [48.85412], epsilon="ln(4)/200 m")
    >>> len(lon)
    1
    """
    if (one := _one_report(lon, lat, epsilon, decimals, rng)) is not None:
        return one
    shape = np.shape(lon)
    if shape != np.shape(lat):
        raise InvalidInput(f"lon and lat must have one shape; got {shape} and {np.shape(lat)}")
    pairs = [plain_numbers(lon, "longitudes").ravel(), plain_numbers(lat, "latitudes").ravel()]
    mechanism = GlobeLaplace(epsilon, decimals=decimals)
    reports = mechanism.report(np.column_stack(pairs), rng=rng)
    x, y = (axis.reshape(shape) for axis in reports.coordinates.T)
    if reports.reproducible:
        return x.view(ReproducibleArray), y.view(ReproducibleArray)
    return x, y


def _one_report(
    lon: Any, lat: Any, epsilon: Epsilon | str, decimals: int, rng: Randomness | None
) -> tuple[FloatArray, FloatArray] | None:
    """What :func:`perturb` gives for one place in plain numbers; None for all else."""
    if rng is not None or type(decimals) is not int or type(epsilon) not in (str, Epsilon):
        return None
    listed = type(lon) is list and type(lat) is list and len(lon) == len(lat) == 1
    place = one_place((lon[0], lat[0]) if listed else (lon, lat), (360.0, 90.0))
    if place is None:
        return None
    x, y = _mechanism(epsilon, decimals).report_one(place)
    return (np.array([x]), np.array([y])) if listed else (np.array(x), np.array(y))


@lru_cache(maxsize=64)
def _mechanism(epsilon: Epsilon | str, decimals: int) -> GlobeLaplace:
    return GlobeLaplace(epsilon, decimals=decimals)
