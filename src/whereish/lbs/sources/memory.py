"""Places in memory: a k-d tree on unit vectors, the fastest source there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from whereish.lbs.sources.reading import read_places
from whereish.lbs.sources.source import Places, checked_query
from whereish.space.sphere import RADIUS_M, unit_vectors

__all__ = ["MemorySource"]


class MemorySource:
    """Places of a file or a frame, in memory.

    Parameters
    ----------
    places
        A path (CSV, JSON lines, Parquet, GeoJSON and the like) or a data frame.
    lon, lat
        Its columns of degrees; files with geometries need none.
    keep
        Further columns that results carry.

    Examples
    --------
    >>> import pandas as pd
    >>> import whereish as wh
    >>> cafes = pd.DataFrame({"lon": [2.35, 2.36], "lat": [48.85, 48.9], "name": ["A", "B"]})
    >>> wh.MemorySource(cafes, keep=["name"]).around(2.351, 48.851, 500.0).columns["name"]
    ['A']
    """

    def __init__(
        self, places: Any, *, lon: str = "lon", lat: str = "lat", keep: Sequence[str] = ()
    ) -> None:
        from scipy.spatial import cKDTree

        self._degrees, columns = read_places(places, lon=lon, lat=lat, keep=keep)
        self._columns = {name: column.to_pylist() for name, column in columns.items()}
        self._tree = cKDTree(unit_vectors(self._degrees))

    def __len__(self) -> int:
        return len(self._degrees)

    def __repr__(self) -> str:
        return f"MemorySource({len(self)} places)"

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every place within `radius_m` true metres: those within it on the sphere below WGS84."""
        lon, lat, radius_m = checked_query(lon, lat, radius_m)
        chord = 2 * math.sin(min(radius_m / RADIUS_M, math.pi) / 2) * (1 + 1e-9) + 1e-15
        centre = unit_vectors(np.array([lon, lat]))
        rows = sorted(self._tree.query_ball_point(centre, chord))
        degrees = self._degrees[rows]
        kept = {name: [values[row] for row in rows] for name, values in self._columns.items()}
        return Places({"lon": degrees[:, 0], "lat": degrees[:, 1], **kept})
