"""What ``whereish build map`` is made from: grids, tracts, zones and the built-in example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whereish.data.density_maps import (
    PER_CELL,
    GridReading,
    LevelFormula,
    densities_of_grid,
    levels_of,
)
from whereish.data.grids import map_from_zones, read_tracts, tract_region, tract_values
from whereish.data.philadelphia import UNIT_M, philadelphia_density
from whereish.data.rasters import GRID_SUFFIXES
from whereish.data.systems import outline
from whereish.data.warp import MOST_PLACES, Warped
from whereish.errors import InvalidInput
from whereish.mechanisms.maps.options import check_map_size
from whereish.mechanisms.wanted_level import wanted_level
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.geodesic.graph_metric import LARGEST_MAP
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import seem_degrees
from whereish.space.raster import Raster
from whereish.units import Epsilon, per_unit

__all__ = ["Asked", "sourced_map"]


@dataclass(frozen=True, kw_only=True)
class Asked(GridReading, LevelFormula):
    """The options of the command: how densities are read, and what is made of them."""

    column: str | None = None
    layer: str | None = None
    default: Epsilon | None = None
    supersample: int = 1
    cells: int = 200

    def __post_init__(self) -> None:
        if self.per is not None:
            per_unit(self.per)
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise InvalidInput(f"low must be at most high; got {self.low:g} and {self.high:g}")

    def check_size(self, rows: int, columns: int) -> None:
        """Refuse, before any is looked up, more cells than a map may have."""
        check_map_size(rows * self.supersample, columns * self.supersample)


def sourced_map(source: str, asked: Asked) -> tuple[PrivacyMap, str]:
    """The map of a source, and a sentence about what was read."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".geojson", ".json") and asked.column is None:
        return _zones(path, asked)
    if source == "philadelphia":
        density, raster = philadelphia_density(asked.cells)
        warped = Warped(density * asked.factor, raster, "philadelphia was made from its ZIP codes")
        return _levels(warped, asked if asked.per else _per_paper_unit(asked))
    if suffix in GRID_SUFFIXES:
        most = LARGEST_MAP if asked.cell is None else MOST_PLACES
        warped = densities_of_grid(path, asked, most_cells=most, check_size=asked.check_size)
        made = _levels(warped, asked)
        if made[0].plane.crs is None:
            _refuse_degrees(made[0])
        return made
    return _levels(_tracts(path, asked), asked)


def _per_paper_unit(asked: Asked) -> Asked:
    """The formula per unit of the built-in patch's paper, said per km."""
    times = per_unit("km") / UNIT_M
    low, high = (None if end is None else times * end for end in (asked.low, asked.high))
    return replace(
        asked, slope=times * asked.slope, offset=times * asked.offset, low=low, high=high, per="km"
    )


def _levels(warped: Warped, asked: Asked) -> tuple[PrivacyMap, str]:
    per, unit = asked.unit, asked.density_unit
    made = levels_of(warped, asked)
    low, high = (level * per_unit(per) for level in (made.values.min(), made.values.max()))
    counted = asked.formula_unit or ("people/km2" if unit == PER_CELL else unit)
    said = f"{warped.said}; d in {counted} gives levels from {low:.4g} to {high:.4g} per {per}"
    return made, said


def _refuse_degrees(privacy_map: PrivacyMap) -> None:
    """A grid file that says no coordinate system may be in degrees, and is then no map."""
    box = privacy_map.raster.box
    corners = [[box.x_low, box.y_low], [box.x_high, box.y_high]]
    nats = float(privacy_map.values.max()) * (box.width + box.height)
    if seem_degrees(corners, nats):
        raise InvalidInput(
            "this grid seems to be in degrees, but states no coordinate system: say so with"
            " --grid-crs EPSG:4326, or name the one it is in (a map of so small a place in metres"
            " can be built in Python, with PrivacyMap)"
        )


def _raster(plane: Plane, asked: Asked) -> Raster:
    if plane.region is None or asked.cell is None:
        raise InvalidInput("tracts and zones need --cell; zones need --region, too")
    corners = plane.from_degrees(*outline(plane.region)).coordinates
    raster = Raster.over(Box(*corners.min(axis=0), *corners.max(axis=0)), asked.cell, plane)
    asked.check_size(*raster.shape)
    return raster


def _plane(crs: str | None, region: Box) -> Plane:
    return Plane.over(region) if crs is None else Plane.projected(crs, region)


def _zones(source: Path, asked: Asked) -> tuple[PrivacyMap, str]:
    if asked.default is None:
        raise InvalidInput("zones need --default, the level outside all of them")
    if not source.is_file():
        raise InvalidInput(f"the zones {source.name} are not a file")
    if asked.region is None:
        raise InvalidInput("zones need --region, where secrets may be: they do not fill it")
    raster = _raster(_plane(asked.crs, asked.region), asked)
    made = map_from_zones(
        source, raster, default=asked.default, of_error=lambda error: wanted_level(mean_error=error)
    )
    return made, f"{source.name}: zones on {raster.plane.description}"


def _tracts(path: Path, asked: Asked) -> Warped:
    if asked.column is None or not path.is_file():
        raise InvalidInput(
            f"a source must be a grid ({', '.join(GRID_SUFFIXES)}), zones (.geojson) or tracts: a"
            " file that GDAL reads, with --column, its densities"
        )
    factor = asked.factor
    if asked.density_unit == PER_CELL:
        raise InvalidInput("tracts must have densities; divide counts by the areas first")
    if asked.cell is None:
        raise InvalidInput("tracts need --cell, the side of the map's cells, as '500 m'")
    plane = None if asked.region is None else _plane(asked.crs, asked.region)
    raster = None if plane is None else _raster(plane, asked)  # refused before the file is read
    frame: Any = read_tracts(path, layer=asked.layer)
    if raster is None:
        raster = _raster(_plane(asked.crs, tract_region(frame)), asked)
    values = tract_values(frame, raster, column=asked.column) * factor
    return Warped(values, raster, f"{path.name}: tracts on {raster.plane.description}")
