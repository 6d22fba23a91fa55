"""Exact audit of a finite mechanism: the least factor for which it keeps a metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasChannel
from whereish.privacy.enclosure import Enclosed
from whereish.privacy.metric import Metric
from whereish.privacy.on_sites import site_distances
from whereish.results import JsonResult
from whereish.solvers.channels.ratios import largest_ratio
from whereish.space.points import Points
from whereish.space.sites import Sites

__all__ = ["ExactAudit", "exact"]


@dataclass(frozen=True)
class ExactAudit(Enclosed, JsonResult):
    """The matrix keeps `factor` * d, and keeps nothing below `factor_lower` * d.

    `worst` = (x, x', z): the pair of secrets and the report that attain it.
    """

    factor: float
    factor_lower: float
    worst: tuple[int, int, int] | None

    @property
    def enclosure(self) -> tuple[float, float]:
        """`factor_lower` and `factor`."""
        return self.factor_lower, self.factor

    def __str__(self) -> str:
        verdict = "kept" if self.holds else "broken" if self.refuted else "kept up to rounding"
        where = f", worst at secrets {self.worst[:2]}, report {self.worst[2]}" if self.worst else ""
        return f"factor {self.factor:.9g} ({verdict}{where})"


def exact(
    channel: HasChannel | ArrayLike,
    metric: Metric | ArrayLike,
    *,
    sites: Sites | Points | ArrayLike | None = None,
) -> ExactAudit:
    """Audit a row-stochastic matrix against a metric.

    Parameters
    ----------
    channel
        A finite mechanism, or its matrix: integer weights with a common row sum, or
        probabilities.
    metric
        Distances of the secrets as a matrix, or a metric on the coordinates of `sites`.
    """
    weights = channel.matrix if isinstance(channel, HasChannel) else np.asarray(channel)
    k: NDArray[Any] = (
        weights.astype(np.int64)
        if np.issubdtype(weights.dtype, np.integer)
        else weights.astype(float)
    )
    check_rows(k)
    distances, error = distances_of(metric, len(k), sites)
    found = largest_ratio(k, distances, distance_error=error, row_error=_row_error(k))
    return ExactAudit(found.upper, found.lower, found.triple)


def distances_of(
    metric: Metric | ArrayLike, count: int, sites: Sites | Points | ArrayLike | None
) -> tuple[FloatArray, float | FloatArray]:
    """Distances of all pairs, and the relative error to allow for them."""
    if not isinstance(metric, Metric):
        return np.asarray(metric, dtype=np.float64), 0.0
    if sites is None:
        return site_distances(metric, count)
    places = sites.coordinates if isinstance(sites, Sites | Points) else np.asarray(sites, float)
    return site_distances(metric, count, places)


def _row_error(k: NDArray[Any]) -> float:
    """How far the logarithms of two rows' sums are apart; integers sum exactly."""
    if np.issubdtype(k.dtype, np.integer):
        return 0.0
    sums = [math.fsum(row) for row in k]
    return (math.log(max(sums)) - math.log(min(sums))) * (1 + 1e-9)


def check_rows(k: NDArray[Any]) -> None:
    """Rows must share one sum: exactly for integers, to rounding for probabilities."""
    if k.ndim != 2 or k.size == 0:
        raise InvalidInput(f"a channel must be a matrix with rows and columns; got {k.shape}")
    if np.issubdtype(k.dtype, np.integer):
        totals = {sum(int(entry) for entry in row) for row in k}
        if len(totals) != 1:
            raise InvalidInput("all rows of integer weights must have the same total")
    elif not np.allclose(k.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        raise InvalidInput("every row of a channel must sum to 1")
