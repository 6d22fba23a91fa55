"""One-line use: blur longitudes and latitudes.

`blur` has the order in which maps show places, by keyword; `perturb` has longitude first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.wanted_level import wanted_level
from whereish.randomness import Randomness
from whereish.space.points import checked_coordinates, one_place, plain_numbers
from whereish.space.sphere import within_180
from whereish.units import Epsilon, Length

__all__ = ["ReproducibleArray", "blur", "perturb"]


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
    epsilon: Epsilon | str | None = None,
    mean_error: Length | str | None = None,
    within: Length | str | None = None,
    confidence: float | None = None,
    wrap: bool = False,
    decimals: int = 5,
    rng: Randomness | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Report each place roughly, anywhere on Earth: degrees in, degrees out, longitude first.

    Every report alone keeps ``epsilon`` times the true distance in metres
    (:class:`~whereish.GlobeLaplace`); n reports of one place keep n times that.  Reports
    of a seeded `rng`, which protect nobody, come as :class:`ReproducibleArray`.

    Parameters
    ----------
    epsilon, mean_error, within, confidence
        How much noise: one of a level ("ln(4)/200 m"), the distance of reports on average
        ("300 m"), and a radius that holds them with probability `confidence` (0.95).
    wrap
        Take longitudes from 180 to 360 for those less 360 (and -360 to -180 likewise); they
        are refused otherwise.

    Raises
    ------
    InvalidInput
        If coordinates are no degrees, or the level is not one.

    Examples
    --------
    >>> lon, lat = perturb([2.33316], [48.85412], epsilon="ln(4)/200 m")
    >>> len(lon)
    1
    """
    asked = (epsilon, mean_error, within, confidence)
    if (one := _one_report(lon, lat, asked, decimals, rng)) is not None:
        return one
    east, north = plain_numbers(lon, "longitudes"), plain_numbers(lat, "latitudes")
    # Of a scalar an array of plain numbers has one entry.
    shape = np.shape(lon)
    if shape != np.shape(lat):
        raise InvalidInput(f"lon and lat must have one shape; got {shape} and {np.shape(lat)}")
    pairs = [east.ravel(), north.ravel()]
    mechanism = GlobeLaplace(_level(asked), decimals=decimals)
    places = checked_coordinates(np.column_stack(pairs), mechanism.space)
    reports = mechanism.report(within_180(places, wrap=wrap, how="wrap=True"), rng=rng)
    x, y = (axis.reshape(shape) for axis in reports.coordinates.T)
    if reports.reproducible:
        return x.view(ReproducibleArray), y.view(ReproducibleArray)
    return x, y


class Blurring(TypedDict, total=False):
    """The keywords of :func:`blur` besides the place."""

    mean_error: Length | str | None
    within: Length | str | None
    confidence: float | None
    epsilon: Epsilon | str | None
    wrap: bool
    decimals: int
    rng: Randomness | None


@overload
def blur(*, lat: float, lon: float, **how: Unpack[Blurring]) -> tuple[float, float]: ...


@overload
def blur(
    *, lat: ArrayLike, lon: ArrayLike, **how: Unpack[Blurring]
) -> tuple[FloatArray, FloatArray]: ...


def blur(
    *,
    lat: Any,
    lon: Any,
    mean_error: Length | str | None = None,
    within: Length | str | None = None,
    confidence: float | None = None,
    epsilon: Epsilon | str | None = None,
    wrap: bool = False,
    decimals: int = 5,
    rng: Randomness | None = None,
) -> Any:
    """Blur a place by about so many metres: latitude and longitude in, the same out.

    Numbers come back as plain floats, arrays (and lists, columns) as arrays.  The noise is
    that of :func:`perturb`: Laplace noise on the globe, whose level is the one that the
    distance stands for.

    Parameters
    ----------
    lat, lon
        Degrees.
    mean_error
        How far away reports are on average, such as "300 m".
    within, confidence
        Or a radius that holds the report with probability `confidence` (0.95).
    epsilon
        Or the privacy level itself, such as "ln(4)/200 m".
    wrap
        Take longitudes beyond 180 for those less 360; they are refused otherwise.

    Raises
    ------
    InvalidInput
        If coordinates are no degrees, or not exactly one of the three ways is given.

    Examples
    --------
    >>> import json
    >>> import whereish as wh
    >>> lat, lon = wh.blur(lat=48.85, lon=2.33, mean_error="300 m")
    >>> type(lat), len(json.loads(json.dumps([lat, lon])))
    (<class 'float'>, 2)
    >>> lats, lons = wh.blur(lat=[48.85, 48.86], lon=[2.33, 2.34], within="500 m", confidence=0.9)
    >>> lats.shape
    (2,)
    """
    if np.ndim(lat) == 0 and np.ndim(lon) == 0:
        lat, lon = _one_number(lat, "lat"), _one_number(lon, "lon")
    reported_lon, reported_lat = perturb(
        lon,
        lat,
        epsilon=epsilon,
        mean_error=mean_error,
        within=within,
        confidence=confidence,
        wrap=wrap,
        decimals=decimals,
        rng=rng,
    )
    if reported_lon.ndim == 0:
        return float(reported_lat), float(reported_lon)
    return reported_lat, reported_lon


def _one_number(value: Any, name: str) -> float:
    return float(plain_numbers(value, name).item())


_Asked = tuple[Epsilon | str | None, Length | str | None, Length | str | None, float | None]


def _one_report(
    lon: Any, lat: Any, asked: _Asked, decimals: int, rng: Randomness | None
) -> tuple[FloatArray, FloatArray] | None:
    """What :func:`perturb` gives for one place in plain numbers; None for all else."""
    if rng is not None or type(decimals) is not int:
        return None
    listed = type(lon) is list and type(lat) is list and len(lon) == len(lat) == 1
    place = one_place((lon[0], lat[0]) if listed else (lon, lat), (180.0, 90.0))
    if place is None:
        return None
    x, y = _mechanism(asked, decimals).report_one(place)
    return (np.array([x]), np.array([y])) if listed else (np.array(x), np.array(y))


def _level(asked: _Asked) -> Epsilon:
    epsilon, mean_error, within, confidence = asked
    return wanted_level(epsilon, mean_error=mean_error, within=within, confidence=confidence)


def _mechanism(asked: _Asked, decimals: int) -> GlobeLaplace:
    try:
        return _remembered(asked, decimals)
    except TypeError:  # what cannot be hashed is no level: let its own check word that
        return GlobeLaplace(_level(asked), decimals=decimals)


@lru_cache(maxsize=64)
def _remembered(asked: _Asked, decimals: int) -> GlobeLaplace:
    return GlobeLaplace(_level(asked), decimals=decimals)
