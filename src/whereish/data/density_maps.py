"""Privacy maps from grids of densities: units, cells without data, and levels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whereish.arrays import FloatArray
from whereish.data.rasters import Declared, Grid, read_grid
from whereish.data.warp import MOST_PLACES, Resampling, Warped, cell_areas_km2, on_plane
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.units import Epsilon, Length

__all__ = [
    "PER_CELL",
    "GridReading",
    "LevelFormula",
    "densities_of_grid",
    "density_factor",
    "levels_of",
    "map_from_grid",
    "unit_factor",
]

_UNIT = re.compile(r"\w+\s*(?:/|\bper\b)\s*(km|m|mi|ha)\s*(2|²|\^2)?", re.ASCII | re.IGNORECASE)
_PER_KM2 = {"km": 1.0, "m": 1e6, "mi": 1 / 1.609344**2, "ha": 100.0}
PER_CELL = "people/cell"


def density_factor(unit: str) -> float:
    """What one of `unit` is in people per square kilometre.

    >>> density_factor("people/km2"), density_factor("people/ha")
    (1.0, 100.0)
    """
    match = _UNIT.fullmatch(unit.strip().replace("²", "2"))
    name = "" if match is None else match.group(1).lower()
    if match is None or (name == "ha") != (match.group(2) is None):
        raise InvalidInput(
            "a density unit must be 'people/km2', 'people/m2', 'people/mi2', 'people/ha' or, for"
            f" the counts of a grid's cells, '{PER_CELL}'; got {unit!r}"
        )
    return _PER_KM2[name]


def map_from_grid(
    source: Grid | str | Path,
    *,
    slope: float,
    offset: float,
    per: str,
    density_unit: str = "people/km2",
    formula_unit: str | None = None,
    low: float | None = None,
    high: float | None = None,
    nodata: Epsilon | str = "refuse",
    crs: str | None = None,
    region: Box | None = None,
    cell: Length | str | None = None,
    resample: Resampling | None = None,
    band: int | None = None,
    grid_crs: str | None = None,
) -> PrivacyMap:
    r"""Levels eps = slope·density + offset per `per`, from a grid of densities in a file.

    Parameters
    ----------
    source
        A GeoTIFF, an ESRI ASCII grid (with its system in NAME.prj), .img or .bil; or a
        :class:`~whereish.data.rasters.Grid`.  It says itself where it is, in any coordinate
        system; what contradicts that is refused.
    density_unit, formula_unit
        What the numbers in the file are, "people/km2", "people/mi2" and the like, or counts
        ("people/cell"), which are divided by the cells' true areas; and what density the formula
        takes: the same by default, people/km2 for counts.
    low, high
        Clip the levels, in the formula's unit.  Nothing is clipped unless asked.
    nodata
        For cells of the region without data: "refuse" them, take the "nearest" cell's density,
        or a level such as "0.4/km".
    crs, region, cell, resample
        The plane, where secrets may be, and the cells: :func:`whereish.data.warp.on_plane`.
    band, grid_crs
        Which band, and the coordinate system of a file that states none.

    Raises
    ------
    InvalidInput
        The grid is not where the region is, has cells without data, or another of its parts is
        not what it must be.
    MissingExtra
        A GeoTIFF, and rasterio (extra `geo`) is not installed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import whereish as wh
    >>> path = Path(tempfile.mkdtemp()) / "density.asc"
    >>> head = "ncols 2\nnrows 2\nxllcorner 500000\nyllcorner 4400000\ncellsize 1000\n"
    >>> _ = path.write_text(head + "0 4000\n1000 16000\n")
    >>> m = wh.map_from_grid(path, slope=1e-4, offset=0.4, per="km", grid_crs="EPSG:32618")
    >>> m.plane.crs, m.values.tolist()
    ('EPSG:32618', [[0.0005, 0.002], [0.0004, 0.0008]])
    """
    reading = GridReading(
        density_unit, formula_unit, crs, region, cell, resample, band, grid_crs=grid_crs
    )
    warped = densities_of_grid(source, reading)
    formula = LevelFormula(slope=slope, offset=offset, per=per, low=low, high=high, nodata=nodata)
    return levels_of(warped, formula)


@dataclass(frozen=True, kw_only=True)
class LevelFormula:
    """How densities become levels; the fields are parameters of :func:`map_from_grid`."""

    slope: float
    offset: float
    per: str | None = None
    low: float | None = None
    high: float | None = None
    nodata: Epsilon | str = "refuse"

    @property
    def unit(self) -> str:
        """The length unit of the levels, km where none is named."""
        return self.per or "km"


def levels_of(warped: Warped, formula: LevelFormula) -> PrivacyMap:
    """The privacy map of densities on a plane, some of which may be missing."""
    missing, nodata = np.isnan(warped.values), formula.nodata
    rule = nodata if nodata in ("refuse", "nearest") else Epsilon.of(nodata)
    density = _nearest(warped) if missing.any() else warped.values
    raster = warped.raster
    if missing.any() and rule == "refuse":
        inside = raster.plane.in_region(raster.centres()).reshape(raster.shape)
        bad = int((missing & inside).sum())
        if bad:
            raise InvalidInput(
                f"{bad:,} of {len(raster):,} cells of the map have no data: declare a region"
                " without them, or say what they get: nodata='nearest' for the density of the"
                " closest cell with data, or a level such as '0.4/km'"
            )
    made = PrivacyMap.from_density(
        density,
        slope=formula.slope,
        offset=formula.offset,
        per=formula.unit,
        low=formula.low,
        high=formula.high,
        cell=raster.cell,
        origin=raster.origin,
        plane=raster.plane,
    )
    if not isinstance(rule, Epsilon) or not missing.any():
        return made
    levels = np.where(missing, rule.per_m, made.values)
    return PrivacyMap(levels, raster.cell, raster.origin, raster.plane)


def _nearest(warped: Warped) -> FloatArray:
    """The densities, with those of the closest cells where they are missing."""
    from scipy.ndimage import distance_transform_edt

    missing = np.isnan(warped.values)
    if missing.all():
        raise InvalidInput("no cell of the grid has data in the region")
    width, height = warped.raster.cell
    _, (rows, columns) = distance_transform_edt(
        missing, sampling=(height, width), return_indices=True
    )
    return np.asarray(warped.values[rows, columns])


@dataclass(frozen=True)
class GridReading:
    """How densities are read from a grid; the fields are parameters of :func:`map_from_grid`."""

    density_unit: str = "people/km2"
    formula_unit: str | None = None
    crs: str | None = None
    region: Box | None = None
    cell: Length | str | None = None
    resample: Resampling | None = None
    band: int | None = None
    grid_crs: str | None = None

    @property
    def factor(self) -> float:
        """By what the source's numbers (counts: per km2) are multiplied for the formula."""
        return unit_factor(self.density_unit, self.formula_unit)


