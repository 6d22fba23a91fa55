"""The eikonal mechanism: location-dependent privacy that always has an answer.

For a map eps(u) with geodesic metric d, secret u is reported as y with probability

    P(y | u) = k_y · t[D(u, y)] / Z(u),

integer weights k, an integer table t of e^{-q·i} and integer shortest paths D
(:mod:`whereish.solvers.integer_law`).  Koufogiannis and Pappas choose the weights so
that Z is constant, and fail where one would be negative; here the weights are the
best nonnegative ones and the map in use is lowered where Z varies, until a
certificate over all neighbouring cells and all reports holds in exact arithmetic
(:mod:`whereish.solvers.lowering`).  Lowering is stricter, so the promise asked for is
kept.

Stored are the map, the weights and the sums; a report grows shortest paths from its
secret until the drawn mass is reached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable, Remap
from whereish.mechanisms.eikonal_query import EikonalQuery, Query
from whereish.mechanisms.map_metric import MapGeodesic
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric
from whereish.privacy.privacy_map import PrivacyMap
from whereish.randomness import Randomness, secure
from whereish.solvers.eikonal_law import (
    BuiltLaw,
    exponential_law,
    law_on_cells,
    law_on_places,
)
from whereish.solvers.integer_law import decay_table, uniform_below
from whereish.solvers.lanes import LANES
from whereish.solvers.nearest_first import Workspace, draw, draw_padded
from whereish.solvers.quality import posterior_means, squared_errors
from whereish.solvers.stencil import stencil_factor
from whereish.space.plane import Plane
from whereish.space.points import FloatArray, Points, Space, checked_coordinates
from whereish.space.raster import Raster

__all__ = ["EikonalMechanism", "Places"]

Places = Literal["cells", "continuous"]


@dataclass(frozen=True, eq=False)
class EikonalMechanism(Composable):
    """Reports cells of a privacy map (and of its frame), by their centres.

    Build one with :meth:`build`; the constructor takes what `build` found.

    Parameters
    ----------
    map
        What was asked for.
    built
        The certified law and the map in use.
    places
        "cells": the guarantee is between the cells of two secrets.  "continuous": between
        the places themselves, rounded at random to a centre around them.
    neighbours
        Directions of the stencil.
    divided
        The stencil factor by which the map was divided (1 if it was not).
    """

    map: PrivacyMap
    built: BuiltLaw = field(repr=False)
    places: Places = "cells"
    neighbours: int = 16
    divided: float = 1.0

    @overload
    @classmethod
    def build(
        cls,
        privacy_map: PrivacyMap,
        *,
        query: None = None,
        places: Places = "cells",
        neighbours: int | None = None,
        frame: int | None = None,
        divide_stencil: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> EikonalMechanism: ...

    @overload
    @classmethod
    def build(
        cls,
        privacy_map: PrivacyMap,
        *,
        query: Query,
        places: Places = "cells",
        neighbours: int | None = None,
        frame: int | None = None,
        divide_stencil: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> EikonalQuery: ...

    @classmethod
    def build(
        cls,
        privacy_map: PrivacyMap,
        *,
        query: Query | None = None,
        places: Places = "cells",
        neighbours: int | None = None,
        frame: int | None = None,
        divide_stencil: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> EikonalMechanism | EikonalQuery:
        """Solve and certify the mechanism of a map; it always succeeds.

        Parameters
        ----------
        query
            What is asked about a place, as one public answer per cell or a function of the
            centres: an :class:`~whereish.mechanisms.eikonal_query.EikonalQuery` then reports
            answers.  By default the place itself.
        places
            "cells" or "continuous": what a secret is.
        neighbours
            8, 16 or 32 directions; by default 16 on cells and 32 on continuous places.  More
            make the discrete metric rounder and the build slower.
        frame
            Cells without users around the map, in which eps rises, so that reports near its
            edge spread outwards.  By default as many as that takes, or none where it would
            take more than a quarter of the map's side.  With 0 the reports stay
            inside, at a somewhat smaller squared error, but weight piles up in the outermost
            cells and the build takes longer, since the map must be lowered along the edge.
        divide_stencil
            Divide the map by the stencil factor (1.0275 or 1.0131 on square cells), so that
            the promise of "cells" holds in the continuous metric too (proven for constant
            levels).  "continuous" is proven in that metric as it is.
        progress
            Called with the round and its certified factor.
        """
        if places not in ("cells", "continuous"):
            raise InvalidInput(f"places must be 'cells' or 'continuous'; got {places!r}")
        if neighbours is None:
            neighbours = 16 if places == "cells" else 32
        if neighbours not in (8, 16, 32):
            raise InvalidInput(f"neighbours must be 8, 16 or 32; got {neighbours!r}")
        if frame is not None and not (isinstance(frame, int) and frame >= 0):
            raise InvalidInput(f"frame must be a number of cells >= 0 or None; got {frame!r}")
        if query is not None:
            if places != "cells" or frame:
                raise InvalidInput("a query is about cells, without a frame; leave both out")
            return EikonalQuery.build(
                privacy_map,
                query,
                neighbours=neighbours,
                divide_stencil=divide_stencil,
                progress=progress,
            )
        sides = privacy_map.sides
        shape = privacy_map.shape
        divided = stencil_factor(neighbours, sides, shape) if divide_stencil else 1.0
        levels = privacy_map.values / (privacy_map.plane.scale * divided)
        if privacy_map.one_dimensional and frame:
            raise InvalidInput("a map along a line takes no frame; leave frame out")
        solve = law_on_cells if places == "cells" else law_on_places
        built = solve(levels, sides, neighbours=neighbours, frame=frame, progress=progress)
        return cls(privacy_map, built, places, neighbours, divided)

    @classmethod
    def exponential(cls, privacy_map: PrivacyMap, *, neighbours: int = 16) -> EikonalMechanism:
        """The baseline: the exponential mechanism at half the map's metric, normalised.

        Always private, with no weights to solve for, at three to five times the squared error.
        """
        levels = privacy_map.values / privacy_map.plane.scale
        built = exponential_law(levels, privacy_map.sides, neighbours=neighbours)
        return cls(privacy_map, built, "cells", neighbours)

    @property
    def space(self) -> Space:
        """Where secrets live."""
        return self.map.space

    @cached_property
    def metric(self) -> Metric:
        """What is kept."""
        base = MapGeodesic(self.map, self.neighbours, self.places == "continuous")
        return base if self.divided == 1.0 else (1.0 / self.divided) * base

    @cached_property
    def guarantee(self) -> Guarantee:
        """The certified promise."""
        if self.places == "continuous":
            source = (
                "largest gradient over all places and reports is"
                f" {self.built.gradient_factor:.6f} of eps"
            )
        else:
            source = (
                "log-ratio over all neighbouring cells and reports is at most"
                f" {self.built.law.factor:.6f} of the promise"
            )
        return Guarantee(self.metric, Basis.CERTIFIED, source, "exact: integer masses")

    @property
    def factor(self) -> float:
        """The certified factor: at most this share of the promise is used; never above 1."""
        gradient = self.built.gradient_factor
        return self.built.law.factor if gradient is None else gradient

    @cached_property
    def reports(self) -> Raster:
        """The cells that can be reported: the map's, and its frame."""
        raster, frame = self.map.raster, self.built.frame
        (x, y), (width, height) = raster.origin, raster.cell
        return Raster(
            raster.rows + 2 * frame,
            raster.columns + 2 * frame,
            raster.cell,
            (x - frame * width, y - frame * height),
            raster.plane,
        )

    @cached_property
    def lowered(self) -> FloatArray:
        """Mean of (weight in use)/(weight asked for) over the edges at each cell of the map.

        1 (less the reserve and rounding, together below 0.5%) where nothing was lowered.
        """
        from whereish.solvers.lowering import mean_cell_ratios

        frame, (rows, cols) = self.built.frame, self.map.shape
        asked = self.map.values / (self.map.plane.scale * self.divided)
        ratios = mean_cell_ratios(self.built.law.metric, self.built.promised)
        inner = ratios[frame : frame + rows, frame : frame + cols]
        return np.asarray(inner * (self.built.used / asked))

    def report(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        padded: bool = False,
    ) -> Points:
        """One report for each secret: the centre of a cell.

        Secrets outside the map are taken for its closest place.  The time of a draw grows
        with its distance from the secret; with ``padded=True`` every batch of up to 64
        secrets takes the same work, whatever the secrets and the draws.
        """
        source = secure(rng)
        coordinates = self._checked(secrets)
        if self.places == "cells":
            cells = self.map.raster.locate(coordinates)
        else:
            cells = self._rounded(coordinates, source)
        inner = self.built.secrets[cells]
        thresholds = uniform_below(self.built.law.sums[inner], source)
        metric = self.built.law.metric
        starts = metric.padded(inner)
        drawn = self._draw_padded(starts, thresholds) if padded else self._draw(starts, thresholds)
        row, column = np.divmod(drawn, metric.pitch)
        places = self._centre(row, column)
        if self.map.one_dimensional:
            places = places[:, :1].copy()
        return Points.trusted(places, self.space, reproducible=source.reproducible)

    def _checked(self, secrets: Points | ArrayLike) -> FloatArray:
        """Secrets on the map's plane; those beyond its declared region are refused."""
        coordinates = checked_coordinates(secrets, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(coordinates)
        return self.map.on_raster(coordinates)

    def distribution(self, place: ArrayLike) -> FloatArray:
        """Probabilities of all reports for one secret, over the cells of :attr:`reports`."""
        coordinates = self._checked(np.atleast_1d(place))
        if len(coordinates) != 1:
            raise InvalidInput(f"distribution takes one place; got {len(coordinates)}")
        if self.places == "cells":
            corners, shares = self.map.raster.locate(coordinates), np.ones(1)
        else:
            corners, shares = self._corners(coordinates[0])
        law = self.built.law
        inner = self.built.secrets[corners]
        table = decay_table(law.metric.quantum)
        masses = law.weights * table[law.metric.distances(inner)]
        laws = masses.astype(np.float64) / law.sums[inner].astype(np.float64)[:, None]
        return np.asarray(shares @ laws).reshape(self.reports.shape)

    def mse(self, prior: ArrayLike | None = None, *, remap: Remap | None = None) -> float:
        """Expected squared error in square metres, secrets at cell centres.

        `prior` is over the map's cells (uniform by default) and need not be normalised;
        `remap` is applied to the reports first.
        """
        weights = self._prior(prior)
        places = self.reports.centres()
        reports = places
        if remap is not None:
            space = self.map.plane
            reports = np.asarray(remap(Points(places, space)).coordinates)
        law = self.built.law
        errors = squared_errors(law.metric, law.weights, self.built.secrets, places, reports)
        return float(weights @ errors)

    def posterior_mean(self, prior: ArrayLike | None = None) -> Remap:
        """The Bayesian remap for squared error: each report to the posterior mean place.

        ``mechanism >> mechanism.posterior_mean(prior)`` keeps the guarantee whatever the prior.
        """
        law = self.built.law
        means = posterior_means(
            law.metric, law.sums, self.built.secrets, self.reports.centres(), self._prior(prior)
        )
        raster, line = self.reports, self.map.one_dimensional

        def remap(reports: Points) -> Points:
            moved = means[raster.locate(self.map.on_raster(reports.coordinates))]
            moved = moved[:, :1].copy() if line else moved
            return Points.trusted(moved, reports.space, reproducible=reports.reproducible)

        return remap

    def save(self, path: str | Path) -> None:
        """Write map, weights, sums and certificate to one file (npz, no pickle)."""
        from whereish.mechanisms.eikonal_file import write

        write(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> EikonalMechanism:
        """Read what :meth:`save` wrote; damaged or altered numbers are refused."""
        from whereish.mechanisms.eikonal_file import read

        return read(Path(path))

    def recertify(self) -> float:
        """Compute sums and certificate again from the numbers alone; the factor found."""
        from whereish.mechanisms.eikonal_file import recertified

        return recertified(self)

    def _centre(self, row: NDArray[np.int64], column: NDArray[np.int64]) -> FloatArray:
        from whereish.solvers.sweeps import BORDER

        (x, y), (width, height) = self.reports.origin, self.reports.cell
        return np.column_stack(
            [x + (column - BORDER + 0.5) * width, y + (row - BORDER + 0.5) * height]
        )

    def _corner_parts(
        self, coordinates: FloatArray
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray, FloatArray]:
        """The square of centres around each place.

        Row and column of its south-west corner, then the shares of its north and of its east
        corners; beyond the outermost centres, of the closest place.
        """
        (x, y), (width, height) = self.map.origin, self.map.raster.cell
        rows, cols = self.map.shape
        down = np.clip((coordinates[:, 1] - y) / height - 0.5, 0, rows - 1)
        across = np.clip((coordinates[:, 0] - x) / width - 0.5, 0, cols - 1)
        i = np.minimum(np.floor(down), max(rows - 2, 0)).astype(np.intp)
        j = np.minimum(np.floor(across), max(cols - 2, 0)).astype(np.intp)
        return i, j, down - i, across - j

    def _rounded(self, coordinates: FloatArray, source: Randomness) -> NDArray[np.intp]:
        """Each place rounded to a centre around it, with bilinear probabilities."""
        i, j, north, east = self._corner_parts(coordinates)
        words = source.words(2 * len(coordinates)).reshape(-1, 2)
        # A share s is a multiple of 2^-53 or finer; word < s·2^64 has probability s to 2^-64.
        i = i + _below(words[:, 0], north)
        j = j + _below(words[:, 1], east)
        return np.asarray(i * self.map.shape[1] + j, np.intp)

    def _corners(self, place: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        i, j, north, east = (part[0] for part in self._corner_parts(place[None]))
        cols = self.map.shape[1]
        cells, shares = [], []
        for up, p in ((0, 1 - north), (1, north)):
            for right, q in ((0, 1 - east), (1, east)):
                if p * q > 0:
                    cells.append((i + up) * cols + j + right)
                    shares.append(p * q)
        return np.array(cells, np.intp), np.array(shares)

    @cached_property
    def _padded_weights(self) -> NDArray[np.uint64]:
        law = self.built.law
        out = np.zeros(law.metric.edges.shape[1], np.uint64)
        out[law.metric.padded(np.arange(law.metric.cells))] = law.weights
        return out

    @cached_property
    def _scratch(self) -> threading.local:
        return threading.local()

    def _draw(self, starts: NDArray[np.int64], thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        metric = self.built.law.metric
        space: Workspace | None = getattr(self._scratch, "workspace", None)
        if space is None:
            space = self._scratch.workspace = Workspace(metric.edges)
        return draw(
            metric.edges,
            metric.offsets,
            self._padded_weights,
            decay_table(metric.quantum),
            starts,
            thresholds,
            space.distance,
            space.settled,
            space.touched,
            space.bucket,
            space.queue,
        )

    def _draw_padded(
        self, starts: NDArray[np.int64], thresholds: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        law = self.built.law
        out = np.empty(len(starts), np.int64)
        for first in range(0, len(starts), LANES):
            count = min(LANES, len(starts) - first)
            batch = np.full(LANES, starts[first], np.int64)
            level = np.zeros(LANES, np.uint64)
            batch[:count] = starts[first : first + count]
            level[:count] = thresholds[first : first + count]
            drawn = draw_padded(
                law.metric.edges,
                law.metric.offsets,
                *law.metric.shape,
                self._padded_weights,
                decay_table(law.metric.quantum),
                batch,
                level,
                law.sweeps,
            )
            out[first : first + count] = drawn[:count]
        return out

    def _prior(self, prior: ArrayLike | None) -> FloatArray:
        rows, cols = self.map.shape
        if prior is None:
            return np.full(rows * cols, 1.0 / (rows * cols))
        array = np.asarray(prior, float)
        if array.size != rows * cols:
            raise InvalidInput(
                f"a prior must have one number per cell of the map, {rows} x {cols}; got shape"
                f" {array.shape}"
            )
        if not np.isfinite(array).all() or (array < 0).any() or array.sum() <= 0:
            raise InvalidInput("a prior must be finite and >= 0, with a sum > 0")
        return np.asarray(array.ravel() / array.sum())


def _below(words: NDArray[np.uint64], shares: FloatArray) -> NDArray[np.intp]:
    """1 with probability `shares`, 0 otherwise; a share of 1 always gives 1."""
    limits = (np.minimum(shares, 1.0 - 2.0**-53) * 2.0**64).astype(np.uint64)
    return np.asarray((words < limits) | (shares >= 1.0), np.intp)
