"""Reports of a map's law: one place in plain numbers, by the same words as a batch of one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.mechanisms.maps import continuous
from whereish.mechanisms.maps.options import Places
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.randomness import Randomness
from whereish.sampling.bilinear import rounded
from whereish.sampling.eikonal import LawSampler
from whereish.sampling.spline import SplineSampler
from whereish.sampling.spline_table import SplineTableSampler
from whereish.sampling.table import TableSampler
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.space.box import Box
from whereish.space.points import Points, one_place
from whereish.space.raster import Raster

__all__ = ["ReportDraws"]

_FINITE = (sys.float_info.max, sys.float_info.max)


@dataclass(frozen=True, eq=False)
class ReportDraws:
    """Draws reports of a law; `nodes` is where laws stand, `reports` where they are told."""

    map: PrivacyMap
    built: BuiltLaw
    places: Places
    nodes: Raster
    reports: Raster

    def report(self, secrets: Points | ArrayLike, source: Randomness, *, padded: bool) -> Points:
        """One report for each secret."""
        place = self._plain_place(secrets)
        if place is None or padded or self.places == "bilinear":
            coordinates = self.map.checked_places(secrets)
            if len(coordinates) != 1 or padded or self.places == "bilinear":
                return self.batch(coordinates, source, padded=padded)
            x, y = coordinates[0].tolist()
            place = x, y
        row, column = self._drawn_for(place, source)
        report = row * self.reports.columns + column
        return self._as_told(self._told[report : report + 1].copy(), source)

    def batch(self, coordinates: FloatArray, source: Randomness, *, padded: bool) -> Points:
        """Reports of checked places, however many."""
        raster = self.map.raster
        if self.places == "continuous":
            coordinates = continuous.closest_places(self.map, coordinates)
            row, column = self._spline.draw(coordinates, source, padded=padded)
        else:
            cells = raster.locate(coordinates)
            if self.places == "bilinear":
                cells = rounded(raster, coordinates, source)
            row, column = self.sampler.draw(self.built.secrets[cells], source, padded=padded)
        return self._as_told(self._told[row * self.reports.columns + column], source)

    @cached_property
    def sampler(self) -> LawSampler | TableSampler:
        """Draws of the laws of cells."""
        table = self.built.table
        return LawSampler(self.built.law) if table is None else TableSampler(table)

    @cached_property
    def _spline(self) -> SplineSampler | SplineTableSampler:
        table = self.built.table
        if table is None:
            return SplineSampler(self.built, self.nodes)
        return SplineTableSampler(table, self.nodes, self.built.acceptance)

    @cached_property
    def _box(self) -> Box:
        return self.map.raster.box

    @cached_property
    def _told(self) -> FloatArray:
        """Where each report is told to be."""
        return self.reports.centres()

    def _plain_place(self, secrets: Points | ArrayLike) -> tuple[float, float] | None:
        """The one place that secrets plainly are, on a plane where every place is allowed."""
        if self.map.plane.crs is not None or self.map.one_dimensional:
            return None
        return one_place(secrets, _FINITE)

    def _drawn_for(self, place: tuple[float, float], source: Randomness) -> tuple[int, int]:
        """Row and column of one report, by the words that a batch of one takes."""
        raster = self.map.raster
        if self.places == "continuous":
            return self._spline.draw_one(continuous.closest_place(self._box, place), source)
        (x, y), (width, height) = raster.origin, raster.cell
        column = int(min(max((place[0] - x) / width, 0.0), raster.columns - 1.0))
        row = int(min(max((place[1] - y) / height, 0.0), raster.rows - 1.0))
        secret = int(self.built.secrets[row * raster.columns + column])
        return self.sampler.draw_one(secret, source)

    def _as_told(self, centres: FloatArray, source: Randomness) -> Points:
        if self.map.one_dimensional:
            centres = centres[:, :1].copy()
        return Points.trusted(centres, self.map.space, reproducible=source.reproducible)
