"""The eikonal mechanism: location-dependent privacy that always has an answer.

For a map eps(u) with geodesic metric d, secret u is reported as y with probability

    P(y | u) = k_y · t[D(u, y)] / Z(u),

integer weights k, an integer table t of e^{-q·i} and integer shortest paths D
(:mod:`whereish.solvers.geodesic.masses`).  Koufogiannis and Pappas choose the weights so
that Z is constant, and fail where one would be negative; here the weights are the
best nonnegative ones and the map in use is lowered where Z varies, until a
certificate over all neighbouring cells and all reports holds in exact arithmetic
(:mod:`whereish.solvers.eikonal.certify`).  Lowering is stricter, so the promise asked for is
kept.

Stored are the map, the weights and the sums; a report grows shortest paths from its
secret until the drawn mass is reached.

Secrets are places: laws stand at the corners of cells, and between these the law is the geometric
mean of the nine around, P(y | u) = prod_c P(y | c)^{B_c(u)} / Z(u) with biquadratic spline weights,
certified to keep |grad ln P(y | u)| <= eps(u) everywhere (:mod:`whereish.solvers.eikonal.between`),
and drawn exactly, without Z (:mod:`whereish.sampling.spline`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable, Remap, Remapped
from whereish.mechanisms.maps import continuous, on_cells
from whereish.mechanisms.maps.account import account
from whereish.mechanisms.maps.draws import ReportDraws
from whereish.mechanisms.maps.entries import EIKONAL, check_claims
from whereish.mechanisms.maps.file import law_entries, recertified, saved_law
from whereish.mechanisms.maps.options import (
    BuildKeywords,
    EikonalOptions,
    Places,
    check_map,
    check_places,
)
from whereish.mechanisms.maps.query import EikonalQuery, Query
from whereish.mechanisms.saved import Artefact, Loadable, save_artefact, saved_as
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import edge_integrals
from whereish.privacy.metric import Metric
from whereish.randomness import Randomness, secure
from whereish.sampling.bilinear import corners
from whereish.solvers.eikonal.between import cell_laws
from whereish.solvers.eikonal.cells import BuiltLaw, exponential_law
from whereish.solvers.eikonal.certify import mean_cell_ratios
from whereish.space.points import Points, Space
from whereish.space.raster import Raster

__all__ = ["EikonalMechanism", "Places"]


@saved_as(EIKONAL)
@dataclass(frozen=True, eq=False)
class EikonalMechanism(Composable, Loadable):
    """Reports cells of a privacy map (and of its frame), by their centres or their corners.

    Contract: keeps the least integral of eps along paths of the map, certified.

    Build one with :meth:`build`; the constructor takes what `build` found.

    Parameters
    ----------
    map
        What was asked for.
    built
        The certified law and the map in use.
    places
        "continuous": the guarantee is between places; the law of one is the geometric mean of
        those of the nine corners of cells around it, and reports are corners, too.  "cells":
        between the cells of two secrets.  "bilinear": between places, rounded to centres.
    neighbours
        Directions of the stencil.
    divided
        The stencil factor by which the map was divided (1 if it was not).
    prior
        Where people are, over the map's cells, if `build` was told; it is not saved.

    Raises
    ------
    InvalidInput
        If `places` is none of these words; in `build`, if cells are too small.

    Examples
    --------
    >>> import whereish as wh
    >>> levels = wh.PrivacyMap([[0.001, 0.001, 0.002], [0.001, 0.002, 0.002]], cell="500 m")
    >>> mechanism = wh.EikonalMechanism.build(levels)
    >>> mechanism.report([[250, 250]], rng=wh.SeededRandomness(1))
    Points(1 in the plane in metres, reproducible)
    """

    map: PrivacyMap
    built: BuiltLaw = field(repr=False)
    places: Places = "cells"
    neighbours: int = 16
    divided: float = 1.0
    prior: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_places(self.places)

    @overload
    @classmethod
    def build(
        cls, privacy_map: PrivacyMap, *, query: None = None, **options: Unpack[BuildKeywords]
    ) -> EikonalMechanism: ...

    @overload
    @classmethod
    def build(
        cls, privacy_map: PrivacyMap, *, query: Query, **options: Unpack[BuildKeywords]
    ) -> EikonalQuery: ...

    @classmethod
    def build(
        cls,
        privacy_map: PrivacyMap,
        *,
        query: Query | None = None,
        places: Places | None = None,
        neighbours: int | None = None,
        frame: int | None = None,
        divide_stencil: bool = False,
        finer: bool = False,
        prior: ArrayLike | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> EikonalMechanism | EikonalQuery:
        """Solve and certify the mechanism of a map; it always succeeds.

        Parameters
        ----------
        query
            What is asked about a place, as one public answer per cell or a function of the
            centres: an :class:`~whereish.mechanisms.maps.query.EikonalQuery` then reports
            answers.  By default the place itself.
        places
            What a secret is: "continuous" (default), a place, as a GPS gives it; "cells", for
            those whose secrets are cells; "bilinear", a place, as in earlier versions.  A query
            is about cells.
        neighbours
            8, 16 or 32 directions; by default 16 on cells, 32 on places.  More are rounder, slower.
        frame
            Cells without users around the map, in which eps rises, so that reports near its
            edge spread outwards.  By default as many as that takes, or none where it would
            take more than a quarter of the map's side or where the map must be lowered anyway.
            With 0 the reports stay inside, at a smaller squared error, but weight piles up in
            the outermost cells and a smooth map takes longer, since it must be lowered along
            its edge.
        divide_stencil
            Divide the map by the stencil factor (1.0275 or 1.0131 on square cells), so that
            the promise of "cells" holds in the continuous metric too (proven for constant
            levels).  On places it is proven in that metric as it is.
        finer
            On continuous places: laws at, and reports of, centres of half cells, for up to 16
            times the CPU: less error where eps·h exceeds a half or levels jump between cells.
        prior
            Where people are, over the map's cells (need not be normalised): laws are then
            compared under it, those of narrow maps are made for it (of the best channel of
            landmarks, if that has less error), :attr:`recommended` remaps reports by it, and
            :meth:`account` says what that gains.  The guarantee never depends on it.
        progress
            Called with the round and its certified factor; on continuous places with the round, of
            20 to 60, and the largest slope over eps at points.  With 100 x 100 cells such a build
            takes about a minute of CPU; that grows with the square of their number.
        """
        kind = places
        if kind is None:
            kind = "continuous" if query is None else "cells"
        options = EikonalOptions(kind, neighbours, frame, divide_stencil, finer)
        if query is not None:
            if prior is not None:
                raise InvalidInput("a query is built without a prior; leave it out")
            if kind != "cells" or frame:
                raise InvalidInput("a query is about cells, without a frame; leave both out")
            return EikonalQuery.build(
                privacy_map,
                query,
                neighbours=options.directions,
                divide_stencil=divide_stencil,
                progress=progress,
            )
        weights = None if prior is None else privacy_map.normalised_prior(prior)
        built, divided = options.solve(privacy_map, progress, weights)
        return cls(privacy_map, built, kind, options.directions, divided, weights)

    @classmethod
    def exponential(cls, privacy_map: PrivacyMap, *, neighbours: int = 16) -> EikonalMechanism:
        """The baseline: the exponential mechanism at half the map's metric, normalised.

        Always private, with no weights to solve for, at three to five times the squared error.
        """
        check_map(privacy_map)
        built = exponential_law(
            privacy_map.plane_levels(), privacy_map.sides, neighbours=neighbours
        )
        return cls(privacy_map, built, "cells", neighbours)

    @property
    def space(self) -> Space:
        """Where secrets live."""
        return self.map.space

    @cached_property
    def metric(self) -> Metric:
        """What is kept."""
        base = MapGeodesic(self.map, self.neighbours, self.places != "cells")
        return base if self.divided == 1.0 else (1.0 / self.divided) * base

    @cached_property
    def guarantee(self) -> Guarantee:
        """The certified promise."""
        if self.places != "cells":
            source = (
                "gradient of the log-probability over all places and reports is at most"
                f" {self.built.gradient_factor:.6f} of eps"
            )
        else:
            source = (
                "log-ratio over all neighbouring cells and reports is at most"
                f" {self.factor:.6f} of the promise"
            )
        keeps = Guarantee(self.metric, Basis.CERTIFIED, source, "exact: integer masses")
        return keeps.on(self.space)

    @property
    def factor(self) -> float:
        """The certified factor: at most this share of the promise is used; never above 1."""
        return self.built.factor

    @cached_property
    def reports(self) -> Raster:
        """Squares around all that can be reported, in the map and in its frame.

        Reports are told at their centres; on continuous places without a frame, the outermost
        ones 7/16 of a cell inside the map.
        """
        raster, frame = self._nodes, self.built.frame
        if self.places == "continuous" and not frame:
            return continuous.inset_reports(raster, self.map)
        (x, y), (width, height) = raster.origin, raster.cell
        return Raster(
            raster.rows + 2 * frame,
            raster.columns + 2 * frame,
            raster.cell,
            (x - frame * width, y - frame * height),
            raster.plane,
        )

    @cached_property
    def _nodes(self) -> Raster:
        """The raster at whose centres the laws of secrets stand."""
        if self.places == "continuous":
            return continuous.nodes_of(self.built, self.map)
        return self.map.raster

    @cached_property
    def lowered(self) -> FloatArray:
        """Mean of (weight in use)/(weight asked for) over the edges at each cell of the map.

        1 (less the reserve and rounding, together below 0.5%) where nothing was lowered; on
        continuous places what lies between counts, too.
        """
        levels = self.map.plane_levels(self.divided)
        if self.places == "continuous":
            return continuous.lowered_between(self.built, self.map, levels)
        asked = edge_integrals(levels, self.map.sides, neighbours=self.neighbours)
        return mean_cell_ratios(self.built.metric_on_map, asked)

    def report(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        padded: bool = False,
    ) -> Points:
        """One report for each secret: the centre of a cell; on continuous places a node.

        Secrets outside the map are taken for its closest place.  The time of a draw grows
        with its distance from the secret; with ``padded=True`` every batch of up to 64
        secrets (7 on continuous places, but for landmarks) takes the same work, whatever the
        secrets and draws; on continuous places it is repeated with probability below 2^-34.
        """
        return self._draws.report(secrets, secure(rng), padded=padded)

    @cached_property
    def _draws(self) -> ReportDraws:
        return ReportDraws(self.map, self.built, self.places, self._nodes, self.reports)

    def distribution(self, place: ArrayLike) -> FloatArray:
        """Probabilities of all reports for one secret, over the cells of :attr:`reports`."""
        coordinates = self.map.checked_places(place)
        if len(coordinates) != 1:
            raise InvalidInput(f"distribution takes one place; got {len(coordinates)}")
        raster = self.map.raster
        if self.places == "continuous":
            law = continuous.laws_at(self.built, self.map, coordinates)[0]
        elif self.places == "bilinear":
            cells, shares = corners(raster, coordinates[0])
            law = shares @ cell_laws(self.built, cells)
        else:
            law = cell_laws(self.built, raster.locate(coordinates))[0]
        return np.asarray(law).reshape(self.reports.shape)

    def centre_laws(self, cells: NDArray[np.intp]) -> FloatArray:
        """(n, reports) laws of the centres of cells; those of the cells, on bilinear places too."""
        if self.places != "continuous":
            return cell_laws(self.built, cells)
        return continuous.laws_at(self.built, self.map, self.map.raster.centres()[cells])

    def mse(self, prior: ArrayLike | None = None, *, remap: Remap | None = None) -> float:
        """Expected squared error in square metres of the plane.

        Secrets are at cell centres; on continuous places they are spread evenly over their cells.
        `prior` is over the map's cells (uniform by default) and need not be normalised;
        `remap` is applied to the reports first.
        """
        weights = self.map.normalised_prior(prior)
        places = self.reports.centres()
        reports = places
        if remap is not None:
            reports = np.asarray(remap(Points(places, self.map.plane)).coordinates)
        if self.places == "continuous":
            return continuous.mean_square(self.built, self.map, weights, reports)
        return on_cells.mean_square(self.built, weights, places, reports)

    def posterior_mean(self, prior: ArrayLike | None = None) -> Remap:
        """The Bayesian remap for squared error: each report to the posterior mean place.

        ``mechanism >> mechanism.posterior_mean(prior)`` keeps the guarantee whatever the prior.
        """
        weights, places = self.map.normalised_prior(prior), self.reports.centres()
        if self.places == "continuous":
            means = continuous.mean_places(self.built, self.map, weights, places)
        else:
            means = on_cells.mean_places(self.built, weights, places)
        raster, line = self.reports, self.map.one_dimensional

        def remap(reports: Points) -> Points:
            moved = means[raster.locate(self.map.on_raster(reports.coordinates))]
            moved = moved[:, :1].copy() if line else moved
            return Points.trusted(moved, reports.space, reproducible=reports.reproducible)

        return remap

    @property
    def recommended(self) -> Remapped:
        """The mechanism to use: followed by its remap, for the prior given or a uniform one."""
        return self >> self.posterior_mean(self.prior)

    def account(self) -> str:
        """Which law this is and why, what a remap gains, and whether a smoother map would help."""
        return account(self)

    def _repr_html_(self) -> str:
        return self.map._repr_html_() + self.guarantee._repr_html_()

    def save(self, path: str | Path) -> None:
        """Write map, weights, sums and certificate to one file (npz, no pickle)."""
        save_artefact(path, EIKONAL, *law_entries(self, self.built, self.places))

    @classmethod
    def from_artefact(cls, saved: Artefact) -> Self:
        """The mechanism of a file that was read already, certified anew from its numbers."""
        mechanism = cls(*saved_law(saved))
        claim = "factor" if mechanism.places == "cells" else "gradient_factor"
        check_claims(saved, mechanism, mechanism.factor, claim)
        return mechanism

    def recertify(self) -> float:
        """Compute sums and certificate again from the numbers alone; the factor found."""
        return recertified(self.map, self.built, self.places, self.divided).factor
