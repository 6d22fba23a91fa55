"""Optimal channels: the least expected loss that a metric allows.

OptQL of Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014): minimise
sum_xz prior_x K_xz loss(x, z) over channels that keep eps * d on the sites.  The
solvers return a channel and a bound that no private channel can beat; integer
rounding and the check of all triples follow, and a channel that fails is never
returned.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import (
    Loss,
    PlacesLike,
    SitesMetric,
    kept_on,
    loss_matrix,
)
from whereish.mechanisms.channels.laplace import nearest_site_masses
from whereish.privacy.metric import Metric, Scaled
from whereish.solvers.optimal.programme import LpResult, ProgressCallback, relative_gap
from whereish.solvers.optimal.solve import solve_optimal
from whereish.solvers.optimal.spanner import greedy_spanner, shortest_path_closure
from whereish.space.plane import Plane
from whereish.space.prior import as_prior
from whereish.space.sites import Sites
from whereish.units import Epsilon

__all__ = ["OptimalChannel", "optimal_channel"]

_COINCIDE = 1e-9
"""Sites closer than this in nats share one row, which keeps more than is asked."""
_TAKEN_BY_ROUNDING = 1e-3
"""Of the gap: what the integer weights may be above it without another solve."""
_MOST_TAKEN = 0.25
"""Likewise: more than that, and another solve is not worth it."""
_WORTH_LAPLACE = 100
"""Sites from which on planar Laplace is computed first, to have a good channel at once."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OptimalChannel(Channel):
    """A channel with its expected loss and a bound on everybody's.

    Attributes
    ----------
    loss, lower_bound : float
        Expected loss of the integer weights, and the dual bound of the programme solved:
        with `dilation` 1 no private channel loses less.
    status : str
        "optimal" where the gap asked for was reached; "time limit" or "stalled" otherwise.
    dilation : float
        1 for the exact programme, else the factor of the spanner approximation.

    Examples
    --------
    >>> import whereish as wh
    >>> channel = wh.optimal_channel([[0, 0], [100, 0]], [0.5, 0.5], "ln(3)/100 m")
    >>> channel.status, round(channel.loss, 2), round(channel.lower_bound, 2)
    ('optimal', 25.0, 25.0)
    """

    loss: float
    lower_bound: float
    status: str
    dilation: float = 1.0

    @property
    def gap(self) -> float:
        """(loss - lower_bound) / loss."""
        return relative_gap(self.loss, self.lower_bound)


