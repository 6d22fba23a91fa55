"""Remaps of reports to public places: sites, roads, H3 cells.

Each is a deterministic map of degrees that sees no secret, so the guarantee stands.
The public set must not be made from the data that it guards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, import_extra
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere

__all__ = ["H3Cells", "PlaceMap", "Roads", "ToSites", "as_place_map"]

PlaceMap: TypeAlias = Callable[[FloatArray], FloatArray]
"""From (n, 2) reports in degrees to (n, 2) public places in degrees."""


class _ToDegrees(Protocol):
    def to_degrees(self, points: Any) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class ToSites:
    """To the closest of finitely many sites, by great-circle distance."""

    sites: Sites

    @cached_property
    def _on_globe(self) -> Sites:
        if isinstance(self.sites.points.space, Sphere):
            return self.sites
        space: _ToDegrees = self.sites.points.space  # type: ignore[assignment]
        return Sites(Sphere().from_degrees(*space.to_degrees(self.sites.points)))

    def __call__(self, degrees: FloatArray) -> FloatArray:
        """The closest sites."""
        globe = self._on_globe
        return globe.coordinates[globe.nearest(degrees)]


@dataclass(frozen=True)
class H3Cells:
    """To the centre of the H3 cell (`resolution` 0 to 15) that holds the report."""

    resolution: int

    def __post_init__(self) -> None:
        if not isinstance(self.resolution, int) or not 0 <= self.resolution <= 15:
            raise InvalidInput(f"an H3 resolution must be 0 to 15; got {self.resolution!r}")

    def __call__(self, degrees: FloatArray) -> FloatArray:
        """The centres."""
        h3 = import_extra("h3", "geo")
        centres = [
            h3.cell_to_latlng(h3.latlng_to_cell(lat, lon, self.resolution))
            for lon, lat in degrees.tolist()
        ]
        return np.asarray(centres, float).reshape(-1, 2)[:, ::-1]


@dataclass(frozen=True, eq=False)
class Roads:
    """To the closest point of public lines (shapely geometries in degrees).

    Closeness is measured in degrees with longitudes shrunk by the cosine of `latitude`,
    a public latitude of the area: right to within a per cent across a city.
    """

    lines: Any
    latitude: float

    @cached_property
    def _tree(self) -> Any:
        shapely = import_extra("shapely", "geo")
        geometries = np.asarray(self.lines, dtype=object)
        kinds = set(shapely.get_type_id(geometries).tolist())
        if geometries.size == 0 or not kinds <= {1, 5}:
            raise InvalidInput("roads must be at least one line, and nothing but lines")
        return shapely.STRtree(shapely.transform(geometries, lambda xy: xy * self._shrink))

    @property
    def _shrink(self) -> FloatArray:
        return np.array([np.cos(np.radians(self.latitude)), 1.0])

    def __call__(self, degrees: FloatArray) -> FloatArray:
        """The closest points."""
        import shapely

        tree = self._tree
        points = shapely.points(degrees * self._shrink)
        lines = tree.geometries[tree.nearest(points)]
        feet = shapely.line_interpolate_point(lines, shapely.line_locate_point(lines, points))
        return np.asarray(shapely.get_coordinates(feet) / self._shrink)


def as_place_map(remap: PlaceMap | Sites | None) -> PlaceMap | None:
    """Sites mean the closest of them; a function of degrees stands for itself."""
    if remap is None:
        return None
    if isinstance(remap, Sites):
        return ToSites(remap)
    if not callable(remap):
        raise InvalidInput(
            "remap must be Sites, or a function from (n, 2) degrees to (n, 2) degrees; got"
            f" {type(remap).__name__}"
        )
    return remap
