"""How far reports are from their secrets, in true metres: what a retrieval radius stands on.

Every law here is for the worst secret, unless a prior over the places of a channel or map asks for
the mean.  None looks at a secret or at a draw.

- Noise on the globe or a plane states its own radii (:class:`TrueRadii`).
- A channel's and a map's law is finite: distances are rounded up to 2^-16 of the largest and their
  probabilities summed.  Within a map a secret is up to half a diagonal from its cell's centre,
  with bilinear places up to a whole one from the centre it is rounded to.
- With continuous places laws stand at corners of cells, and so do reports, but the centre c of a
  cell has a law as well, the mean of those around.  For a place u of the cell |c - u| <= s, half a
  diagonal, so a report y with |u - y| > r + s has |c - y| > r.  The segment from c to u stays in
  the cell, where |grad ln P(y | .)| <= eps <= m is certified, m the largest level of the cell and
  its neighbours (eps is bilinear between centres).  Hence P(y | u) <= e^(m s) P(y | c), and summed
  over these y: P(|u - y| > r + s | u) <= e^(m s) P(|c - y| > r | c).
- Moving reports to the closest place of a box that holds the secret takes them no farther from it
  on a plane (projections onto convex sets contract).  To any other closest place, p for z:
  d(x, p) <= d(x, z) + d(z, p) <= 2 d(x, z) + d(x, region).
- A remap to targets of a grid moves a report by at most the largest way from a cell's corner to its
  target, once it is inside the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray, least_around
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Closest, Remap, Remapped
from whereish.mechanisms.calibration import TrueRadii, probability
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.grid_remap import GridRemap
from whereish.privacy.norms import Euclidean, Geodesic
from whereish.space.box import Box
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points, Space
from whereish.space.prior import as_prior
from whereish.space.sphere import Sphere, true_metres
from whereish.units import Length

__all__ = ["ReportErrors", "map_errors", "place_slack", "report_errors", "true_places"]

_BINS = 1 << 16
_BATCH = 32


class ReportErrors(Protocol):
    """The law of the distance between a secret and its report."""

    def quantile(self, chance: float) -> float:
        """True metres that hold the report with at least probability `chance`."""

    def coverage(self, radius: float) -> float:
        """A probability with which the report is, at least, within `radius` true metres."""


@dataclass(frozen=True)
class _Noise:
    """Noise; then reports move by `moved` metres of the law, and distances grow by `factor`."""

    noise: TrueRadii
    moved: float = 0.0
    factor: float = 1.0
    away: float = 0.0

    def quantile(self, chance: float) -> float:
        reach = self.noise.ideal_quantile(chance).m * (1 + 2.0**-40) + self.moved
        return self.factor * self.noise.to_true(reach) + self.away

    def coverage(self, radius: float) -> float:
        left = max(radius - self.away, 0.0) / self.factor
        return self.noise.within(max(self.noise.to_law(left) - self.moved, 0.0))


Rows: TypeAlias = Iterator[tuple[FloatArray, FloatArray]]
"""Batches of secrets: probabilities of their reports, and distances in units of the law."""


@dataclass(frozen=True, eq=False)
class _Finite:
    """A finite law; `largest` bounds its distances, which :meth:`true` makes true metres."""

    rows: Callable[[], Rows]
    largest: float
    prior: FloatArray | None
    slack: float = 0.0
    plane: Plane | None = None
    """For distances that were measured on it."""
    lift: FloatArray | None = None
    """How many times as likely the tails may be, for each secret."""

    def quantile(self, chance: float) -> float:
        wanted = probability(chance) * (1 + 2.0**-40)
        worst = (
            self._worst_bin(wanted) if self.prior is None else self._mean_bin(wanted, self.prior)
        )
        distance = min(worst, _BINS) * self._step + self.slack
        return distance if self.plane is None else self.plane.true_distance(distance)

    def coverage(self, radius: float) -> float:
        left = radius if self.plane is None else self.plane.plane_distance(radius)
        if left == math.inf:
            return 1.0
        bins = math.floor((left - self.slack) / self._step * (1 + 2.0**-40))
        if bins < 0:
            return 0.0
        held = np.concatenate(
            [
                1.0 - lift * (1.0 - (chances * (far <= bins)).sum(axis=1))
                for _, chances, far, lift in self._binned()
            ]
        )
        share = held.min() if self.prior is None else self.prior @ held
        return float(min(max(share * (1 - 2.0**-40), 0.0), 1.0))

    @property
    def _step(self) -> float:
        return max(self.largest, 1e-9) / _BINS

    def _binned(self) -> Iterator[tuple[slice, FloatArray, IntArray, FloatArray]]:
        """Batches of secrets: which, the chances of their reports, multiples of the step, lifts."""
        start = 0
        for chances, distances in self.rows():
            which = slice(start, start + len(chances))
            lift = np.ones(len(chances)) if self.lift is None else self.lift[which]
            far = np.ceil(distances / self._step * (1 - 2.0**-40)).astype(np.int64)
            start += len(chances)
            yield which, chances, far, lift

    def _worst_bin(self, wanted: float) -> int:
        """The least multiple of the step that holds every secret's report as often as wanted."""
        worst = 0
        for _, chances, far, lift in self._binned():
            order = np.argsort(far, axis=1)
            sums = np.cumsum(np.take_along_axis(chances, order, axis=1), axis=1)
            enough = 1.0 - lift[:, None] * (1.0 - sums) >= wanted
            if not enough.any(axis=1).all():
                return _BINS
            first = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
            worst = max(worst, int(np.take_along_axis(far, first, axis=1).max()))
        return worst

    def _mean_bin(self, wanted: float, prior: FloatArray) -> int:
        """The least that holds the report as often as wanted in the prior's mean."""
        counts, least = np.zeros(_BINS + 1), 0.0
        for which, chances, far, lift in self._binned():
            shares = (prior[which] * lift)[:, None] * chances
            counts += np.bincount(far.ravel(), shares.ravel(), _BINS + 1)
            least += float(prior[which] @ (1.0 - lift))
        return int((least + np.cumsum(counts) < wanted).sum())


