"""Metrics on coordinates: norms on a plane in metres, distances of degrees on the globe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.privacy.metric import Metric, Scaled
from whereish.space.points import Space
from whereish.space.sphere import DISTANCE_ERROR, Sphere, great_circle_m

__all__ = ["Chebyshev", "Euclidean", "Geodesic", "GreatCircle", "Manhattan", "coordinate_error"]


class _OfCoordinates(Metric):
    """A metric on coordinates, comparable with others by a known inequality."""

    def _ratio_to(self, other: Metric) -> float:
        return _KNOWN_RATIOS.get((type(self), type(other)), math.inf)


class _Norm(_OfCoordinates):
    """A norm of the difference of coordinates in metres."""

    order: ClassVar[float]

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        apart = np.asarray(x, float) - np.asarray(y, float)
        if self.order == 2 and apart.shape[-1] == 2:
            return np.asarray(np.hypot(apart[..., 0], apart[..., 1]))
        return np.asarray(np.linalg.norm(apart, self.order, axis=-1))

    def fits(self, space: Space) -> bool:
        """Not on the globe, where places next to each other may be 360 degrees apart."""
        return not isinstance(space, Sphere)

    def stretched(self, scale: float) -> Metric:
        """The metric over `scale`."""
        return self if scale == 1.0 else Scaled((1.0 - 2.0**-50) / scale, self)


@dataclass(frozen=True)
class Euclidean(_Norm):
    """Straight-line distance of coordinates in metres.

    >>> import whereish as wh
    >>> float(wh.Euclidean()([0, 0], [3, 4]))
    5.0
    >>> (0.01 * wh.Euclidean()).description
    "0.01 * |x - x'|"
    >>> wh.Euclidean() <= wh.Manhattan()
    True
    """

    kind = "euclidean"
    description, order = "|x - x'|", 2


@dataclass(frozen=True)
class Manhattan(_Norm):
    """d_1: the sum of coordinate distances.

    >>> import whereish as wh
    >>> wh.Manhattan()([[0, 0], [1, 1]], [3, 4]).tolist()
    [7.0, 5.0]
    """

    kind = "manhattan"
    description, order = "|x - x'|_1", 1


@dataclass(frozen=True)
class Chebyshev(_Norm):
    """d_inf: the largest coordinate distance.

    >>> import whereish as wh
    >>> float(wh.Chebyshev()([0, 0], [3, 4]))
    4.0
    >>> wh.Chebyshev() <= wh.Euclidean()
    True
    """

    kind = "chebyshev"
    description, order = "|x - x'|_inf", math.inf


class _OnGlobe(_OfCoordinates):
    """A distance of degrees."""

    def fits(self, space: Space) -> bool:
        """On the globe alone: metres of a plane, read as degrees, are thousands of kilometres."""
        return isinstance(space, Sphere)


@dataclass(frozen=True)
class GreatCircle(_OnGlobe):
    """Great-circle metres of degrees on the sphere of radius b²/a.

    >>> import whereish as wh
    >>> round(float(wh.GreatCircle()([0, 0], [0, 1])))
    110574
    """

    kind = "great-circle"
    description = "great-circle metres (never more than true metres)"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return great_circle_m(np.asarray(x, float), np.asarray(y, float))

    @property
    def relative_error(self) -> float:
        """As :func:`~whereish.space.sphere.great_circle_m` proves it."""
        return DISTANCE_ERROR


@dataclass(frozen=True)
class Geodesic(_OnGlobe):
    """True metres of degrees: the WGS84 geodesic distance.

    >>> import whereish as wh
    >>> round(float(wh.Geodesic()([2.35, 48.85], [2.35, 48.86])))
    1112
    >>> wh.GreatCircle() <= wh.Geodesic()
    True
    """

    kind = "geodesic"
    description = "true metres (WGS84 geodesic)"

    @property
    def absolute_error(self) -> float:
        """GeographicLib claims 15 nanometres."""
        return 5e-8

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        from pyproj import Geod

        x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        flat_x, flat_y = x.reshape(-1, 2), y.reshape(-1, 2)
        *_, distance = Geod(ellps="WGS84").inv(*flat_x.T.copy(), *flat_y.T.copy())
        return np.asarray(distance).reshape(x.shape[:-1])


def coordinate_error(metric: Metric, distances: FloatArray) -> FloatArray:
    """Relative error to allow for distances that `metric` computed from coordinates."""
    with np.errstate(divide="ignore", invalid="ignore"):
        absolute = np.where(distances > 0, metric.absolute_error / distances, 0.0)
    return np.asarray(metric.relative_error + absolute)


# Dimension-free norm inequalities, and the sphere's argument from whereish.space.sphere.
_KNOWN_RATIOS: dict[tuple[type[Metric], type[Metric]], float] = {
    (Chebyshev, Euclidean): 1.0,
    (Chebyshev, Manhattan): 1.0,
    (Euclidean, Manhattan): 1.0,
    (GreatCircle, Geodesic): 1.0,
}
