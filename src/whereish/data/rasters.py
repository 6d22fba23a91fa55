"""Grids in files: their numbers, their cells and the coordinate system that they state.

GeoTIFF (also cloud-optimised), ERDAS (.img) and .bil are read by GDAL (rasterio, extra `geo`),
which knows pixels that are points, rows from the south and marks of missing data.  ESRI ASCII
grids need no extra; their system is in the file NAME.prj beside them.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.data.systems import System, outline, prj_system
from whereish.errors import InvalidInput, MissingExtra
from whereish.space.box import Box
from whereish.units import number, whole, whole_number

__all__ = ["GRID_SUFFIXES", "Declared", "Grid", "no_overlap", "read_grid"]

_DRIVERS = {".tif": "GTiff", ".tiff": "GTiff", ".img": "HFA", ".bil": "EHdr"}
GRID_SUFFIXES = (".asc", *_DRIVERS)
_MOST_READ = 2**26
"""Cells of a text file that are parsed to cut a region out of it: half a gigabyte."""
_BORDER = 3
"""Cells read around a region, for what is interpolated at its border."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Numbers on the cells of a file, NaN where it has none: (rows, columns).

    The corner of cell (row, column) next to cell (0, 0) is at

        x = origin[0] + column · cell[0] + row · skew[0],
        y = origin[1] + column · skew[1] + row · cell[1]

    in the units of `system`.  Rows run from south to north and columns from west to east,
    unless the grid is turned (`skew`).
    """

    values: FloatArray
    cell: tuple[float, float]
    origin: tuple[float, float]
    skew: tuple[float, float] = (0.0, 0.0)
    system: System | None = None
    name: str = "the grid"
    band: int = 1
    bands: int = 1

    @property
    def upright(self) -> bool:
        """Whether rows run due east in the grid's system, and columns due north."""
        return self.skew == (0.0, 0.0)

    @property
    def said(self) -> str:
        """The grid's name and its system, for messages."""
        system = "no stated coordinate system" if self.system is None else str(self.system)
        band = f", band {self.band} of {self.bands}" if self.bands > 1 else ""
        return f"{self.name} (in {system}{band})"

    def places(self, columns: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x, y in the grid's system of positions counted in cells, (0, 0) its first corner."""
        (x, y), (width, height), (down, across) = self.origin, self.cell, self.skew
        return x + columns * width + rows * down, y + columns * across + rows * height

    def corner(self, column: float, row: float) -> tuple[float, float]:
        """x, y of one position counted in cells."""
        x, y = self.places(np.array([column]), np.array([row]))
        return float(x[0]), float(y[0])

    def positions(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The inverse of :meth:`places`; longitudes a turn apart are one."""
        (x0, y0), (width, height), (down, across) = self.origin, self.cell, self.skew
        if self.system is not None and self.system.turn is not None:
            middle, _ = self.corner(self.shape[1] / 2, self.shape[0] / 2)
            x = middle + np.remainder(x - middle + self.system.turn / 2, self.system.turn)
            x = x - self.system.turn / 2
        if self.upright:
            return (x - x0) / width, (y - y0) / height
        determinant = width * height - down * across
        dx, dy = x - x0, y - y0
        return (height * dx - down * dy) / determinant, (width * dy - across * dx) / determinant

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    def cut(self, rows: slice, columns: slice) -> Grid:
        """Some rows and columns; those beyond the last go on at the first."""
        which = np.arange(columns.start, columns.stop) % self.shape[1]
        origin = self.corner(columns.start, rows.start)
        return replace(self, values=self.values[rows][:, which], origin=origin)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"Grid({rows} x {columns}, {self.said})"


class Declared(NamedTuple):
    """What was said about the system of a file."""

    required: System | None
    assumed: System | None
    plane: str | None

    @classmethod
    def of(cls, crs: str | None, plane: str | None = None) -> Declared:
        """The system that the file must have, and the plane's, assumed where it states none."""
        required, assumed = (None if one is None else System.of(one) for one in (crs, plane))
        return cls(required, assumed, plane)

    def beside(self, path: Path, stated: System | None) -> System | None:
        """The system of a file that states `stated`, which must not be contradicted."""
        if stated is None:
            return self.required or self.assumed
        if self.required is not None and not stated.same(self.required):
            raise InvalidInput(
                f"{path.name} states the coordinate system {stated}, but {self.required} was"
                " declared for it: leave the declaration out, or mend the file"
            )
        return stated


def read_grid(
    path: str | Path,
    *,
    band: int | None = None,
    region: Box | None = None,
    crs: Declared | str | None = None,
    most_cells: int | None = None,
) -> Grid:
    """Read a GeoTIFF (.tif), an ESRI ASCII grid (.asc), .img or .bil.

    Parameters
    ----------
    band
        Which one of several; the first by default.
    region
        Read only the part that meets this box of degrees, and a few cells around it.
    crs
        The coordinate system that the file must have; one that states none is taken to have it.
    most_cells
        Refuse more, before they are read.

    Raises
    ------
    InvalidInput
        The file cannot be read as a grid, states a coordinate system other than `crs`, has no
        such band, does not meet the region, or has too many cells.
    MissingExtra
        For all but .asc, where rasterio is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"the grid {path.name} is not a file")
    suffix = path.suffix.lower()
    if suffix not in GRID_SUFFIXES:
        raise InvalidInput(f"a grid must end in {', '.join(GRID_SUFFIXES)}; got {path.name}")
    chosen = 1 if band is None else whole(band, "band")
    declared = crs if isinstance(crs, Declared) else Declared.of(crs)
    if suffix == ".asc":
        _check_band(path, chosen, 1)
        grid = _read_ascii(path, most_cells if region is None else _MOST_READ)
        grid = replace(grid, system=declared.beside(path, prj_system(path)))
        if region is not None:
            rows, columns = _part(grid, region, declared.plane)
            _check_cells(path, rows.stop - rows.start, columns.stop - columns.start, most_cells)
            grid = grid.cut(rows, columns)
        return grid
    return _read_gdal(path, chosen, region, declared, most_cells)


def _check_band(path: Path, band: int, bands: int) -> None:
    if not 1 <= band <= bands:
        raise InvalidInput(f"band must be from 1 to {bands}, the bands of {path.name}; got {band}")


def _check_cells(path: Path, rows: int, columns: int, most: int | None) -> None:
    if most is not None and rows * columns > most:
        raise InvalidInput(
            f"the grid {path.name} must have at most {most:,} cells; it has {rows} x {columns}:"
            " declare the region that matters, or make its cells larger"
        )


def no_overlap(grid: Grid, crs: str | None) -> InvalidInput:
    """The refusal of a grid that is not where the region is."""
    plane = "" if crs is None else f"; the plane is to be {crs}"
    return InvalidInput(
        f"{grid.said} does not overlap the declared region (degrees, EPSG:4326{plane}): are"
        " longitude and latitude of the region swapped, or is the grid's coordinate system another"
        " one than it says?"
    )


def _part(grid: Grid, region: Box, crs: str | None) -> tuple[slice, slice]:
    """Rows and columns of a grid around a region of degrees."""
    shape = grid.shape
    if grid.system is None:
        raise InvalidInput(
            f"{grid.name} states no coordinate system, so that a region of degrees has no place in"
            " it: name its system (crs)"
        )
    columns, rows = grid.positions(*grid.system.from_degrees(*outline(region)))
    if _goes_round(grid):
        # A region may cross the grid's seam: one piece, that ends beyond the last column.
        middle = (region.x_low + region.x_high) / 2, (region.y_low + region.y_high) / 2
        (at,), _ = grid.positions(*grid.system.from_degrees(*np.array(middle)[:, None]))
        columns = at + np.remainder(columns - at + shape[1] / 2, shape[1]) - shape[1] / 2
    known = np.isfinite(columns) & np.isfinite(rows)
    parts = []
    for at, count in ((rows[known], shape[0]), (columns[known], shape[1])):
        endless = count == shape[1] and _goes_round(grid)
        if not at.size or not (endless or (at.min() < count and at.max() > 0)):
            raise no_overlap(grid, crs)
        first, last = math.floor(at.min()) - _BORDER, math.ceil(at.max()) + _BORDER
        parts.append(slice(first, last) if endless else slice(max(first, 0), min(last, count)))
    return parts[0], parts[1]


def _goes_round(grid: Grid) -> bool:
    """Whether the columns of an upright grid of degrees make a full turn."""
    if grid.system is None or grid.system.turn is None or not grid.upright:
        return False
    return abs(abs(grid.cell[0]) * grid.shape[1] / grid.system.turn - 1) < 1e-6


def _read_ascii(path: Path, most: int | None) -> Grid:
    header: dict[str, str] = {}
    try:
        with path.open(encoding="ascii") as file:
            for line in file:
                name, *rest = line.split()
                if len(rest) != 1 or not name[0].isalpha() or name.lower() == "nan":
                    break
                header[name.lower()] = rest[0]
        rows, columns = whole_number(header["nrows"]), whole_number(header["ncols"])
        _check_cells(path, rows, columns, most)
        body = np.loadtxt(path, skiprows=len(header), ndmin=2).reshape(rows, columns)
        side = number(header["cellsize"])
        half = {"corner": 0.0, "center": side / 2}
        (x_at,) = [name for name in header if name.startswith("xll")]
        (y_at,) = [name for name in header if name.startswith("yll")]
        origin = (number(header[x_at]) - half[x_at[3:]], number(header[y_at]) - half[y_at[3:]])
        nodata = header.get("nodata_value")
        marked = nodata is not None and nodata.lower() not in ("nan", "-nan", "+nan")
        values = _without(body, number(nodata) if marked and nodata else None)
    except InvalidInput:
        raise
    except (KeyError, ValueError):
        raise InvalidInput(f"{path.name} is not an ESRI ASCII grid") from None
    return Grid(values[::-1].copy(), (side, side), origin, name=path.name)


def _without(values: NDArray[Any], mark: float | None) -> FloatArray:
    """Doubles, NaN where the file's mark of missing data stands.

    Writers print the mark of single-precision data with more or with fewer digits than it
    has, so a value that is the mark in single precision is one too.
    """
    out = np.asarray(values, np.float64)
    if mark is None or math.isnan(mark):
        return out
    with np.errstate(over="ignore"):
        missing = (out == mark) | (out.astype(np.float32) == np.float32(mark))
    return np.where(missing, np.nan, out)


def _read_gdal(
    path: Path, band: int, region: Box | None, declared: Declared, most: int | None
) -> Grid:
    try:
        import rasterio
        from rasterio.errors import NotGeoreferencedWarning, RasterioError
    except ImportError:
        raise MissingExtra("rasterio", "geo") from None
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotGeoreferencedWarning)
        try:
            # One driver: what a file says inside must not send GDAL to another file or host.
            with rasterio.open(path, driver=_DRIVERS[path.suffix.lower()]) as source:
                return _from_gdal(path, source, band, region, declared, most)
        except NotGeoreferencedWarning:
            raise InvalidInput(
                f"{path.name} must say where its cells are: it has no geotransform (pixel scale and"
                " tie point)"
            ) from None
        except (RasterioError, OSError):
            raise InvalidInput(f"{path.name} cannot be read as a grid: is it damaged?") from None


def _from_gdal(
    path: Path,
    source: Any,
    band: int,
    region: Box | None,
    declared: Declared,
    most: int | None,
) -> Grid:
    from rasterio.windows import Window

    _check_band(path, band, source.count)
    if np.dtype(source.dtypes[band - 1]).kind not in "iuf":
        raise InvalidInput(f"band {band} of {path.name} must hold plain numbers, the densities")
    t = source.transform
    stated = None if source.crs is None else System.stated(source.crs.to_wkt())
    shape = (source.height, source.width)
    whole_grid = Grid(
        np.broadcast_to(np.float64(0.0), shape),
        (t.a, t.e),
        (t.c, t.f),
        (t.b, t.d),
        declared.beside(path, stated),
        path.name,
        band,
        source.count,
    )
    rows, columns = slice(0, shape[0]), slice(0, shape[1])
    if region is not None:
        rows, columns = _part(whole_grid, region, declared.plane)
    high, wide = rows.stop - rows.start, columns.stop - columns.start
    _check_cells(path, high, wide, most)
    # Columns beyond the last of a grid around the Earth go on at the first.
    ends = sorted(
        {columns.start, columns.stop, *(k for k in (0, shape[1]) if k in _inside(columns))}
    )
    parts = [
        source.read(band, window=Window(low % shape[1], rows.start, end - low, high), masked=True)
        for low, end in itertools.pairwise(ends)
    ]
    raw = np.concatenate([np.ma.getdata(part) for part in parts], axis=1)
    masked = np.concatenate([np.ma.getmaskarray(part) for part in parts], axis=1)
    values = np.where(masked, np.nan, _without(raw, source.nodatavals[band - 1]))
    scale, offset = source.scales[band - 1], source.offsets[band - 1]
    if (scale, offset) != (1.0, 0.0):
        values = values * scale + offset
    origin = whole_grid.corner(columns.start, rows.start)
    return _turned(replace(whole_grid, values=values, origin=origin))


def _inside(part: slice) -> range:
    return range(part.start + 1, part.stop)


def _turned(grid: Grid) -> Grid:
    """The same grid with its rows from the south and its columns from the west."""
    (width, height), (down, across) = grid.cell, grid.skew
    rows, columns = grid.shape
    if height < 0 or (height == 0 and down < 0):
        grid = replace(
            grid,
            values=grid.values[::-1],
            origin=grid.corner(0, rows),
            cell=(width, -height),
            skew=(-down, across),
        )
        (width, height), (down, across) = grid.cell, grid.skew
    if width < 0 or (width == 0 and across < 0):
        grid = replace(
            grid,
            values=grid.values[:, ::-1],
            origin=grid.corner(columns, 0),
            cell=(-width, height),
            skew=(down, -across),
        )
    # -0.0 is no turn.
    down, across = grid.skew
    return replace(grid, values=np.ascontiguousarray(grid.values), skew=(down + 0.0, across + 0.0))
