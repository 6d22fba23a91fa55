"""GPX: read through GDAL, written here as waypoints with the statement as description.

A GPX output holds waypoints: the order of a track's points would tell more than each.
A waypoint's children have fixed names and a fixed order, so only those can be kept.

GDAL reads a number that is none ("48.x5") as its leading digits, or as 0.  So the file is
parsed once before, as it streams: every point must have a latitude and a longitude that are
numbers, and so must what is kept and the schema calls a number.  A document type, which
could declare entities that expand without end, is refused.

GDAL also stops without a word where a text or a comment is long, knows no prefixes and sees
no point within another.  So points may stand only where the schema has them, and GDAL must
deliver as many as were counted here.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats import gdal as geo_tables
from whereish.publish.formats.tables import Table, Wanted, Writing
from whereish.publish.formats.wkb import points_from_wkb

__all__ = ["open_table", "write_table"]

CHILDREN = ("ele", "time", "magvar", "geoidheight", "name", "cmt", "desc", "src", "sym", "type")
"""What a waypoint may say besides where it is, in the order of the GPX 1.1 schema."""

_POINTS = {
    "waypoints": ["gpx", "wpt"],
    "route_points": ["gpx", "rte", "rtept"],
    "track_points": ["gpx", "trk", "trkseg", "trkpt"],
}
"""GDAL's layers, and where their points stand."""
_TAGS = {path[-1]: (layer, path[:-1]) for layer, path in _POINTS.items()}
_NUMBERS = ("ele", "magvar", "geoidheight", "sat", "hdop", "vdop", "pdop", "ageofdgpsdata")
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<gpx version="1.1" creator="whereish" xmlns="http://www.topografix.com/GPX/1/1">\n'
    "<metadata><desc>{}</desc></metadata>\n"
)


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open one layer of points, if all numbers are numbers and GDAL delivers every point."""
    points = _Points(path.name, [name for name in wanted.columns if name in _NUMBERS])
    points.check(path)
    with geo_tables.open_table(path, wanted, points.counts) as table:
        yield table


class _Points:
    """Counts the points of a GPX file, the misplaced ones, and text in place of a number."""

    def __init__(self, name: str, kept: Sequence[str]) -> None:
        self._name, self._kept = name, kept
        self._inside: list[str] = []
        self._text: list[str] | None = None
        self._wrong = self._misplaced = 0
        self.counts = dict.fromkeys(_POINTS, 0)
        """Points by the layer that GDAL puts them into."""

    def check(self, path: Path) -> None:
        """Read the whole file; an error names the file and counts, and quotes nothing."""
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        with path.open("rb") as file:
            try:
                parser.ParseFile(file)
            except InvalidInput:
                raise
            # An encoding that Python does not know, or that expat cannot use, is the file's fault.
            except (expat.ExpatError, LookupError, ValueError):
                raise InvalidInput(
                    f"the input {self._name} cannot be read as gpx: is it damaged?"
                ) from None
        if self._misplaced:
            raise InvalidInput(
                f"the input {self._name} must have its points as wpt in gpx, rtept in rte or trkpt"
                f" in trkseg, without a prefix; {self._misplaced} are elsewhere: is it damaged?"
            )
        if self._wrong:
            raise InvalidInput(
                f"the input {self._name} must have numbers as lat and lon of each point, and as the"
                f" heights and the like that are kept; {self._wrong} are none: is it damaged?"
            )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name in _TAGS:
            layer, parents = _TAGS[name]
            self.counts[layer] += 1
            self._misplaced += tag != name or self._inside != parents
            self._count(attributes.get("lat", ""))
            self._count(attributes.get("lon", ""))
        elif name in self._kept and self._inside and self._inside[-1] in _TAGS:
            self._text = []
        elif tag == name and {"lat", "lon"} <= attributes.keys():
            # A point by another name, such as one flipped bit makes.
            self._misplaced += "extensions" not in self._inside
        self._inside.append(tag)

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, _: str) -> None:
        self._inside.pop()
        if self._text is not None:
            self._count("".join(self._text))
            self._text = None

    def _count(self, text: str) -> None:
        self._wrong += _NUMBER.fullmatch(text) is None

    def _doctype(self, *_: object) -> None:
        raise InvalidInput(
            f"the input {self._name} has a document type, which GPX has no use for: remove it"
        )


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write waypoints."""
    (geometry,) = writing.geometries
    kept = [name for name in writing.schema.names if name != geometry]
    strange = [name for name in kept if name not in CHILDREN]
    if strange:
        raise InvalidInput(
            f"a GPX waypoint has no room for {', '.join(map(repr, strange))}; it has"
            f" {', '.join(CHILDREN)}: write another kind of file"
        )
    kept.sort(key=CHILDREN.index)
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEAD.format(escape(json.dumps(writing.statement))))
        for batch in batches:
            places = points_from_wkb(batch.column(geometry), geometry).tolist()
            values = zip(*(batch.column(name).to_pylist() for name in kept), strict=True)
            rows = list(values) if kept else [()] * len(places)
            for (lon, lat), row in zip(places, rows, strict=True):
                children = "".join(
                    f"<{name}>{escape(_text(value))}</{name}>"
                    for name, value in zip(kept, row, strict=True)
                    if value is not None
                )
                file.write(f'<wpt lat="{lat!r}" lon="{lon!r}">{children}</wpt>\n')
        file.write("</gpx>\n")


def _text(value: object) -> str:
    if not isinstance(value, datetime):
        return str(value)
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")
