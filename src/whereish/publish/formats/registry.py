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

__all__ = ["FORMATS", "STATEMENT", "TableFormat", "format_of", "suffixes"]

STATEMENT = "{statement}"
"""In an option of GDAL: where the statement stands, as JSON."""


@dataclass(frozen=True)
class TableFormat:
    """A kind of file.

    Attributes
    ----------
    suffixes
        The endings of its names.
    geometry
        "none": a location is two columns; "optional": or a geometry; "only": the first
        location is a geometry, in WGS84 degrees.
    carries_statement
        Whether the file itself holds its guarantee; otherwise that stands beside the file.
    module
        Which module of this folder has its `open_table` and `write_table`, and perhaps its
        `default_geometry`.
    options
        What that module is to know: of `delimited` the delimiter, of `gdal` the driver and
        the options of its writer, with :data:`STATEMENT` where the statement goes.
    several_geometries
        Whether further locations may be geometries too, and not the first alone.
    runs_formulas
        Whether spreadsheets open it, and take some text for formulas.
    holds_tracks
        Whether devices record a person's track in it.
    """

    suffixes: tuple[str, ...]
    geometry: Literal["none", "optional", "only"]
    carries_statement: bool
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    several_geometries: bool = False
    runs_formulas: bool = False
    holds_tracks: bool = False

    def load(self) -> Any:
        """The module that reads and writes it."""
        return import_module(f"whereish.publish.formats.{self.module}")


_FOREIGN_MEMBER = f'{{"type": "FeatureCollection", "whereish": {STATEMENT}}}'

FORMATS = (
    TableFormat((".csv",), "none", False, "delimited", {"delimiter": ","}, runs_formulas=True),
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
)


def suffixes() -> list[str]:
    """All endings that are known."""
    return [suffix for one in FORMATS for suffix in one.suffixes]


def format_of(path: Path, what: str | None = None) -> TableFormat:
    """The format that the ending of a name stands for; `what` names the file in the error.

    Raises
    ------
    InvalidInput
        If no format has that ending.
    """
    for one in FORMATS:
        if path.suffix in one.suffixes:
            return one
    what = f"the file {path.name}" if what is None else what
    raise InvalidInput(
        f"{what} must end in one of {', '.join(suffixes())}; got {path.suffix or 'none'}"
    )
