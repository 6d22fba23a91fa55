"""Channels: mechanisms with finitely many secrets and reports.

Row x of a channel is a distribution over reports.  Its probabilities are integers
over the common total 2^62, and a report is drawn from those same integers: a 64-bit
word gives 62 uniform bits, and the report is the column whose interval of the
cumulated row holds them.  What was certified is what is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput, NotPrivate, shortened
from whereish.mechanisms.base import Remap
from whereish.mechanisms.channels.between import BetweenSites
from whereish.mechanisms.channels.inputs import PlacesLike, SitesMetric, as_sites
from whereish.mechanisms.saved import (
    Artefact,
    described,
    load_artefact,
    save_artefact,
    saved_as,
    space_from_json,
    space_to_json,
)
from whereish.notebook import heat_map
from whereish.privacy.finite import Finite
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric
from whereish.privacy.on_sites import check_fits, indexed, restricted_metric, site_distances
from whereish.randomness import Randomness, secure
from whereish.solvers.channels.ratios import LargestRatio, largest_ratio, pair_leakage
from whereish.solvers.channels.rows import TOTAL, certified_rows, draw_columns, rounded_rows
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates, plain_numbers
from whereish.space.sites import Sites

__all__ = ["CHANNEL", "Channel", "ChannelRemap", "verified_channel"]

CHANNEL = "channel"
"""The kind of a saved channel, as its file names it."""

NUMERICS = "integer weights of total 2^62, sampled exactly"
_SAME_PLACE = 1e-9  # relative to the extent of the sites


@runtime_checkable
class ChannelRemap(Protocol):
    """A remap that looks at the channel (never at a secret) to choose where reports go."""

    def targets(self, channel: Channel) -> Sites:
        """The new place of each report of `channel`."""


@saved_as(CHANNEL)
@dataclass(frozen=True, eq=False)
class Channel:
    """A finite mechanism.

    Parameters
    ----------
    secrets, reports
        The public places of rows and columns.
    weights
        (n, reports) integers; every row sums to 2^62.
    guarantee
        The metric that the rows keep.  On coordinates it speaks of the sites only.
    details
        Facts about how the channel was built, for its certificate.

    Examples
    --------
    >>> import whereish as wh
    >>> channel = wh.exponential_channel([[0, 0], [100, 0]], "ln(2)/100 m")
    >>> channel
    Channel(2 secrets, 2 reports in the plane in metres; keeps 0.00693147 * |x - x'|)
    >>> channel.matrix.sum(axis=1).tolist()
    [1.0, 1.0]
    >>> channel.report([[0, 0], [100, 0]])
    Points(2 in the plane in metres)
    """

    secrets: Sites
    reports: Sites
    weights: IntArray = field(repr=False)
    guarantee: Guarantee
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        weights = np.array(self.weights)
        if weights.dtype != np.int64 or weights.shape != (len(self.secrets), len(self.reports)):
            raise InvalidInput(
                "weights must be 64-bit integers, one row per secret and one column per report;"
                f" got {weights.dtype} of shape {weights.shape}"
            )
        # Entries are at most the total, so that sums of two fit; sum exactly, row by row.
        exact = all(sum(row.tolist()) == TOTAL for row in weights)
        if (weights < 0).any() or not exact:
            raise InvalidInput("every row of weights must be >= 0 and sum to exactly 2^62")
        check_fits(self.guarantee.metric, self.space)
        if isinstance(self.space, Plane):
            # Beyond its region a plane's scale says nothing, and it was charged.
            self.space.check_region(self.secrets.coordinates)
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        size = f"{len(self.secrets)} secrets, {len(self.reports)} reports"
        where, keeps = map(shortened, (self.space.description, self.guarantee.metric.description))
        return f"{type(self).__name__}({size} in {where}; keeps {keeps})"

    def _repr_html_(self) -> str:
        caption = f"{self!r}: a row for each secret, the more probable a report, the darker"
        return heat_map(self.matrix, caption) + self.guarantee._repr_html_()

    # -- building -----------------------------------------------------------------

    @classmethod
    def certified(
        cls,
        matrix: FloatArray,
        secrets: Sites,
        reports: Sites,
        kept: SitesMetric,
        *,
        source: str,
        details: Mapping[str, Any] | None = None,
    ) -> Self:
        """Integer rows near `matrix` that provably keep a metric; `NotPrivate` if there are none.

        Reports that no secret ever gives are left out.
        """
        used = np.flatnonzero(matrix.max(axis=0) > 0)
        rows = certified_rows(
            np.ascontiguousarray(matrix[:, used]), kept.distances, metric_error=kept.error
        )
        guarantee = _promise(kept.metric, f"{source}; {_verdict(rows.ratio)}").on(
            secrets.points.space
        )
        facts = {"mixed": rows.mixed, **(details or {})}
        places = Sites(reports.points[used])
        return cls(secrets, places, rows.weights, guarantee, facts)

    @classmethod
    def of_matrix(
        cls, matrix: ArrayLike, secrets: PlacesLike, reports: PlacesLike | None = None
    ) -> Channel:
        """A channel with no promise but its own: the metric of its largest log-ratios.

        Where one secret can give a report that another cannot, their distance is infinite.
        """
        k = np.asarray(matrix, dtype=np.float64)
        rows = as_sites(secrets)
        columns = rows if reports is None else as_sites(reports)
        if k.shape != (len(rows), len(columns)):
            raise InvalidInput(
                f"the matrix must be {len(rows)} secrets by {len(columns)} reports; got {k.shape}"
            )
        if not np.isfinite(k).all() or (k < 0).any():
            raise InvalidInput("the matrix must have finite entries >= 0")
        if np.abs(k.sum(axis=1) - 1.0).max() > 1e-9:
            raise InvalidInput("every row of the matrix must sum to 1")
        weights = rounded_rows(k)
        source = "largest log-ratio of every pair, from the weights"
        leaks = _promise(Finite(pair_leakage(weights)), source)
        return cls(rows, columns, weights, leaks)

    # -- being a mechanism --------------------------------------------------------

    @property
    def space(self) -> Space:
        """Where secrets live."""
        return self.secrets.points.space

    @cached_property
    def matrix(self) -> FloatArray:
        """Probabilities, (n, reports), to double precision."""
        return np.asarray(self.weights / float(TOTAL))

    @cached_property
    def _cumulative(self) -> IntArray:
        return np.cumsum(self.weights, axis=1)

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One report for each secret.  Secrets must be sites: the promise is about sites.

        Places between sites can be moved to the nearest with :meth:`nearest_sites`; the
        promise is then one for the sites they were moved to.
        """
        source = secure(rng)
        columns = self.draw(self.index_of(secrets), rng=source)
        return Points.trusted(
            self.reports.coordinates[columns],
            self.reports.points.space,
            reproducible=source.reproducible,
        )

    def draw(self, indices: NDArray[np.integer[Any]], *, rng: Randomness | None = None) -> IntArray:
        """Report indices for secret indices, from 62 bits each."""
        rows = np.ascontiguousarray(indices, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self.secrets)):
            raise InvalidInput(f"indices must be of the {len(self.secrets)} sites")
        return draw_columns(self._cumulative, rows, secure(rng).words(rows.size))

    def index_of(self, secrets: Points | ArrayLike) -> NDArray[np.intp]:
        """Which site each secret is; places that are no site are refused."""
        places = checked_coordinates(secrets, self.space)
        index = self.secrets.nearest(places)
        extent = 1.0 + float(np.abs(self.secrets.coordinates).max())
        away = np.abs(self.secrets.coordinates[index] - places).max(axis=1, initial=0.0)
        beyond = int((away > _SAME_PLACE * extent).sum())
        if beyond:
            raise InvalidInput(
                f"secrets must be sites of the channel; {beyond} of {len(places)} are not: move"
                " them with channel.nearest_sites(places), knowing that the promise then is about"
                " the sites"
            )
        return index

    def check_secrets(self, secrets: Points | ArrayLike) -> NDArray[np.intp]:
        """:meth:`index_of`: which site each secret is."""
        return self.index_of(secrets)

    def nearest_sites(self, places: Points | ArrayLike) -> Points:
        """The site nearest to each place."""
        coordinates = checked_coordinates(places, self.space)
        return Points(self.secrets.coordinates[self.secrets.nearest(coordinates)], self.space)

    def between_sites(self) -> BetweenSites:
        """The channel for any place between its sites, which must form a full rectangular grid.

        Its certified promise is a slope times the distance of two places, somewhat (2 to 12%)
        above the level of the channel.  Scattered sites are refused: for them there is
        :meth:`nearest_sites`.

        >>> import whereish as wh
        >>> sites = wh.Raster.over(wh.Box(0, 0, 400, 300), "100 m").sites()
        >>> wh.exponential_channel(sites, "0.01/m").between_sites().report([[210.5, 99.0]])
        Points(1 in the plane in metres)
        """
        return BetweenSites(self)

    # -- post-processing ----------------------------------------------------------

    def __rshift__(self, remap: Remap | ChannelRemap) -> Channel:
        """The channel followed by a remap of its reports: columns that meet are added."""
        if isinstance(remap, ChannelRemap) and callable(remap.targets):
            moved = remap.targets(self).points
        else:
            moved = remap(self.reports.points)
        places, column = np.unique(moved.coordinates, axis=0, return_inverse=True)
        weights = np.zeros((len(self.secrets), len(places)), np.int64)
        np.add.at(weights.T, column.ravel(), self.weights.T)
        return Channel(
            self.secrets, Sites(Points(places, moved.space)), weights, self.guarantee, self.details
        )

    def restricted(self, indices: ArrayLike) -> Channel:
        """The channel on some of its secrets: fewer pairs, so the promise stands."""
        rows = np.arange(len(self.secrets))[np.asarray(indices)]
        metric = restricted_metric(self.guarantee.metric, rows)
        return Channel(
            Sites(self.secrets.points[rows]),
            self.reports,
            self.weights[rows],
            replace(self.guarantee, metric=metric),
            self.details,
        )

    # -- verification and files ---------------------------------------------------

    def verify(self) -> LargestRatio:
        """Check the promise again from the integers; `NotPrivate` if it does not hold."""
        distances, error = self._distances()
        found = largest_ratio(self.weights, distances, distance_error=error)
        if found.upper > 1.0:
            raise NotPrivate(
                f"the weights need {found.upper:.9g} times the promised metric, at"
                f" (secret, secret, report) {found.triple}"
            )
        return found

    def _distances(self) -> tuple[FloatArray, float | FloatArray]:
        """What is promised on the sites, and the relative error of these numbers."""
        coordinates = self.secrets.coordinates
        return site_distances(self.guarantee.metric, len(self.secrets), coordinates)

    def save(self, path: str | Path) -> None:
        """Write the channel with its certificate, after verifying it once more."""
        found = self.verify()
        arrays: dict[str, NDArray[Any]] = {
            "weights": self.weights,
            "secrets": self.secrets.coordinates,
            "reports": self.reports.coordinates,
        }
        promise = self.guarantee.to_json()
        if indexed(self.guarantee.metric):
            promise = _without_matrix(self.guarantee)
            arrays["distances"] = self._distances()[0]
        certificate = {
            "guarantee": promise,
            "verified": {"factor": found.upper, "worst": found.triple},
            "secrets": {"count": len(self.secrets), "space": space_to_json(self.space)},
            "reports": {
                "count": len(self.reports),
                "space": space_to_json(self.reports.points.space),
            },
            "total": "2^62",
            "details": dict(self.details),
        }
        save_artefact(path, CHANNEL, arrays, certificate)

    @classmethod
    def load(cls, path: str | Path) -> Channel:
        """Read a channel and verify its promise from the numbers alone.

        Of the file's guarantee only the metric is read: basis and source are those of this
        verification.  `details` are what the file says, unverified.
        """
        return Channel.from_artefact(load_artefact(path, CHANNEL))

    @classmethod
    def from_artefact(cls, saved: Artefact) -> Channel:
        """The channel of a file that was read already, verified as by :meth:`load`."""
        return verified_channel(saved)[0]


