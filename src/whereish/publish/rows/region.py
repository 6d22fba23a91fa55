"""Reports in a declared region: those outside are moved to its closest place."""

from __future__ import annotations

import warnings

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import WhereishWarning
from whereish.space.box import Box
from whereish.space.sphere import Sphere

__all__ = ["clamped"]


def clamped(lon: FloatArray, lat: FloatArray, region: Box) -> tuple[FloatArray, FloatArray]:
    """Reports in the region as they are, others at its closest place."""
    reports = np.column_stack([lon, lat])
    outside = ~region.contains_degrees(reports)
    if len(outside) > 2 and outside.all():  # reports show that themselves: all on the border
        warnings.warn(
            "every report was outside the region, and was moved to its border: is the region"
            " (--region) in degrees, as west,south,east,north, around the places?",
            WhereishWarning,
            stacklevel=2,
        )
    moved = Sphere.clamp(reports[outside], region)
    if region.x_low >= -180.0 and region.x_high <= 180.0:
        moved = region.clamp(moved)  # the last bit of a longitude, which was wrapped
    reports[outside] = moved
    return np.ascontiguousarray(reports[:, 0]), np.ascontiguousarray(reports[:, 1])