def optimal_channel(
    sites: PlacesLike,
    prior: ArrayLike | None,
    epsilon: Epsilon | str | None,
    *,
    loss: Loss = "euclidean",
    metric: Metric | ArrayLike | None = None,
    dilation: float = 1.0,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> OptimalChannel:
    """The channel of least expected loss that keeps eps * d on `sites`.

    Contract: keeps ``eps * d`` between the sites, certified on the integer weights.

    Parameters
    ----------
    sites
        Secrets, and the places that may be reported: sites, points, a raster or an (n, 2)
        array in metres.
    prior
        Probability of each site; None for uniform.
    epsilon
        Privacy level, such as "1.07/km"; None if `metric` is in nats already.
    loss
        'euclidean', 'squared', a function of coordinates, or an (n, n) matrix.
    metric
        What epsilon scales: a metric on coordinates or a matrix; metres by default.
    dilation
        Above 1, only the edges of a greedy spanner are constrained, at
        (eps / dilation) * d_G: the published approximation, never better than exact.
    gap, time_limit
        Stop at this certified relative gap, or after so many seconds with the best so far.
    progress
        Called with the bounds as they improve.

    Raises
    ------
    InvalidInput
        If epsilon, the metric, the prior and the sites do not fit each other.
    SolverError
        If the solver found no channel.

    Examples
    --------
    >>> import whereish as wh
    >>> channel = wh.optimal_channel([[0, 0], [100, 0]], [0.5, 0.5], "ln(3)/100 m")
    >>> channel.matrix.round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if not gap > 0:
        raise InvalidInput(f"gap must be a number > 0; got {gap}")
    if not 1 <= dilation < math.inf:
        raise InvalidInput(f"dilation must be a finite number >= 1; got {dilation}")
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInput(f"time_limit must be a number of seconds >= 0; got {time_limit}")
    dilation = float(dilation)
    places, kept = kept_on(sites, epsilon, metric)
    p = as_prior(prior, len(places))
    losses = loss_matrix(loss, places, places)
    near, closed = _with_coinciding(kept.distances)
    kept = replace(kept, distances=near)
    distances = _solvable(kept.distances, dilation)
    plain = metric is None and dilation == 1.0
    cost = np.ascontiguousarray((p[:, None] * losses).T)
    begun = time.monotonic()

    def solve(gap: float, start: FloatArray | None) -> tuple[OptimalChannel, float]:
        """The channel, and what its gap is above that of the solver."""
        left = None if time_limit is None else max(0.0, time_limit - (time.monotonic() - begun))
        result = solve_optimal(
            cost,
            distances,
            closed=plain or (closed and dilation == 1.0),  # metres keep the triangle inequality
            gap=gap,
            time_limit=left,
            progress=progress,
            start=start,
        )
        if not np.isfinite(result.upper):
            raise SolverError("the solver found no channel; please report the instance")
        channel = _certified(result, places, kept, p, losses, dilation)
        return channel, channel.gap - result.gap

    found, taken = solve(gap, _laplace(places, kept.metric) if plain else None)
    over = found.gap - gap
    if found.status == "optimal" and _TAKEN_BY_ROUNDING * gap < over < _MOST_TAKEN * gap:
        # Places that almost coincide need a larger part mixed in: what that took is asked besides.
        again, _ = solve(gap - 2.0 * max(over, min(taken, _MOST_TAKEN * gap)), found.matrix)
        lower = max(found.lower_bound, again.lower_bound)
        best = min(found, again, key=lambda one: one.loss)
        details = {**best.details, "lower_bound": lower, "status": found.status}
        found = replace(best, lower_bound=lower, status=found.status, details=details)
    return found


def _laplace(sites: Sites, metric: Metric) -> FloatArray | None:
    """Planar Laplace reported as the closest site: a private channel to begin from."""
    if not isinstance(metric, Scaled) or not isinstance(sites.points.space, Plane):
        return None
    if len(sites) < _WORTH_LAPLACE:
        return None
    return nearest_site_masses(sites.coordinates, metric.factor, sites.coordinates)


def _with_coinciding(distances: FloatArray) -> tuple[FloatArray, bool]:
    """The metric with near-coinciding sites made one, a stronger promise; whether it is closed."""
    near = np.where(distances < _COINCIDE, 0.0, distances)
    if np.count_nonzero(near == 0) > len(near):
        return shortest_path_closure(near), True
    return near, False


def _solvable(distances: FloatArray, dilation: float) -> FloatArray:
    """The metric to solve for: the spanner's, if one is asked for."""
    if dilation == 1.0:
        return distances
    if not np.isfinite(distances).all():
        raise InvalidInput("a spanner needs finite distances; use dilation=1")
    return greedy_spanner(distances, dilation).graph_distances / dilation


def _certified(
    result: LpResult,
    sites: Sites,
    kept: SitesMetric,
    prior: FloatArray,
    losses: FloatArray,
    dilation: float,
) -> OptimalChannel:
    details = {
        "solver": result.method,
        "status": result.status,
        "iterations": result.iterations,
        "lower_bound": result.lower,
        "dilation": dilation,
    }
    channel = Channel.certified(
        result.matrix,
        sites,
        sites,
        kept,
        source="optimal channel (Bordenabe et al. 2014)",
        details=details,
    )
    used = np.flatnonzero(result.matrix.max(axis=0) > 0)
    value = float((prior[:, None] * channel.matrix * losses[:, used]).sum())
    return OptimalChannel(
        secrets=channel.secrets,
        reports=channel.reports,
        weights=channel.weights,
        guarantee=channel.guarantee,
        details={**channel.details, "loss": value},
        loss=value,
        lower_bound=result.lower,
        status=result.status,
        dilation=dilation,
    )
