"""The formats of tables: one value for each, which is all that the package knows of it.

To add one, see docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from whereish.errors import InvalidInput

__all__ = ["FORMATS", "STATEMENT", "TableFormat", "ending_of", "format_of", "suffixes"]

STATEMENT = "{statement}"
"""In an option of GDAL: where the statement stands, as JSON."""


@dataclass(frozen=True)
class TableFormat:
    """A kind of file."""

    suffixes: tuple[str, ...]
    """The endings of its names."""
    geometry: Literal["none", "optional", "only"]
    """"none": a location is two columns; "optional": or a geometry; "only": the first location is a
    geometry, in WGS84 degrees."""
    carries_statement: bool
    """Whether the file itself holds its guarantee; otherwise that stands beside the file."""
    module: str
    """Which module of this folder has its `open_table` and `write_table`, and perhaps its
    `default_geometry`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What that module is to know: of `text.delimited` the delimiter, of `gdal` the driver and the
    options of its writer, with :data:`STATEMENT` where the statement goes."""
    several_geometries: bool = False
    """Whether further locations may be geometries too, and not the first alone."""
    written: bool = True
    """Whether releases are written in it; others are read alone."""
    runs_formulas: bool = False
    """Whether spreadsheets open it, and take some text for formulas."""
    holds_tracks: bool = False
    """Whether devices record a person's track in it."""

    def load(self) -> Any:
        """The module that reads and writes it."""
        return import_module(f"whereish.publish.formats.{self.module}")


_FOREIGN_MEMBER = f'{{"type": "FeatureCollection", "whereish": {STATEMENT}}}'

FORMATS = (
    TableFormat(
        (".csv", ".csv.gz"), "none", False, "text.delimited", {"delimiter": ","}, runs_formulas=True
    ),
    TableFormat(
        (".tsv", ".tsv.gz"),
        "none",
        False,
        "text.delimited",
        {"delimiter": "\t"},
        runs_formulas=True,
    ),
    TableFormat((".jsonl", ".ndjson"), "none", False, "json_lines"),
    TableFormat((".parquet",), "optional", True, "parquet", several_geometries=True),
    TableFormat((".geoparquet",), "only", True, "parquet", several_geometries=True),
    TableFormat(
        (".gpkg",),
        "only",
        True,
        "gdal",
        {"driver": "GPKG", "dataset_metadata": {"whereish": STATEMENT}},
    ),
    TableFormat(
        (".geojson",),
        "only",
        True,
        "gdal",
        {
            "driver": "GeoJSON",
            "RFC7946": "YES",
            "NATIVE_DATA": _FOREIGN_MEMBER,
            "NATIVE_MEDIA_TYPE": "application/vnd.geo+json",
        },
    ),
    # An index would sort the rows, on disk.
    TableFormat(
        (".fgb",),
        "only",
        True,
        "gdal",
        {"driver": "FlatGeobuf", "SPATIAL_INDEX": "NO", "DESCRIPTION": STATEMENT},
    ),
    TableFormat((".gpx",), "only", True, "gpx", holds_tracks=True),
    # What GDAL reads besides: several files, no place for a statement, or text that it guesses at.
    TableFormat((".shp",), "only", False, "gdal", {"driver": "ESRI Shapefile"}, written=False),
    TableFormat((".kml",), "only", False, "gdal", {"driver": "KML"}, written=False),
    TableFormat((".gml",), "only", False, "gdal", {"driver": "GML"}, written=False),
    TableFormat((".tab", ".mif"), "only", False, "gdal", {"driver": "MapInfo"}, written=False),
)


def suffixes(*, read: bool = False) -> list[str]:
    """All endings in which releases are written; with `read` those that can be read as well."""
    return [suffix for one in FORMATS if read or one.written for suffix in one.suffixes]


def ending_of(path: Path) -> str:
    """The ending that names the format: the longest known one, or the last there is."""
    name = path.name.lower()
    known = [suffix for suffix in suffixes(read=True) if name.endswith(suffix)]
    return max(known, key=len, default=path.suffix)


def format_of(path: Path, what: str | None = None, *, written: bool = False) -> TableFormat:
    """The format that the ending of a name stands for; `what` names the file in the error.

    With `written` it must be one in which releases are written.

    Raises
    ------
    InvalidInput
        If no format has that ending.
    """
    ending = ending_of(path)
    for one in FORMATS:
        if ending in one.suffixes and (one.written or not written):
            return one
    what = f"the file {path.name}" if what is None else what
    known = ", ".join(suffixes(read=not written))
    raise InvalidInput(f"{what} must end in one of {known}; got {ending or 'none'}{_cure(ending)}")


def _cure(ending: str) -> str:
    """What to do with some endings that people have."""
    if ending in (".xls", ".xlsx", ".ods"):
        return ": save the sheet as CSV"
    if ending == ".json":
        return ": one object a line is .jsonl, features are .geojson"
    if ending in (".zip", ".kmz", ".7z"):
        return ": unpack it first"
    if ending in (".shp", ".kml", ".gml", ".tab", ".mif"):
        return ": that is read, and not written; write .gpkg instead"
    return ""