def report_errors(
    mechanism: object, *, prior: ArrayLike | None = None, moved: Length | str | None = None
) -> ReportErrors:
    """The distances of a mechanism's reports; see :func:`whereish.lbs.areas.retrieval_radius`."""
    away = 0.0 if moved is None else Length.of(moved, name="moved").m
    if isinstance(mechanism, Channel):
        return _channel(mechanism, prior)
    if isinstance(mechanism, EikonalMechanism):
        return map_errors(mechanism, prior=prior)
    if isinstance(mechanism, Remapped) and isinstance(mechanism.mechanism, EikonalMechanism):
        return map_errors(mechanism.mechanism, prior=prior, remap=mechanism.remap)
    if prior is not None:
        raise InvalidInput(
            "a prior is for the places of a channel or a map; the distances of noise are the same"
            " everywhere: leave it out"
        )
    if isinstance(mechanism, TrueRadii) and not isinstance(getattr(mechanism, "space", None), Line):
        return _Noise(mechanism)
    if isinstance(mechanism, Remapped) and isinstance(mechanism.mechanism, TrueRadii):
        return _remapped(mechanism.mechanism, mechanism.remap, away, moved is not None)
    raise InvalidInput(
        "the distances of reports are known for Laplace and circular noise, channels, eikonal"
        f" maps, and these followed by a remap; got {type(mechanism).__name__}"
    )


