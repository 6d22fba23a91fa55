"""One person's track from a file: GPX, or a table with columns of places and perhaps times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from whereish.errors import InvalidInput

__all__ = ["track_places"]


def track_places(
    path: Path, lon: str | None, lat: str | None, time: str | None, layer: str | None
) -> Iterator[tuple[str | None, list[float]]]:
    """(time as text, [lon, lat]) for each row, in the order of the file."""
    from whereish.publish.formats.registry import format_of
    from whereish.publish.formats.tables import Wanted, open_table
    from whereish.publish.job import default_geometry
    from whereish.publish.rows.bad_rows import numbered_from
    from whereish.publish.rows.locations import as_locations, refuse_no_places
    from whereish.space.sphere import within_180

    kind = format_of(path, f"the input {path.name}")
    geometry = None if lon is not None else default_geometry(path)
    found = as_locations(lon, lat, geometry, None)
    if not found:
        raise InvalidInput(f"say which columns of {path.name} the places are in: --lon and --lat")
    (at,) = found
    if kind.holds_tracks:
        time, layer = time or "time", layer or "track_points"
    columns = (*at.columns, *(() if time is None else (time,)))
    numbers = at.columns if lon is not None else ()
    wanted = Wanted(columns, numbers, () if lon is not None else at.columns, layer)
    rows = 0
    with open_table(path, wanted) as table:
        for batch in table.batches:
            with numbered_from(rows):
                degrees = at.read(batch)
                refuse_no_places(degrees, at.columns)
                degrees = within_180(degrees, wrap=False, how="it in the file")
            times = [None] * len(degrees) if time is None else batch.column(time).to_pylist()
            for place, moment in zip(degrees.tolist(), times, strict=True):
                yield _told(moment), place
            rows += len(batch)


def _told(moment: Any) -> str | None:
    """A time as the text that the command line reads."""
    if moment is None or isinstance(moment, str):
        return moment or None
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    if isinstance(moment, date):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).isoformat()
    return repr(moment)