def verified_channel(saved: Artefact) -> tuple[Channel, LargestRatio]:
    """The channel of a file, and what its verification found."""
    arrays, certificate = saved.arrays, saved.certificate
    said = certificate["guarantee"]
    metric = said.get("metric") if isinstance(said, dict) else None
    if "distances" in arrays:
        distances = plain_numbers(arrays["distances"], "'distances' in the file")
        metric = {"kind": "finite", "distances": distances}
    if not isinstance(details := certificate["details"], dict):
        raise InvalidInput("the file's 'details' must be an object of names and values")
    channel = Channel(
        _sites(saved, "secrets"),
        _sites(saved, "reports"),
        arrays["weights"],
        _promise(Metric.from_json(metric or {}), "not verified yet"),
        details,
    )
    found = channel.verify()
    source = f"verified from a saved channel; {_verdict(found)}"
    promise = _promise(channel.guarantee.metric, source).on(channel.space)
    return replace(channel, guarantee=promise), found


def _sites(saved: Artefact, name: str) -> Sites:
    space = described(saved, name, "a space", lambda said: space_from_json(said["space"]))
    return Sites(Points(saved.arrays[name], space))


def _promise(metric: Metric, source: str) -> Guarantee:
    return Guarantee(metric, Basis.CERTIFIED, source, NUMERICS)


def _without_matrix(guarantee: Guarantee) -> dict[str, Any]:
    small = replace(guarantee, metric=Finite(np.zeros((1, 1))))
    return {**small.to_json(), "metric": {"kind": "finite", "distances": "in the array"}}


def _verdict(ratio: LargestRatio) -> str:
    return f"all triples checked, at most {ratio.upper:.12g} of the metric"
