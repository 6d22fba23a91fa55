"""GPX: read through GDAL, written here as waypoints with the statement as description.

A GPX output holds waypoints: the order of a track's points would tell more than each.
A waypoint's children have fixed names and a fixed order, so only those can be kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.geo_tables import open_table
from whereish.publish.tables import Writing
from whereish.publish.wkb import points_from_wkb

__all__ = ["open_table", "write_table"]

CHILDREN = ("ele", "time", "magvar", "geoidheight", "name", "cmt", "desc", "src", "sym", "type")
"""What a waypoint may say besides where it is, in the order of the GPX 1.1 schema."""

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<gpx version="1.1" creator="whereish" xmlns="http://www.topografix.com/GPX/1/1">\n'
    "<metadata><desc>{}</desc></metadata>\n"
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
                said = "".join(
                    f"<{name}>{escape(_text(value))}</{name}>"
                    for name, value in zip(kept, row, strict=True)
                    if value is not None
                )
                file.write(f'<wpt lat="{lat!r}" lon="{lon!r}">{said}</wpt>\n')
        file.write("</gpx>\n")


def _text(value: object) -> str:
    if not isinstance(value, datetime):
        return str(value)
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")