def densities_of_grid(
    source: Grid | str | Path,
    reading: GridReading,
    *,
    most_cells: int = MOST_PLACES,
    check_size: Callable[[int, int], None] = lambda rows, columns: None,
) -> Warped:
    """The densities on a plane's raster, NaN where the grid has none: see `map_from_grid`."""
    factor, crs, region = reading.factor, reading.crs, reading.region
    if isinstance(source, Grid):
        grid = source
    else:
        declared = Declared.of(reading.grid_crs, crs)
        grid = read_grid(
            source, band=reading.band, region=region, crs=declared, most_cells=most_cells
        )
    if _counts(reading.density_unit):
        grid = replace(grid, values=grid.values / cell_areas_km2(grid))
    if factor != 1.0:
        grid = replace(grid, values=grid.values * factor)
    cell, resample = reading.cell, reading.resample
    return on_plane(
        grid, crs=crs, region=region, cell=cell, resample=resample, check_size=check_size
    )


def _counts(unit: str) -> bool:
    return unit.replace(" ", "").lower() == PER_CELL


def unit_factor(density_unit: str, formula_unit: str | None) -> float:
    """By what the source's numbers (counts: per km2) are multiplied for the formula."""
    source = 1.0 if _counts(density_unit) else density_factor(density_unit)
    if formula_unit is None:
        return 1.0
    return source / density_factor(formula_unit)
