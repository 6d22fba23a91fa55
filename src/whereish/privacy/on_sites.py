"""Metrics on a list of sites: parts by the sites' indices, parts by their coordinates.

A matrix metric (:class:`~whereish.privacy.finite.Finite`) speaks of the indices 0..n-1 of the
sites, all others of their coordinates.  Both kinds may stand in one expression, since guarantees
about the same sites add up.  So distances on sites are computed part by part, each from what it
speaks of, and a metric is restricted to some sites part by part: the matrices lose the other rows
and columns, metrics on coordinates stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.finite import Finite
from whereish.privacy.metric import Metric, Scaled, Sum
from whereish.privacy.norms import coordinate_error
from whereish.privacy.tuples import TupleMax, TupleSum
from whereish.space.points import Space

__all__ = ["check_fits", "indexed", "restricted_metric", "site_distances"]


def indexed(metric: Metric) -> bool:
    """Whether every part of `metric` is a matrix on indices, so that no coordinate is needed."""
    if isinstance(metric, Sum):
        return all(indexed(part) for part in metric.parts)
    if isinstance(metric, Scaled | TupleSum | TupleMax):
        return indexed(metric.base)
    return isinstance(metric, Finite)


def site_distances(
    metric: Metric, count: int, coordinates: FloatArray | None = None
) -> tuple[FloatArray, float | FloatArray]:
    """Distances of all pairs of `count` sites, and the relative error to allow for them."""
    distances = _distances(metric, count, coordinates)
    base = metric.base if isinstance(metric, Scaled) else metric
    if isinstance(base, Finite):
        return distances, 2.0**-52
    return distances, coordinate_error(metric, distances)


def _distances(metric: Metric, count: int, coordinates: FloatArray | None) -> FloatArray:
    if isinstance(metric, Scaled):
        return metric.factor * _distances(metric.base, count, coordinates)
    if isinstance(metric, Sum):
        return np.asarray(sum(_distances(part, count, coordinates) for part in metric.parts))
    if isinstance(metric, TupleSum | TupleMax):
        raise InvalidInput(
            f"the metric must be one on sites, which are no tuples; got {metric.description}"
        )
    if isinstance(metric, Finite):
        if len(metric.distances) != count:
            raise InvalidInput(
                f"the metric must be a matrix of the {count} sites; got one of"
                f" {len(metric.distances)}"
            )
        return metric.distances
    _refuse_hidden(metric)
    if coordinates is None:
        raise InvalidInput("a metric on coordinates must come with `sites`, the secrets' places")
    return metric.matrix(coordinates)


def check_fits(metric: Metric, space: Space) -> None:
    """Refuse a metric that would take the coordinates of `space` for something else."""
    if not metric.fits(space):
        raise InvalidInput(
            f"the metric must be one on {space.description}; got {metric.description}: distances on"
            " the globe are GreatCircle() or Geodesic() of degrees, those on a plane or a line"
            " norms of metres"
        )


def restricted_metric(metric: Metric, rows: NDArray[np.intp]) -> Metric:
    """The metric on the sites `rows`, which become the sites 0, 1, ... in this order."""
    if isinstance(metric, Finite):
        return Finite(metric.distances[np.ix_(rows, rows)])
    if isinstance(metric, Scaled):
        return Scaled(metric.factor, restricted_metric(metric.base, rows))
    if isinstance(metric, Sum):
        # Not gathered: parts that differed elsewhere may be equal here, and adding rounds.
        return Sum(tuple(restricted_metric(part, rows) for part in metric.parts))
    if isinstance(metric, TupleSum | TupleMax):
        return type(metric)(restricted_metric(metric.base, rows), metric.size)
    _refuse_hidden(metric)
    return metric


def _refuse_hidden(metric: Metric) -> None:
    """A composition unknown here must not hide a matrix: its indices would be taken wrongly."""
    if _holds_matrix(metric):
        raise InvalidInput(
            f"{type(metric).__name__} has a matrix metric inside, and how it speaks of sites is"
            " not known: write it as multiples and sums of metrics"
        )


def _holds_matrix(value: Any) -> bool:
    if isinstance(value, Finite):
        return True
    if isinstance(value, tuple | list):
        return any(_holds_matrix(part) for part in value)
    return isinstance(value, Metric) and any(map(_holds_matrix, vars(value).values()))
