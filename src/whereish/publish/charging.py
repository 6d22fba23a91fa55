"""What one report of a mechanism costs: its level per true metre.

Budgets are counted in one unit, a level per true metre, so that reports of different mechanisms
add up.  A privacy map has a level for every place; with d(x, x') the least integral of eps
along paths, d(x, x') <= (largest eps) |x - x'|, so a report is charged at the largest level of the
map, wherever the secret is: a charge of the secret's own level would tell it.
"""

from __future__ import annotations

import math

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.metric import Metric, Scaled
from whereish.privacy.norms import Euclidean, Geodesic, Manhattan
from whereish.space.plane import Plane
from whereish.units import Epsilon

__all__ = ["charged_epsilon", "level_in_true_metres", "of_a_map"]


def charged_epsilon(mechanism: Mechanism) -> Epsilon:
    """The level per true metre that one report keeps, for charging.

    Raises
    ------
    InvalidInput
        If the guarantee is not known to be at most epsilon times true metres.
    """
    level = level_in_true_metres(mechanism)
    if not math.isfinite(level):
        metric = mechanism.guarantee.metric
        cure = "; build the map with places='continuous'" if of_a_map(metric) else ""
        raise InvalidInput(
            "the release cannot be charged: the guarantee is not epsilon x metres, but"
            f" {metric.description}{cure}"
        )
    own = getattr(mechanism, "epsilon", None)
    # The level that was asked for, where the roundings of the plane's scale hide it.
    if isinstance(own, Epsilon) and math.isclose(own.per_m, level, rel_tol=1e-12):
        return own
    return Epsilon.per_metre(level)


def level_in_true_metres(mechanism: Mechanism) -> float:
    """The least known c for which a report keeps c times true metres; infinity if none.

    On a plane of scale k, d <= c * Euclidean there is at most c k in true metres.
    """
    metric, space = mechanism.guarantee.metric, mechanism.space
    if not isinstance(space, Plane):
        return metric.ratio_to(Geodesic())
    ratios = metric.ratio_to(Euclidean()), math.sqrt(2) * metric.ratio_to(Manhattan())
    return min(ratios) * space.scale


def of_a_map(metric: Metric) -> bool:
    """Whether a metric is that of a privacy map, which says more than its largest level."""
    return isinstance(metric.base if isinstance(metric, Scaled) else metric, MapGeodesic)
