"""What the eikonal mechanism needs on continuous places: laws, errors and means between nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.sampling.spline_coin import nine_around
from whereish.solvers.eikonal.between import geometric_laws, report_blocks
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.eikonal.certify import mean_cell_ratios
from whereish.solvers.splines.blocks import Block
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.splines.means import Nodes, posterior_moments, squared_distances
from whereish.solvers.tables.blocks import table_blocks
from whereish.space.box import Box
from whereish.space.raster import Raster

__all__ = [
    "InsetRaster",
    "closest_place",
    "closest_places",
    "inset_reports",
    "laws_at",
    "lowered_between",
    "mean_places",
    "mean_square",
    "nodes_of",
]

_INSET = 7 / 16
"""Of a cell: how far inside the map reports are told at least.  Nearly half, as centres of cells
are, but still in the square of their node, so that a report tells its node."""


@dataclass(frozen=True)
class InsetRaster(Raster):
    """Squares around nodes, which are told no farther out than `low` and `high` (x, y).

    A law without a frame has much mass at the outermost nodes, which stand for all that is beyond.
    These nodes lie on the border of the map or near it, farther out than nearly all the secrets
    that are reported there; a report is its node under whatever name, so it is told farther in.
    """

    low: tuple[float, float] = (-np.inf, -np.inf)
    high: tuple[float, float] = (np.inf, np.inf)

    def centres(self) -> FloatArray:
        """Where each report is told to be, in flat order."""
        return np.clip(super().centres(), self.low, self.high)


def inset_reports(nodes: Raster, privacy_map: PrivacyMap) -> InsetRaster:
    """The reports of a law without a frame."""
    raster, box = privacy_map.raster, privacy_map.raster.box
    width, height = (
        _INSET * side if count > 1 else 0.0
        for side, count in zip(raster.cell, (raster.columns, raster.rows), strict=True)
    )
    return InsetRaster(
        nodes.rows,
        nodes.columns,
        nodes.cell,
        nodes.origin,
        nodes.plane,
        (box.x_low + width, box.y_low + height),
        (box.x_high - width, box.y_high - height),
    )


def closest_places(privacy_map: PrivacyMap, coordinates: FloatArray) -> FloatArray:
    """The places themselves, and for those outside the map its closest ones."""
    box = privacy_map.raster.box
    return np.clip(coordinates, (box.x_low, box.y_low), (box.x_high, box.y_high))


def closest_place(box: Box, place: tuple[float, float]) -> tuple[float, float]:
    """The place itself, or the closest one in a box."""
    return min(max(place[0], box.x_low), box.x_high), min(max(place[1], box.y_low), box.y_high)


def laws_at(built: BuiltLaw, privacy_map: PrivacyMap, coordinates: FloatArray) -> FloatArray:
    """(n, reports) laws of places."""
    nodes = nodes_of(built, privacy_map)
    nine = nine_around(nodes, closest_places(privacy_map, coordinates))
    return geometric_laws(built, nine.cells(nodes.columns), nine.weights)


def lowered_between(built: BuiltLaw, privacy_map: PrivacyMap, levels: FloatArray) -> FloatArray:
    """Mean of (weight in use)/(integral of the levels) over the edges around each cell."""
    metric = built.metric_on_map
    lattice = lattice_of(levels.shape, built.used.shape)
    sides = lattice.sides(privacy_map.sides, levels.shape)
    asked = lattice.asked(lattice.basis(levels), sides, metric.neighbours)
    return lattice.over_cells(mean_cell_ratios(metric, asked), privacy_map.shape)


def mean_square(
    built: BuiltLaw, privacy_map: PrivacyMap, prior: FloatArray, reports: FloatArray
) -> float:
    """Expected squared error, secrets spread evenly over their cells."""
    grid = _grid(built, privacy_map)
    errors, _ = squared_distances(_blocks(built), grid, reports)
    return float((_shares(built, privacy_map, prior) * errors).sum())


def mean_places(
    built: BuiltLaw, privacy_map: PrivacyMap, prior: FloatArray, reports: FloatArray
) -> FloatArray:
    """The posterior mean place of each report; reports that nobody makes stay where they are."""
    grid = _grid(built, privacy_map)
    _, masses = squared_distances(_blocks(built), grid, reports)
    shares = _shares(built, privacy_map, prior)
    moments = posterior_moments(_blocks(built), grid, shares, masses, len(reports))
    mass = moments[:, :1]
    return np.where(mass > 0, moments[:, 1:] / np.maximum(mass, 1e-300), reports)


def nodes_of(built: BuiltLaw, privacy_map: PrivacyMap) -> Raster:
    """The raster at whose centres the laws of places stand."""
    return lattice_of(privacy_map.shape, built.used.shape).raster(privacy_map.raster)


def _blocks(built: BuiltLaw) -> Iterator[tuple[IntArray, Block]]:
    """The laws at the nodes, 64 reports at a time."""
    return report_blocks(built) if built.table is None else table_blocks(built.table)


def _shares(built: BuiltLaw, privacy_map: PrivacyMap, prior: FloatArray) -> FloatArray:
    """(nodes, 4) what the quarters around nodes have of a prior over the cells."""
    lattice = lattice_of(privacy_map.shape, built.used.shape)
    return lattice.shares(prior.reshape(privacy_map.shape))


def _grid(built: BuiltLaw, privacy_map: PrivacyMap) -> Nodes:
    nodes = nodes_of(built, privacy_map)
    width, height = nodes.cell
    return Nodes(nodes.shape, (height, width), nodes.centres())
