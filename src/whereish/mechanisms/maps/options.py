"""What was asked of an eikonal mechanism, checked, and the law that is solved for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import stencil_factor
from whereish.solvers.eikonal.bilinear.places import law_on_places
from whereish.solvers.eikonal.cells import BuiltLaw, law_on_cells
from whereish.solvers.eikonal.narrow import law_on_places_of
from whereish.solvers.geodesic.graph_metric import LARGEST_MAP
from whereish.threads import one_blas_thread

__all__ = [
    "BuildKeywords",
    "EikonalOptions",
    "Places",
    "check_map",
    "check_map_size",
    "check_places",
    "checked_neighbours",
    "levels_in_use",
]

Places = Literal["cells", "continuous", "bilinear"]
"""What a secret is: a cell, or a place, between cells by a geometric mean of laws or (as before) by
rounding to one of four centres at random."""


class BuildKeywords(TypedDict, total=False):
    """What :meth:`EikonalMechanism.build` takes besides the map and a query."""

    places: Places | None
    neighbours: int | None
    frame: int | None
    divide_stencil: bool
    finer: bool
    prior: ArrayLike | None
    progress: Callable[[int, float], None] | None


@dataclass(frozen=True)
class EikonalOptions:
    """How a mechanism is built; see :meth:`EikonalMechanism.build` for each option."""

    places: Places = "continuous"
    neighbours: int | None = None
    frame: int | None = None
    divide_stencil: bool = False
    finer: bool = False

    def __post_init__(self) -> None:
        check_places(self.places)
        checked_neighbours(self.directions)
        frame = self.frame
        if frame is not None and not (isinstance(frame, int) and frame >= 0):
            raise InvalidInput(f"frame must be a number of cells >= 0 or None; got {frame!r}")
        if self.finer and self.places != "continuous":
            raise InvalidInput(f"finer is for continuous places; got places={self.places!r}")

    @property
    def directions(self) -> int:
        """Directions of the stencil."""
        if self.neighbours is not None:
            return self.neighbours
        return 16 if self.places == "cells" else 32

    def solve(
        self,
        privacy_map: PrivacyMap,
        progress: Callable[[int, float], None] | None,
        prior: FloatArray | None = None,
    ) -> tuple[BuiltLaw, float]:
        """The certified law, and the stencil factor by which the map was divided.

        `prior` is normalised, over the cells; laws are compared by it, but for bilinear ones.
        """
        check_map(privacy_map)
        if privacy_map.one_dimensional and self.frame:
            raise InvalidInput("a map along a line takes no frame; leave frame out")
        rows, columns = (count + 2 * (self.frame or 0) for count in privacy_map.shape)
        check_map_size(*((2 * rows, 2 * columns) if self.finer else (rows, columns)))
        levels, divided = levels_in_use(privacy_map, self.directions, self.divide_stencil)
        solvers: dict[str, Callable[..., BuiltLaw]] = {
            "cells": partial(law_on_cells, prior=prior),
            "continuous": partial(law_on_places_of, finer=self.finer, prior=prior),
            "bilinear": law_on_places,
        }
        with one_blas_thread(scipy=False):
            built = solvers[self.places](
                levels,
                privacy_map.sides,
                neighbours=self.directions,
                frame=self.frame,
                progress=progress,
            )
        return built, divided


def check_map(privacy_map: PrivacyMap) -> None:
    """Refuse at once a map that is too large, or none of which is in its declared region."""
    check_map_size(*privacy_map.shape)
    if not privacy_map.plane.in_region(privacy_map.raster.centres()).any():
        raise InvalidInput(
            "at least one cell of a privacy map must lie in the declared region of its plane; none"
            " does: are longitude and latitude of the region swapped, or is the origin in another"
            " coordinate system?"
        )


def check_map_size(rows: int, columns: int) -> None:
    """Refuse a map with more cells than a mechanism can be built for."""
    if rows * columns > LARGEST_MAP:
        raise InvalidInput(
            f"a privacy map must have at most {LARGEST_MAP:,} cells (512 x 512); got"
            f" {rows} x {columns}: make the cells larger, or the region smaller"
        )


def check_places(places: object) -> None:
    """Refuse anything but "cells", "continuous" and "bilinear"."""
    if places not in ("cells", "continuous", "bilinear"):
        raise InvalidInput(f"places must be 'cells', 'continuous' or 'bilinear'; got {places!r}")


def checked_neighbours(neighbours: int) -> int:
    """8, 16 or 32."""
    if neighbours not in (8, 16, 32):
        raise InvalidInput(f"neighbours must be 8, 16 or 32; got {neighbours!r}")
    return neighbours


def levels_in_use(
    privacy_map: PrivacyMap, neighbours: int, divide_stencil: bool
) -> tuple[FloatArray, float]:
    """Levels per metre of the plane, and the stencil factor by which they were divided."""
    divided = 1.0
    if divide_stencil:
        divided = stencil_factor(neighbours, privacy_map.sides, privacy_map.shape)
    return privacy_map.plane_levels(divided), divided
