"""Audit by density: the worst log-likelihood ratio over many secrets and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasDensity, Mechanism
from whereish.privacy.metric import Metric
from whereish.randomness import Randomness
from whereish.results import JsonResult
from whereish.solvers.channels.ratios import pairwise_differences
from whereish.space.points import Points, as_points

__all__ = ["DensityAudit", "density"]


class MechanismWithDensity(Mechanism, HasDensity, Protocol):
    """A mechanism that can say how likely a report is."""


@dataclass(frozen=True)
class DensityAudit(JsonResult):
    """The largest (ln f(z|x) - ln f(z|x')) / d(x, x') found, and where.

    A value above 1 refutes the metric; one of at most 1 proves nothing beyond the
    secrets and reports that were tried.
    """

    _NOT_TOLD = ("secrets", "report")

    factor: float
    secrets: tuple[FloatArray, FloatArray] = field(repr=False)
    report: FloatArray = field(repr=False)


def density(
    mechanism: MechanismWithDensity,
    secrets: Points | ArrayLike,
    *,
    metric: Metric | None = None,
    rng: Randomness | None = None,
) -> DensityAudit:
    """Compare all pairs of `secrets` at reports drawn from each and at the secrets themselves.

    `metric` defaults to the one that the mechanism promises.
    """
    promised = mechanism.guarantee.metric if metric is None else metric
    places = as_points(secrets, mechanism.space)
    if len(places) < 2:
        raise InvalidInput(f"a density audit needs at least two secrets; got {len(places)}")
    x = places.coordinates
    z = np.vstack([x, mechanism.report(places, rng=rng).coordinates])
    logs = np.stack([mechanism.log_density(z, np.broadcast_to(row, z.shape)) for row in x])
    distances = promised.matrix(x)
    differences, columns = pairwise_differences(np.ascontiguousarray(logs), distances)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(differences > 0, differences / distances, 0.0)
    worst = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    return DensityAudit(float(ratios[worst]), (x[worst[0]], x[worst[1]]), z[columns[worst]])
