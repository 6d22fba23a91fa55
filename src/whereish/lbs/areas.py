"""Areas of interest and of retrieval: how far to ask around a report.

A person at x wants everything within rad_I of x (the area of interest) and asks a service for
everything within rad_R of the report z (the area of retrieval).  By the triangle inequality the
first lies in the second when d(x, z) <= rad_R - rad_I, so with C the distribution function of
d(x, z), in true metres,

    accuracy = C(rad_R - rad_I),    rad_R = rad_I + C^-1(confidence)

(Andrés, Bordenabe, Chatzikokolakis, Palamidessi, CCS 2013, section 5; Bordenabe's thesis 5.3).
The service sees rad_R.  It is a function of the mechanism, rad_I and the confidence, hence public.
A radius that is shortened to what this draw needs tells d(x, z), and with z a circle on which
x lies: no epsilon bounds that (`tests/lbs/test_areas.py` lets the auditor find it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.lbs.report_errors import map_errors, place_slack, report_errors
from whereish.mechanisms.calibration import Calibrated, probability
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.results import JsonResult
from whereish.solvers.splines.lattice import lattice_of
from whereish.space.points import Points, checked_coordinates
from whereish.space.raster import Raster
from whereish.units import Epsilon, Length

__all__ = [
    "BandwidthOverhead",
    "RadiusByReport",
    "accuracy",
    "bandwidth_overhead",
    "smallest_epsilon",
    "retrieval_radius",
    "retrieval_radius_by_report",
]


def retrieval_radius(
    mechanism: Any,
    interest_radius: Length | str,
    confidence: float,
    *,
    prior: ArrayLike | None = None,
    moved: Length | str | None = None,
) -> Length:
    """How far to ask around a report: rad_I + C^-1(confidence), in true metres.

    Parameters
    ----------
    mechanism
        Laplace or circular noise on the globe or a plane, a channel, an eikonal map, or one of
        these followed by a remap or truncated to a region (which must hold the secret).
    interest_radius
        rad_I: everything within it of the true place is wanted.
    confidence
        The probability with which the area of interest lies in the area of retrieval, at
        least: for every secret, since a radius of one's own place would tell it.
    prior
        For a channel or a map: over the secrets, for whose mean the confidence then holds.
    moved
        For a remap of your own: how far it moves a report at most.  For reports that are moved to
        sites: how far a secret may be from its nearest site.

    Raises
    ------
    InvalidInput
        If the mechanism's distances are not known, or the confidence is no probability below 1.

    Examples
    --------
    >>> import whereish as wh
    >>> radius = wh.retrieval_radius(wh.PlanarLaplace("ln(4)/200 m"), "300 m", 0.95)
    >>> round(radius.m)
    985
    """
    interest = Length.positive(interest_radius, name="interest_radius").m
    errors = report_errors(mechanism, prior=prior, moved=moved)
    return Length(interest + errors.quantile(probability(confidence)))


def accuracy(
    mechanism: Any,
    retrieval_radius: Length | str,
    interest_radius: Length | str,
    *,
    prior: ArrayLike | None = None,
    moved: Length | str | None = None,
) -> float:
    """The probability with which the area of interest lies in that of retrieval, at least.

    Parameters are those of :func:`retrieval_radius`, of which this is the reverse.

    Raises
    ------
    InvalidInput
        If the mechanism's distances are not known.

    Examples
    --------
    >>> import whereish as wh
    >>> round(wh.accuracy(wh.PlanarLaplace("ln(4)/200 m"), "985 m", "300 m"), 2)
    0.95
    """
    around = Length.positive(retrieval_radius, name="retrieval_radius").m
    left = around - Length.positive(interest_radius, name="interest_radius").m
    if left < 0:
        return 0.0
    return report_errors(mechanism, prior=prior, moved=moved).coverage(left)


def smallest_epsilon(
    retrieval_radius: Length | str,
    interest_radius: Length | str,
    confidence: float,
    *,
    noise: type[Calibrated] = GlobeLaplace,
    **options: Any,
) -> Epsilon:
    """The most privacy that two radii leave: the least epsilon that reaches the confidence.

    Noise with a smaller epsilon takes reports too far, so this is what a service that
    answers within `retrieval_radius` costs, at least.

    Parameters
    ----------
    noise, options
        The mechanism: `GlobeLaplace` or `PlanarLaplace`, and what its constructor takes.

    Raises
    ------
    InvalidInput
        If the area of retrieval is not larger than that of interest, or no epsilon will do.

    Examples
    --------
    >>> import whereish as wh
    >>> round(wh.smallest_epsilon("1 km", "300 m", 0.95).per_m, 4)
    0.0069
    """
    around = Length.positive(retrieval_radius, name="retrieval_radius")
    inner = Length.positive(interest_radius, name="interest_radius")
    if not around.m > inner.m:
        raise InvalidInput(
            f"retrieval_radius must be greater than interest_radius; got {around} and {inner}"
        )
    make: Callable[..., Any] = noise.with_quantile
    epsilon: Epsilon = make(confidence, Length(around.m - inner.m), **options).epsilon
    return epsilon


@dataclass(frozen=True)
class BandwidthOverhead(JsonResult):
    """What asking around a report costs more than asking around the place, on average.

    `results` and `bytes` are what is fetched beyond the area of interest; `ratio` is that of
    the two areas.
    """

    results: float
    bytes: float
    ratio: float


def bandwidth_overhead(
    retrieval_radius: Length | str,
    interest_radius: Length | str,
    *,
    per_km2: float,
    bytes_each: float,
) -> BandwidthOverhead:
    """The results that an area of retrieval holds beyond the area of interest.

    Parameters
    ----------
    per_km2
        How many results there are in a square kilometre.
    bytes_each
        The size of one of them.

    Raises
    ------
    InvalidInput
        If the area of retrieval is smaller than that of interest, or a number is negative.

    Examples
    --------
    >>> import whereish as wh
    >>> more = wh.bandwidth_overhead("861 m", "300 m", per_km2=137, bytes_each=840)
    >>> round(more.bytes / 1000), round(more.ratio, 1)
    (235, 8.2)
    """
    around = Length.positive(retrieval_radius, name="retrieval_radius").m
    inner = Length.positive(interest_radius, name="interest_radius").m
    if around < inner:
        raise InvalidInput("retrieval_radius must be at least interest_radius")
    for name, value in (("per_km2", per_km2), ("bytes_each", bytes_each)):
        if not (math.isfinite(value) and value >= 0):
            raise InvalidInput(f"{name} must be a finite number >= 0; got {value!r}")
    results = per_km2 * math.pi * (around**2 - inner**2) / 1e6
    return BandwidthOverhead(results, results * bytes_each, (around / inner) ** 2)


@dataclass(frozen=True, eq=False)
class RadiusByReport:
    """A radius for all that a map may report: public, and longer where eps is low."""

    reports: Raster
    radii_m: FloatArray = field(repr=False)

    def at(self, reports: Points | ArrayLike) -> FloatArray:
        """The radius of each report in true metres."""
        places = checked_coordinates(reports, self.reports.plane)
        return np.asarray(self.radii_m[self.reports.locate(places)])


def retrieval_radius_by_report(
    mechanism: EikonalMechanism, interest_radius: Length | str, confidence: float
) -> RadiusByReport:
    """Radii that depend on what a map *reports*, in proportion to 1/eps there.

    One radius for a whole map must suit its most hidden place.  The report is known to the
    service anyway, so its radius may depend on it: rad_I + q / eps(report), with
    the least q for which every secret's area of interest is inside with the confidence.  (A radius
    of the *secret's* cell would tell that cell.)

    Examples
    --------
    >>> import whereish as wh
    >>> levels = wh.PrivacyMap([[0.002, 0.002, 0.02], [0.002, 0.02, 0.02]], cell="500 m")
    >>> radii = retrieval_radius_by_report(wh.EikonalMechanism.build(levels), "300 m", 0.9)
    >>> bool(radii.radii_m.min() < radii.radii_m.max())
    True
    """
    interest = Length.positive(interest_radius, name="interest_radius").m
    raster, plane = mechanism.reports, mechanism.map.plane
    levels = _levels_of_reports(mechanism)
    share = map_errors(mechanism, per_report=1 / levels).quantile(probability(confidence))
    slack = place_slack(mechanism)
    known = {level: plane.true_distance(share / level + slack) for level in np.unique(levels)}
    return RadiusByReport(raster, np.array([interest + known[level] for level in levels]))


def _levels_of_reports(mechanism: EikonalMechanism) -> FloatArray:
    """eps where each report is: that of its cell, or on continuous places of its node."""
    raster, levels = mechanism.map.raster, mechanism.map.values
    if mechanism.places == "continuous":
        lattice = lattice_of(raster.shape, mechanism.built.used.shape)
        levels = lattice.levels(levels.reshape(raster.shape))
        raster = lattice.raster(raster)
    return np.asarray(levels.ravel()[raster.locate(mechanism.reports.centres())])
