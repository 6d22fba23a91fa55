"""Places in one SQLite file: the default, for millions of them.

Rows are kept in the order of a grid key (cells of 0.005 degrees, row by row), so that a query reads
one range of the table for each row of cells that its box touches.  `WITHOUT ROWID` makes the table
itself that order.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput, NotWritten
from whereish.lbs.sources.reading import read_places
from whereish.lbs.sources.source import Bounds, Places, boxes_around, checked_query, within_sphere

__all__ = ["PlaceStore"]

_PER_DEGREE = 200
_COLUMNS = 360 * _PER_DEGREE
_ROWS = 180 * _PER_DEGREE
_FORMAT = "whereish places 1"


class PlaceStore:
    """Places of one SQLite file, made by :meth:`build`.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import whereish as wh
    >>> cafes = pd.DataFrame({"lon": [2.35, 2.36], "lat": [48.85, 48.9], "name": ["A", "B"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = wh.PlaceStore.build(f"{folder}/cafes.db", cafes, keep=["name"])
    ...     store.around(2.351, 48.851, 500.0).columns["name"]
    ...
    ('A',)
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise InvalidInput(f"there is no store of places {self._path.name}")
        address = f"{self._path.resolve().as_uri()}?mode=ro"
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
            said = self._connection.execute("SELECT format, names, places FROM about").fetchall()
            weakref.finalize(self, self._connection.close)
        except sqlite3.Error:
            said = []
        if not said or said[0][0] != _FORMAT:
            raise InvalidInput(
                f"{self._path.name} is no store of places: make one with PlaceStore.build"
            )
        self._names: tuple[str, ...] = ("lon", "lat", *json.loads(said[0][1]))
        self._count = int(said[0][2])
        picked = ", ".join(["lon", "lat", *(f"c{i}" for i in range(len(self._names) - 2))])
        self._sql = (
            f"SELECT {picked} FROM places WHERE cell BETWEEN ? AND ?"
            " AND lat BETWEEN ? AND ? AND lon BETWEEN ? AND ?"
        )

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"PlaceStore({self._path.name}, {self._count} places)"

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @classmethod
    def build(
        cls,
        path: str | Path,
        places: Any,
        *,
        lon: str = "lon",
        lat: str = "lat",
        keep: Sequence[str] = (),
    ) -> PlaceStore:
        """Make a store from a file or a frame; parameters as of :class:`MemorySource`.

        The file gets its name when it is finished, in place of an older one.

        Raises
        ------
        InvalidInput
            If the places cannot be read.
        NotWritten
            If the file cannot be written.
        """
        target = Path(path)
        degrees, columns = read_places(places, lon=lon, lat=lat, keep=keep)
        cells = _cells(degrees)
        order = np.argsort(cells, kind="stable")
        try:
            descriptor, fresh = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            os.close(descriptor)
            try:
                _write(fresh, cells[order], degrees[order], columns, order)
                mask = os.umask(0)
                os.umask(mask)
                Path(fresh).chmod(0o666 & ~mask)
                Path(fresh).replace(target)
            finally:
                Path(fresh).unlink(missing_ok=True)
        except (OSError, sqlite3.Error):
            raise NotWritten(f"the store {target.name} cannot be written") from None
        return cls(target)

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every place within `radius_m` true metres: those within it on the sphere below WGS84."""
        lon, lat, radius_m = checked_query(lon, lat, radius_m)
        found: list[tuple[Any, ...]] = []
        with self._lock:
            for box in boxes_around(lon, lat, radius_m):
                for low, high in _ranges(box):
                    west, south, east, north = box
                    values = (low, high, south, north, west, east)
                    found += self._connection.execute(self._sql, values)
        if not found:
            return Places(dict.fromkeys(self._names, ()))
        columns = list(zip(*found, strict=True))
        degrees = np.array(columns[:2]).T
        inside = within_sphere(degrees, lon, lat, radius_m)
        if not inside.all():
            kept = np.flatnonzero(inside).tolist()
            columns = [tuple(values[row] for row in kept) for values in columns]
        return Places(dict(zip(self._names, columns, strict=True)))


def _cells(degrees: FloatArray) -> IntArray:
    column = np.clip(np.floor((degrees[:, 0] + 180.0) * _PER_DEGREE), 0, _COLUMNS - 1)
    row = np.clip(np.floor((degrees[:, 1] + 90.0) * _PER_DEGREE), 0, _ROWS - 1)
    return np.asarray(row * _COLUMNS + column, dtype=np.int64)


def _ranges(box: Bounds) -> Iterator[tuple[int, int]]:
    """The cells of a box, as one range of keys for each row of cells."""
    west, south, east, north = box
    first, last = (
        min(max(math.floor((lon + 180.0) * _PER_DEGREE), 0), _COLUMNS - 1) for lon in (west, east)
    )
    low, high = (
        min(max(math.floor((lat + 90.0) * _PER_DEGREE), 0), _ROWS - 1) for lat in (south, north)
    )
    if first == 0 and last == _COLUMNS - 1:
        yield low * _COLUMNS, high * _COLUMNS + last
        return
    for row in range(low, high + 1):
        yield row * _COLUMNS + first, row * _COLUMNS + last


def _write(
    path: str, cells: IntArray, degrees: FloatArray, columns: dict[str, Any], order: IntArray
) -> None:
    names = [f"c{i}" for i in range(len(columns))]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        run("PRAGMA journal_mode = OFF")
        run("PRAGMA synchronous = OFF")
        fields = "".join(f", {name}" for name in names)
        run(
            "CREATE TABLE places (cell INTEGER, n INTEGER, lon REAL, lat REAL"
            f"{fields}, PRIMARY KEY (cell, n)) WITHOUT ROWID"
        )
        run("CREATE TABLE about (format TEXT, names TEXT, places INTEGER)")
        run("BEGIN")
        insert = f"INSERT INTO places VALUES ({', '.join('?' * (4 + len(names)))})"
        taken = [pa.chunked_array(column).take(pa.array(order)) for column in columns.values()]
        for low in range(0, len(cells), 100_000):
            part = slice(low, low + 100_000)
            rows = zip(
                cells[part].tolist(),
                range(low, low + 100_000),
                *degrees[part].T.tolist(),
                *(_plain(column.slice(low, 100_000)) for column in taken),
                strict=False,
            )
            connection.executemany(insert, rows)
        connection.execute(
            "INSERT INTO about VALUES (?, ?, ?)", (_FORMAT, json.dumps([*columns]), len(cells))
        )
        run("COMMIT")


def _plain(column: Any) -> list[Any]:
    """Values that SQLite holds: numbers, text, bytes, nothing; all else as text."""
    return [
        value if value is None or isinstance(value, int | float | str | bytes) else str(value)
        for value in column.to_pylist()
    ]