def _remapped(noise: TrueRadii, remap: Remap, away: float, stated: bool) -> ReportErrors:
    if isinstance(remap, GridRemap):
        half = math.hypot(*remap.raster.cell) / 2
        centres = remap.raster.centres()
        ways = Euclidean()(centres, centres[remap.targets])
        return _Noise(noise, moved=float(ways.max()) + half)
    if isinstance(remap, Closest):
        on_globe = isinstance(getattr(noise, "space", None), Sphere)
        if isinstance(remap.region, Box) and not on_globe:
            return _Noise(noise)
        if isinstance(remap.region, Box) or stated:
            # Closest on the sphere, whose distances are true ones within (a/b)^3.
            return _Noise(noise, factor=2 * true_metres() if on_globe else 2.0, away=away)
        raise InvalidInput(
            "reports are moved to sites, so the radius depends on how far a place may be from its"
            " nearest site: state that bound, moved='500 m'"
        )
    if not stated:
        raise InvalidInput(
            "how far this remap moves a report is not known here: state a bound that always holds,"
            " moved='500 m'"
        )
    return _Noise(noise, away=away)


def _channel(channel: Channel, prior: ArrayLike | None) -> _Finite:
    weights = None if prior is None else as_prior(prior, len(channel.secrets))
    secrets, reports = true_places(channel.secrets.points), true_places(channel.reports.points)
    metric = Euclidean() if secrets.metric is None else secrets.metric
    matrix = channel.matrix

    def rows() -> Rows:
        for low in range(0, len(matrix), _BATCH):
            some = secrets.coordinates[low : low + _BATCH, None]
            yield matrix[low : low + _BATCH], metric(some, reports.coordinates[None])

    largest = max(float(distances.max()) for _, distances in rows())
    return _Finite(rows, largest, weights)


@dataclass(frozen=True)
class _Places:
    coordinates: FloatArray
    metric: Geodesic | None


def true_places(points: Points) -> _Places:
    """Coordinates with the metric of true metres: degrees where there are any."""
    space: Space = points.space
    if isinstance(space, Sphere) or (isinstance(space, Plane) and space.crs is not None):
        return _Places(np.column_stack(space.to_degrees(points)), Geodesic())
    return _Places(points.coordinates, None)


def map_errors(
    mechanism: EikonalMechanism,
    *,
    prior: ArrayLike | None = None,
    remap: Remap | None = None,
    per_report: FloatArray | None = None,
) -> _Finite:
    """The law of a map; with `per_report`, of the ratios of distances to a length of each report.

    Distances are on the raster's plane, from centres of the map's cells to all that is reported;
    the slack is the rest.  Ratios have none.
    """
    if mechanism.map.one_dimensional:
        raise InvalidInput("a location service needs a map of the plane; this one is along a line")
    centres, to = mechanism.map.raster.centres(), mechanism.reports.centres()
    if remap is not None:
        to = np.asarray(remap(Points(to, mechanism.space)).coordinates)
    lengths = np.ones(len(to)) if per_report is None else per_report

    def rows() -> Rows:
        for low in range(0, len(centres), _BATCH):
            some = np.arange(low, min(low + _BATCH, len(centres)))
            apart = Euclidean()(centres[some][:, None], to[None])
            yield mechanism.centre_laws(some), apart / lengths

    extent = np.ptp(np.concatenate([centres, to]), axis=0)
    largest = float(np.hypot(*extent)) / float(lengths.min())
    weights = None if prior is None else mechanism.map.normalised_prior(prior)
    lift = _lift(mechanism) if mechanism.places == "continuous" else None
    if per_report is not None:
        return _Finite(rows, largest, weights, lift=lift)
    return _Finite(rows, largest, weights, place_slack(mechanism), mechanism.map.plane, lift)


def _lift(mechanism: EikonalMechanism) -> FloatArray:
    """e^(m s) of each cell: half its diagonal at the largest level around."""
    levels = -least_around(-mechanism.map.plane_levels())
    return np.asarray(np.exp(levels * math.hypot(*mechanism.map.sides) / 2).ravel())


def place_slack(mechanism: EikonalMechanism) -> float:
    """How far a secret may be from the centre whose law it has, on the map's plane."""
    diagonal = math.hypot(*mechanism.map.raster.cell)
    return diagonal if mechanism.places == "bilinear" else diagonal / 2
