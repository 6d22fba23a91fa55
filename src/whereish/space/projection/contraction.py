"""The smallest factor by which a plane stretches around its region, with proof where there is one.

It turns distances on the plane into true ones.  Let B be a box that holds every place within
rho true metres of the secret x, and let no direction at any place of B be stretched by less than
k > 0.  Then every point z of the plane within k rho of the image f(x) is the image of a place
within |z - f(x)| / k true metres of x:

f is locally invertible in B, so the straight segment from f(x) to z can be followed back from x.
After a length t on the plane the path behind has at most the length t / k < rho, so it is
inside B, where it goes on; at t = |z - f(x)| it is at the place of z.  A projection takes no
value twice between its edges, so that is the place PROJ returns, up to the error of going back
through a datum operation (:meth:`whereish.space.projection.datum.Datum.return_m`).

Along a path of length rho latitudes change by at most rho / M, M >= b² / a, and longitudes by
rho / (N cos phi) at the highest latitude that is reached.

1/k is bounded on cells as the largest factor is (:mod:`whereish.space.projection.stretch`).
Where reports may cross an edge of the projection or a pole, nothing is known, and k is 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from whereish.space.box import Box
from whereish.space.projection.ellipsoid import WGS84
from whereish.space.projection.operation import Operation, operation_for
from whereish.space.projection.stretch import (
    MARGIN,
    WIDER_DEGREES,
    Chain,
    chain_of,
    largest_bound,
    stretch_of,
    stretches_at,
)

__all__ = ["Contraction", "contraction_at", "contraction_of"]

_WIDEST_DEGREES = 180.0
_INVERSE_M = 5e-3
"""PROJ finds latitudes by iteration to 1e-10 radians, authalic ones by a series to 2 mm."""


class Contraction(NamedTuple):
    """How a plane shortens distances around a region."""

    factor: float
    """Metres of the plane for each true metre, at least; 0 where nothing is known."""
    reach_m: float
    """How far from the region that holds, in true metres."""
    return_m: float
    """How far from its place PROJ may return from the plane."""


@lru_cache(maxsize=256)
def contraction_of(crs: str, region: Box, shift: str | None, reach: float) -> Contraction:
    """The smallest stretching within `reach` true metres of a plane's region."""
    return contraction_at(crs, region, shift, region, reach)


def contraction_at(
    crs: str, region: Box, shift: str | None, part: Box, reach: float
) -> Contraction:
    """The same for a part of the region; nothing of it is kept.

    Proven if the largest factor is; else estimated from samples.
    """
    operation = operation_for(crs, region, shift)
    unknown = Contraction(0.0, reach, math.inf)
    box = _surroundings(part, reach)
    if box is None:
        return unknown
    if not stretch_of(crs, region, shift).proven:
        return Contraction(_sampled(operation, box), reach, _INVERSE_M)
    chain = chain_of(operation, box)
    if chain is None or not _returns(operation, chain, box):
        return unknown
    factor = 1 / (largest_bound(chain.inverse_bounds, box) * (1 + MARGIN))
    return Contraction(factor, reach, _return_m(chain, box))


def _surroundings(region: Box, reach: float) -> Box | None:
    """A box that holds every place within `reach` true metres of a region; None near a pole."""
    up = math.degrees(reach * WGS84.a / WGS84.b**2) + WIDER_DEGREES
    south, north = region.y_low - up, region.y_high + up
    highest = max(-south, north)
    if highest >= 90:
        return None
    radius = WGS84.a * float(WGS84.parallel(np.array(math.radians(highest))))
    across = math.degrees(reach / radius) + WIDER_DEGREES
    if region.width + 2 * across > _WIDEST_DEGREES:
        return None
    return Box(region.x_low - across, south, region.x_high + across, north)


def _return_m(chain: Chain, box: Box) -> float:
    return chain.datum.return_m(max(-box.y_low, box.y_high)) + _INVERSE_M


def _returns(operation: Operation, chain: Chain, box: Box) -> bool:
    """Whether PROJ returns from the plane to where it came from, at some places of the box."""
    lon, lat = (
        axis.ravel()
        for axis in np.meshgrid(
            np.linspace(box.x_low, box.x_high, 9), np.linspace(box.y_low, box.y_high, 9)
        )
    )
    transform = operation.transformer().transform
    back_lon, back_lat = transform(*transform(lon, lat), direction="INVERSE")
    radians = np.radians([np.remainder(back_lon - lon + 180, 360) - 180, back_lat - lat])
    north = np.radians(lat)
    metres = WGS84.a * np.hypot(radians[0] * WGS84.parallel(north), radians[1])
    return bool((metres <= _return_m(chain, box)).all())


def _sampled(operation: Operation, box: Box) -> float:
    """An estimate: the least of two grids, less four times what the finer one changed."""

    def least(count: int) -> float:
        lon, lat = np.meshgrid(
            np.linspace(box.x_low, box.x_high, count), np.linspace(box.y_low, box.y_high, count)
        )
        return float(stretches_at(operation, lon.ravel(), lat.ravel())[1].min())

    fine = least(98)
    factor = fine - 4 * abs(fine - least(49)) - 1e-7
    return factor if factor > 0 else 0.0
