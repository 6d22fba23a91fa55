"""A channel on a grid of sites, answering for every place between them.

A channel promises something about its sites alone.  Where they form a full rectangular grid, the
law of a place u is the geometric mean of those of the nine sites around it,

    P(z | u) = prod_x P(z | x)^{B_x(u)} / Z(u),

with biquadratic spline weights B (outermost sites repeated), as on privacy maps
(:mod:`whereish.solvers.eikonal.between`).  The largest slope |grad ln P(z | u)| over all places and
reports is bounded by :mod:`whereish.solvers.splines.bound`; the promise is that slope times the
distance of two places, since ln P changes by at most its integral along the segment between them.
Draws are exact (:mod:`whereish.sampling.spline_coin`).

A place of scattered sites can only be moved to the nearest of them, and the promise is then about
the sites: :meth:`~whereish.mechanisms.channels.channel.Channel.nearest_sites`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.norms import Euclidean
from whereish.randomness import Randomness, secure
from whereish.sampling.spline_coin import (
    KEPT,
    OPEN,
    chosen_cells,
    coins,
    exact_cells,
    exact_coin,
    nine_around,
    surprises,
)
from whereish.solvers.channels.rows import TOTAL
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.bound import Block, CellLaws, SplineSlopes, largest_slopes
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates
from whereish.space.raster import Raster
from whereish.space.sites import Sites

__all__ = ["BetweenSites", "SiteChannel", "grid_of"]

_EVEN = 1e-9  # relative to the extent: how evenly sites of a grid are spaced
_RESIDUAL = 2.0**-40
_UP = 1.0 + 2.0**-40


class SiteChannel(Protocol):
    """What is used of a :class:`~whereish.mechanisms.channels.channel.Channel`."""

    @property
    def secrets(self) -> Sites: ...
    @property
    def reports(self) -> Sites: ...
    @property
    def weights(self) -> IntArray: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def draw(self, indices: NDArray[np.intp], *, rng: Randomness | None = None) -> IntArray: ...


def grid_of(sites: Sites) -> tuple[Raster, NDArray[np.intp]]:
    """The raster whose centres the sites are, and the site of each of its cells in flat order.

    Raises
    ------
    InvalidInput
        If the sites are not on a plane, or no full rectangular grid.
    """
    plane = sites.points.space
    if not isinstance(plane, Plane):
        raise InvalidInput(
            f"places between sites need sites on a plane in metres; these are in"
            f" {plane.description}: move places with channel.nearest_sites(places)"
        )
    places = sites.coordinates
    near = _EVEN * (1.0 + float(np.abs(places).max()))
    axes, steps, index = [], [], []
    for values in places.T:
        order = np.argsort(values, kind="stable")
        new = np.concatenate([[True], np.diff(values[order]) > near])
        axis = values[order][new]
        gaps = np.diff(axis)
        step = float((axis[-1] - axis[0]) / len(gaps)) if len(gaps) else 0.0
        if len(gaps) and float(np.abs(axis - (axis[0] + step * np.arange(len(axis)))).max()) > near:
            raise _scattered(len(places))
        axes.append(axis)
        steps.append(step)
        place = np.empty(len(values), np.intp)
        place[order] = np.cumsum(new) - 1
        index.append(place)
    columns, rows = len(axes[0]), len(axes[1])
    flat = index[1] * columns + index[0]
    if rows * columns != len(places) or len(np.unique(flat)) != len(places):
        raise _scattered(len(places))
    side = max(*steps) or 1.0
    width, height = (step or side for step in steps)
    origin = (float(axes[0][0]) - width / 2, float(axes[1][0]) - height / 2)
    site_of = np.empty(len(places), np.intp)
    site_of[flat] = np.arange(len(places))
    return Raster(rows, columns, (width, height), origin, plane), site_of


def _scattered(count: int) -> InvalidInput:
    return InvalidInput(
        f"places between sites need sites that form a full rectangular grid; these {count} do not:"
        " build the channel on Raster.over(box, cell).sites(), or move places to the nearest site"
        " with channel.nearest_sites(places), knowing that the promise then is about the sites"
    )


@dataclass(frozen=True, eq=False)
class BetweenSites(Composable):
    """A channel on a grid that takes any place in it.

    Contract: keeps the certified `slope` times the distance of two places.

    Made by :meth:`~whereish.mechanisms.channels.channel.Channel.between_sites`.  Places outside the
    grid's cells are taken for their closest place.

    Parameters
    ----------
    channel
        Its sites must form a full rectangular grid on a plane.

    Raises
    ------
    InvalidInput
        If the sites form no grid, or some site never gives a report that another gives.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = wh.Raster.over(wh.Box(0, 0, 500, 500), "100 m").sites()
    >>> mechanism = wh.exponential_channel(sites, "0.01/m").between_sites()
    >>> mechanism.report([[123.4, 432.1]])
    Points(1 in the plane in metres)
    >>> mechanism.factor < 1.1
    True
    """

    channel: SiteChannel
    raster: Raster = field(init=False, repr=False)
    site_of: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        raster, site_of = grid_of(self.channel.secrets)
        if (self.channel.weights == 0).any():
            raise InvalidInput(
                "places between sites need a channel in which every site can give every report;"
                " this one has probabilities of zero: use one that keeps a finite metric"
            )
        object.__setattr__(self, "raster", raster)
        object.__setattr__(self, "site_of", site_of)

    def __repr__(self) -> str:
        rows, columns = self.raster.shape
        return (
            f"{type(self).__name__}(between {rows} x {columns} sites; keeps"
            f" {self.guarantee.metric.description})"
        )

    @property
    def space(self) -> Space:
        """Where secrets live."""
        return self.channel.secrets.points.space

    @cached_property
    def _logs(self) -> FloatArray:
        """(cells, reports) ln of the probabilities, in the raster's order."""
        return np.log(self.channel.weights[self.site_of] / float(TOTAL))

    @cached_property
    def _certified(self) -> tuple[SplineSlopes, float]:
        """Slopes as shares of a level, and that level."""
        rows, columns = self.raster.shape
        width, height = self.raster.cell
        logs = self._logs.reshape(rows, columns, -1)
        across = np.abs(np.diff(logs, axis=1)).max(axis=2, initial=0.0) * _UP + 2.0**-40
        along = np.abs(np.diff(logs, axis=0)).max(axis=2, initial=0.0) * _UP + 2.0**-40
        level = max(across.max(initial=0.0) / width, along.max(initial=0.0) / height)
        if level == 0.0:
            return SplineSlopes(np.zeros((rows, columns)), 1.0), 1.0
        tops = self._logs.max(axis=0)
        laws = CellLaws(
            shares=lambda _: [self._blocks()],
            log_sums=np.zeros((rows, columns)),
            across=across,
            along=along,
            deepest=float((tops - self._logs.min(axis=0)).max()),
        )
        levels = np.full((rows + 1, columns + 1), level)
        return largest_slopes(laws, levels, (height, width)), float(level)

    def _blocks(self) -> Iterator[Block]:
        reports = self._logs.shape[1]
        relative = (self._logs - self._logs.max(axis=0)).astype(np.float32)
        masses = np.exp(self._logs).astype(np.float32)
        top = np.full(len(relative), np.inf, np.float32)
        for start in range(0, reports, LANES):
            chosen = np.minimum(np.arange(start, start + LANES), reports - 1)
            E = np.ascontiguousarray(masses[:, chosen])
            E[:, reports - start :] = 0.0
            yield np.ascontiguousarray(relative[:, chosen]), E, top

    @cached_property
    def slope(self) -> float:
        """The certified bound of |grad ln P(z | u)|, per metre of the plane."""
        found, level = self._certified
        return float(found.factors.max()) * level * _UP

    @property
    def factor(self) -> float:
        """The slope over the level of the channel's own metric, where that is one times metres."""
        return self.slope / self.channel.guarantee.metric.ratio_to(Euclidean())

    @property
    def acceptance(self) -> float:
        """The least chance that a draw is kept, over all places."""
        return self._certified[0].acceptance

    @cached_property
    def guarantee(self) -> Guarantee:
        """The certified promise, between places."""
        slope = max(self.slope, 1e-300)
        source = (
            "gradient of the log-probability over all places between the sites and all reports is"
            f" at most {slope:.6g} per metre"
        )
        numerics = "exact: integer weights of total 2^62, spline weights of the place"
        keeps = Guarantee(slope * Euclidean(), Basis.CERTIFIED, source, numerics)
        return keeps.on(self.space)

    def distribution(self, place: ArrayLike) -> FloatArray:
        """Probabilities of all reports for one place."""
        coordinates = checked_coordinates(place, self.space)
        if len(coordinates) != 1:
            raise InvalidInput(f"distribution takes one place; got {len(coordinates)}")
        nine = nine_around(self.raster, coordinates)
        means = np.exp(nine.weights[0] @ self._logs[nine.cells(self.raster.columns)[0]])
        return np.asarray(means / means.sum())

    @cached_property
    def attempts(self) -> int:
        """Draws for each place with ``padded=True``: all rejected with probability below 2^-40."""
        if self.acceptance >= 1.0:
            return 1
        return math.ceil(math.log(_RESIDUAL) / math.log1p(-self.acceptance))

    def report(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        padded: bool = False,
    ) -> Points:
        """One report for each place; with ``padded=True`` after the same number of draws for all.

        Places outside the grid's cells are taken for their closest place.
        """
        source = secure(rng)
        places = checked_coordinates(secrets, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(places)
        out = np.empty(len(places), np.intp)
        pending = np.arange(len(places))
        while len(pending):
            kept = np.zeros(len(pending), np.bool_)
            for _ in range(self.attempts if padded else 1):
                found, also = self._attempt(places[pending], source)
                out[pending[~kept & also]] = found[~kept & also]
                kept |= also
            pending = pending[~kept]
        columns = self.channel.reports
        return Points.trusted(
            columns.coordinates[out], columns.points.space, reproducible=source.reproducible
        )

    def _attempt(
        self, places: FloatArray, source: Randomness
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """One draw for each place, and whether it is kept."""
        nine = nine_around(self.raster, places)
        cells = nine.cells(self.raster.columns)
        words = source.words(3 * len(places)).reshape(-1, 3)
        chosen = chosen_cells(self.raster, places, nine, words, source)
        drawn = self.channel.draw(self.site_of[chosen], rng=source)
        values = self._logs[cells, drawn[:, None]]
        status = np.empty((len(places), 1), np.int8)
        surprise = surprises(words[:, 2])[:, None]
        coins(values[:, None, :], nine.weights, surprise, nine.error, status)
        for row in np.flatnonzero(status[:, 0] == OPEN):
            exactly = exact_cells(self.raster, places[row])
            weights = self.channel.weights[self.site_of[exactly], drawn[row]]
            masses = [(int(weight), TOTAL) for weight in weights]
            word = int(words[row, 2])
            status[row, 0] = exact_coin(self.raster, places[row], masses, word, source)
        return np.asarray(drawn, np.intp), status[:, 0] == KEPT
