"""A mechanism in one sentence that people understand, from its guarantee and its error.

The factor is exp(d) for two places a round length apart, whatever is reported; distances of
reports are in true metres and rounded up.  Everything here is a function of public parameters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from whereish.mechanisms.calibration import Calibrated
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Euclidean, Geodesic, Manhattan
from whereish.space.plane import Plane
from whereish.units import Length

if TYPE_CHECKING:
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

__all__ = ["how_far", "how_likely", "in_words"]

_ROUND = sorted(digit * 10.0**power for power in range(-3, 8) for digit in (1, 2, 5))


def in_words(mechanism: Any, *, reports: int = 1) -> str:
    """What so many reports of one place tell together, and how far away each of them is.

    Examples
    --------
    >>> import whereish as wh
    >>> from whereish.mechanisms.in_words import in_words
    >>> print(in_words(wh.GlobeLaplace("ln(4)/200 m")))
    Two places 100 m apart stay within a factor 2 of each other in likelihood, whatever is \
reported; reports are 293 m away on average, 95% within 693 m.
    """
    if hasattr(mechanism, "centre_laws"):
        return _of_map(mechanism, reports)
    parts = [how_likely(mechanism.guarantee.metric, reports, _scale(mechanism))]
    far = how_far(mechanism)
    return "; ".join(part for part in (*parts, far) if part) + "."


def how_likely(metric: Metric, reports: int = 1, scale: float = 1.0) -> str:
    """What the metric means for two places a round length apart."""
    level = _level(metric) * scale
    if level == 0:
        return "Reports tell no two places apart"
    if not math.isfinite(level):
        return (
            "The odds of two places change by at most the factor exp(d), whatever is reported, with"
            f" d = {metric.description}"
        )
    apart = min(_ROUND, key=lambda metres: abs(math.log(metres * level / math.log(2))))
    factor = _factor(apart * level * reports)
    told = _told(reports)
    return (
        f"Two places {Length(apart)} apart stay within a factor {factor} of each other in"
        f" likelihood, {told}"
    )


def how_far(mechanism: Any) -> str:
    """How far reports are from the place, where the mechanism knows it in true metres."""
    if not isinstance(mechanism, Calibrated):
        return ""
    mean = mechanism.mean_error.m + mechanism.rounding.m
    within = mechanism.quantile(0.95).m
    if not (math.isfinite(mean) and math.isfinite(within)):
        return ""
    return f"reports are {_metres(mean)} away on average, 95% within {_metres(within)}"


def _of_map(mechanism: EikonalMechanism, reports: int) -> str:
    levels, errors = _three_places(mechanism)
    apart = min(_ROUND, key=lambda metres: abs(math.log(metres * levels[1] / math.log(2))))
    factors = [_factor(apart * level * reports) for level in (levels[0], levels[2])]
    told = _told(reports)
    return (
        f"Levels run from {levels[0] * 1e3:.3g} to {levels[2] * 1e3:.3g} per km: two places"
        f" {Length(apart)} apart stay within a factor {factors[0]} of each other in likelihood"
        f" if all between them is at the lowest level, {factors[1]} if at the highest, {told};"
        f" reports are {_metres(errors[0])} away on average at the lowest level,"
        f" {_metres(errors[1])} at the median and {_metres(errors[2])} at the highest."
    )


def _three_places(mechanism: EikonalMechanism) -> tuple[list[float], list[float]]:
    """Levels, and mean distances of reports, at the lowest, median and highest level."""
    import numpy as np

    privacy_map = mechanism.map
    centres = privacy_map.raster.centres()
    order = np.argsort(privacy_map.values, axis=None, kind="stable")
    if isinstance(privacy_map.space, Plane):
        order = order[privacy_map.space.in_region(centres)[order]]
    cells = [int(order[0]), int(order[len(order) // 2]), int(order[-1])]
    places = mechanism.reports.centres()
    laws = mechanism.centre_laws(np.asarray(cells))
    errors = [
        float(law.ravel() @ np.hypot(*(places - centres[cell]).T))
        for cell, law in zip(cells, laws, strict=True)
    ]
    return [float(privacy_map.values.flat[cell]) for cell in cells], errors


def _level(metric: Metric) -> float:
    """The least known level per metre; infinite where none is known."""
    ratios = metric.ratio_to(Euclidean()), metric.ratio_to(Geodesic())
    return min(*ratios, math.sqrt(2) * metric.ratio_to(Manhattan()))


def _scale(mechanism: Any) -> float:
    space = mechanism.space
    return space.scale if isinstance(space, Plane) else 1.0


def _told(reports: int) -> str:
    if reports == 1:
        return "whatever is reported"
    return f"whatever {reports} reports of one place tell together"


def _metres(length: float) -> str:
    """Rounded up: to the metre below 10 km, to the hundredth of a kilometre above."""
    return f"{math.ceil(length)} m" if length < 1e4 else f"{math.ceil(length / 10) / 100:g} km"


def _factor(nats: float) -> str:
    """e to so many nats, rounded up; as a power where many reports make it huge."""
    return _up(math.exp(nats)) if nats < 50 else f"e^{math.ceil(nats)}"


def _up(factor: float) -> str:
    """Three digits, never fewer than there are."""
    if factor >= 1e6:
        return f"{factor:.1e}"
    scale = 10.0 ** (2 - math.floor(math.log10(factor)))
    return f"{math.ceil(factor * scale - 1e-9) / scale:g}"
