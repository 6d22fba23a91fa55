"""What people use, written from published descriptions: functions from places to reports.

Places are metres of a plane around somebody's home; levels are per metre.  A sampler is made for
one numpy generator and takes an (n, 2) array.  None of it is for use: that is what the study
shows.

- *Textbook planar Laplace*: radius by Lambert W, angle uniform, in doubles (Andrés et al., CCS
  2013, section 4.1).
- *Location Guard* (browser extension): the same, with Lambert W rounded to six decimals, as its
  published source has it, so that radii are multiples of 1e-6 / eps.
- *Per-coordinate Laplace*: Laplace noise of scale 1/eps on each coordinate.
- *Resampling into a region*: planar Laplace, drawn again until it falls into the region.
- *Gaussian offsets*: a normal offset on each coordinate.
- *Decimals truncated*: degrees cut to three decimals, 111 m north and 85 m east at 40 degrees.
- *Android's coarse location* (AOSP's LocationFudger): an offset with standard deviation of a
  quarter of 2 km on each coordinate, kept for a while, then snapping to a grid of 2 km.
- *Keyed offset*: one offset for all places of a device, uniform in a disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray

__all__ = [
    "COARSE_M",
    "EPSILON",
    "GUARD_STEP_M",
    "OFFSET_M",
    "REGION_M",
    "TRUNCATED_M",
    "Sampler",
    "coarse_location",
    "gaussian",
    "keyed_offset",
    "location_guard",
    "per_coordinate",
    "qif_grids",
    "qif_laplace",
    "resampled",
    "textbook",
    "truncated",
]

Sampler = Callable[[FloatArray], FloatArray]

EPSILON = math.log(4) / 200
"""Per metre: l = ln 4 within 200 m, Location Guard's medium level."""
GUARD_STEP_M = 1e-6 / EPSILON
REGION_M = 400.0
"""Half the side of the region that is resampled into."""
TRUNCATED_M = (85.3, 111.0)
"""A thousandth of a degree at 40 degrees of latitude: east and north."""
COARSE_M = 2000.0
OFFSET_M = 500.0


def _polar(radius: FloatArray, random: np.random.Generator) -> FloatArray:
    angle = 2 * math.pi * random.random(len(radius))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _lambert(count: int, random: np.random.Generator) -> FloatArray:
    """W_{-1}((p - 1)/e) of uniform p: the radius is -(W + 1)/eps."""
    from scipy.special import lambertw

    return np.asarray(lambertw((random.random(count) - 1) / math.e, -1).real)


def textbook(random: np.random.Generator) -> Sampler:
    """Planar Laplace in doubles."""
    return lambda places: places + _polar(-(_lambert(len(places), random) + 1) / EPSILON, random)


def location_guard(random: np.random.Generator) -> Sampler:
    """The same, with Lambert W rounded to six decimals."""

    def sample(places: FloatArray) -> FloatArray:
        rounded = np.round(1e6 * _lambert(len(places), random)) / 1e6
        return np.asarray(places + _polar(-(rounded + 1) / EPSILON, random))

    return sample


def per_coordinate(random: np.random.Generator) -> Sampler:
    """Laplace noise on each coordinate."""
    return lambda places: places + random.laplace(scale=1 / EPSILON, size=places.shape)


def resampled(random: np.random.Generator) -> Sampler:
    """Planar Laplace until it falls into the square of +-REGION_M."""
    draw = textbook(random)

    def sample(places: FloatArray) -> FloatArray:
        reports = draw(places)
        while (outside := (np.abs(reports) > REGION_M).any(axis=1)).any():
            reports[outside] = draw(places[outside])
        return reports

    return sample


def gaussian(random: np.random.Generator) -> Sampler:
    """Normal offsets of 200 m."""
    return lambda places: places + random.normal(scale=200.0, size=places.shape)


def truncated(random: np.random.Generator) -> Sampler:
    """Three decimals of a degree; nothing is random."""
    step = np.asarray(TRUNCATED_M)
    return lambda places: np.asarray(np.trunc((places + 1e6) / step) * step - 1e6)


def coarse_location(random: np.random.Generator) -> Sampler:
    """A fresh offset for each report, then a grid of 2 km."""

    def sample(places: FloatArray) -> FloatArray:
        moved = places + random.normal(scale=COARSE_M / 4, size=places.shape)
        return np.asarray(np.round(moved / COARSE_M) * COARSE_M)

    return sample


def keyed_offset(random: np.random.Generator) -> Sampler:
    """The offset of a device, new for each row: what is random is the key."""

    def sample(places: FloatArray) -> FloatArray:
        return np.asarray(places + _polar(OFFSET_M * np.sqrt(random.random(len(places))), random))

    return sample


def qif_laplace(random: np.random.Generator) -> Sampler:
    """qif's planar_laplace_sample; its generator is its own."""
    import qif

    def sample(places: FloatArray) -> FloatArray:
        draw = qif.mechanism.geo_ind.planar_laplace_sample
        noise = [(point.x, point.y) for point in (draw(EPSILON) for _ in range(len(places)))]
        return np.asarray(places + np.asarray(noise))

    return sample


def qif_grids(cells: int, step_m: float) -> dict[str, FloatArray]:
    """qif's two channels on a square grid; rows divided by their sums, which qif integrates."""
    import qif

    made = qif.mechanism.geo_ind
    found = {
        "qif-laplace-grid": np.asarray(made.planar_laplace_grid(cells, cells, step_m, EPSILON)),
        "qif-geometric-grid": np.asarray(made.planar_geometric_grid(cells, cells, step_m, EPSILON)),
    }
    return {name: matrix / matrix.sum(axis=1, keepdims=True) for name, matrix in found.items()}
