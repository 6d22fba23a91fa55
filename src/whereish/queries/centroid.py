"""The centroid of a set of n places: one report for all of them.

|mean(x) - mean(x')| <= (1/n) sum_i |x_i - x'_i| <= max_i |x_i - x'_i|, so the centroid is

- 1-sensitive for d_inf, uniformly (all places move together);
- 1/n-sensitive for d_1, the sum of distances, uniformly (likewise);
- D/n-sensitive for the number of places that differ in a declared region of diameter D.

What is sampled is what is proven: places are read on a public lattice of 2^-10 m, so that
their sum s is exact in doubles; planar Laplace noise is added to s, whose sensitivity is n
times the centroid's; and dividing the report by n is post-processing.

Every place is checked for itself, against bounds that are public: the plane's region, and
:func:`largest_coordinate`.  The sum is never checked: it lies outside the region as a rule, and a
refusal that depends on it would answer a query about the secret without noise.  So it is drawn
on the plane without a region, at the level that already has the plane's scale charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.noise.rounded import LARGEST_CELL
from whereish.mechanisms.traces.noisy_test import level_on
from whereish.privacy.metric import Metric, Scaled
from whereish.privacy.norms import Euclidean
from whereish.privacy.tuples import DifferentPlaces, TupleMax, TupleSum
from whereish.queries.sensitivity import Sensitivity
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
from whereish.units import Epsilon, Length

__all__ = ["LATTICE_M", "Centroid"]

LATTICE_M: Final = 2.0**-10
"""Places are read to about a millimetre."""


@dataclass(frozen=True)
class Centroid:
    """The mean of n places of a plane."""

    def __call__(self, places: Points | ArrayLike, *, plane: Plane | None = None) -> FloatArray:
        """The true centroid: secret, for the eyes of the data's keeper."""
        space = places.space if isinstance(places, Points) else plane or Plane.metres()
        cells = lattice_cells(checked_coordinates(places, space))
        return np.asarray(cells.sum(axis=0) * LATTICE_M / len(cells))

    def sensitivity(self, metric: Metric) -> Sensitivity:
        """The least Delta with respect to `metric`, in metres of the centroid."""
        if isinstance(metric, Scaled):
            return self.sensitivity(metric.base).times(1 / Fraction(metric.factor))
        if isinstance(metric, TupleMax) and metric.base == Euclidean():
            return Sensitivity(
                Fraction(1), True, "a mean moves by at most the largest move, attained by all"
            )
        if isinstance(metric, TupleSum) and metric.base == Euclidean():
            return Sensitivity(
                Fraction(1, metric.size), True, "a mean moves by at most the mean move"
            )
        if isinstance(metric, TupleSum) and isinstance(metric.base, DifferentPlaces):
            return Sensitivity(
                Fraction(metric.base.diameter + 4 * LATTICE_M) / metric.size,
                False,
                "one of n places, on the lattice, moves by at most the region's diameter and 4 mm",
            )
        raise InvalidInput(
            "the centroid's sensitivity is derived for TupleMax(Euclidean(), n),"
            " TupleSum(Euclidean(), n) and TupleSum(DifferentPlaces(region), n); got"
            f" {metric.description}"
        )

    def mechanism(
        self, metric: Metric, epsilon: Epsilon, *, plane: Plane, resolution: Length
    ) -> PlanarLaplace:
        """The noise on the sum of n places that keeps eps/k * metric, k the plane's scale.

        It lives on the plane without a region: a sum of places is no place.
        """
        size = size_of(metric)
        ceiling = Fraction(epsilon.per_m) / (size * self.sensitivity(metric).value)
        level = float(ceiling)
        level = level if level <= ceiling else math.nextafter(level, 0.0)
        charged = level_on(plane, Epsilon.per_metre(level))
        return PlanarLaplace(Epsilon.per_metre(charged), resolution=resolution * size)


def size_of(metric: Metric) -> int:
    """How many places the tuples have on which `metric` speaks."""
    base = metric.base if isinstance(metric, Scaled) else metric
    if not isinstance(base, TupleMax | TupleSum):
        raise InvalidInput(f"the metric must be one on tuples of places; got {metric.description}")
    return base.size


def largest_coordinate(size: int, resolution: Length | None = None) -> float:
    """How far from the origin, in metres, each of `size` places may be: a public bound.

    Any sum of so many is then exact in doubles, and (with a `resolution`) within the reach of
    the lattice of reports; whether it is can no more depend on the places.
    """
    reach = 2.0**53 * LATTICE_M / size
    return reach if resolution is None else min(reach, LARGEST_CELL * resolution.m / 2)


def lattice_cells(coordinates: FloatArray, resolution: Length | None = None) -> IntArray:
    """Places in units of the lattice, as integers."""
    if len(coordinates) == 0:
        raise InvalidInput("a set of places must have at least one; got none")
    most = largest_coordinate(len(coordinates), resolution)
    beyond = int((np.abs(coordinates).max(axis=1) >= most - LATTICE_M).sum())
    if beyond:
        raise InvalidInput(
            f"each coordinate of {len(coordinates)} places must be within {most:.3g} m;"
            f" {beyond} places are beyond: is the unit right?"
        )
    return np.rint(coordinates / LATTICE_M).astype(np.int64)
