"""Cloaking into zones, and the two extremes: reporting nothing and reporting everything.

Cloaking reports the secret's zone, always the same one.  Inside a zone nothing is
revealed; between zones everything is: its metric is 0 within and infinite across.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import NUMERICS, Channel
from whereish.mechanisms.channels.inputs import (
    PlacesLike,
    as_secrets,
    as_sites,
    check_entries,
    ground_metric,
)
from whereish.privacy.finite import Finite
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.solvers.channels.rows import rounded_rows
from whereish.space.prior import as_prior

__all__ = ["cloaking_channel", "identity_channel", "uniform_channel"]


def cloaking_channel(
    sites: PlacesLike, zones: ArrayLike, *, prior: ArrayLike | None = None
) -> Channel:
    """Report the central site of the secret's zone.

    Contract: keeps the metric that is 0 within a zone and infinite between zones.

    `zones` labels every site.  A zone's centre is the site of least expected distance to
    its sites, weighted by the prior.

    Raises
    ------
    InvalidInput
        If `zones` does not label every site.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0], [200, 0], [900, 0]]
    >>> wh.cloaking_channel(sites, ["a", "a", "a", "b"]).matrix.tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    places = as_secrets(sites)
    labels = np.asarray(zones)
    if labels.shape != (len(places),):
        raise InvalidInput(
            f"zones must label each of the {len(places)} sites; got shape {labels.shape}"
        )
    p = as_prior(prior, len(places))
    names, zone = np.unique(labels, return_inverse=True)
    check_entries(len(places), len(names))
    distances = ground_metric(places).matrix(places.coordinates)
    centres = []
    for label in range(int(zone.max()) + 1):
        members = np.flatnonzero(zone == label)
        weight = p[members] if p[members].sum() > 0 else np.ones(members.size)
        centres.append(members[(weight @ distances[np.ix_(members, members)]).argmin()])
    matrix = np.eye(len(centres))[zone]
    kept = Finite(np.where(zone[:, None] == zone, 0.0, np.inf))
    guarantee = Guarantee(kept, Basis.THEOREM, "cloaking: one report per zone", NUMERICS)
    reports = as_sites(places.points[np.array(centres)])
    return Channel(places, reports, rounded_rows(matrix), guarantee)


def identity_channel(sites: PlacesLike) -> Channel:
    """Report the truth: no privacy at all.

    Contract: keeps only the metric that is infinite between any two sites.

    Raises
    ------
    InvalidInput
        If the sites are no places of one space.

    >>> import whereish as wh
    >>> wh.identity_channel([[0, 0], [100, 0]]).matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    places = as_secrets(sites)
    return cloaking_channel(places, np.arange(len(places)))


def uniform_channel(sites: PlacesLike, reports: PlacesLike | None = None) -> Channel:
    """Report any site, whatever the secret: the metric that is zero everywhere.

    Contract: keeps the metric that is zero everywhere.

    Raises
    ------
    InvalidInput
        If the sites, or the reports, are no places of one space, or too many.

    >>> import whereish as wh
    >>> wh.uniform_channel([[0, 0], [100, 0]]).matrix.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    places = as_secrets(sites)
    targets = places if reports is None else as_sites(reports)
    check_entries(len(places), len(targets))
    matrix = np.full((len(places), len(targets)), 1.0 / len(targets))
    kept = Finite(np.zeros((len(places), len(places))))
    guarantee = Guarantee(kept, Basis.THEOREM, "reports do not depend on the secret", NUMERICS)
    return Channel(places, targets, rounded_rows(matrix), guarantee)
