"""Places for the first look: made up, the same for everybody, some in every square kilometre."""

from __future__ import annotations

import math

import numpy as np

from whereish.lbs.sources.source import Places, boxes_around, within_sphere

__all__ = ["ExamplePlaces"]

_CELL = 0.01
_EACH = 24
_KINDS = ("Café", "Bakery", "Pharmacy", "Library", "Bookshop", "Kiosk", "Post office", "Cinema")
_MOST_CELLS = 4000


class ExamplePlaces:
    """24 made-up places in every cell of a hundredth of a degree, from the cell's number alone.

    >>> found = ExamplePlaces().around(-75.16, 39.95, 300.0)
    >>> len(found) == len(ExamplePlaces().around(-75.16, 39.95, 300.0)) > 0
    True
    """

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every example place within the radius; beyond 4,000 cells the answer is incomplete."""
        parts: list[np.ndarray] = []
        names: list[str] = []
        complete = True
        for west, south, east, north in boxes_around(lon, lat, radius_m):
            columns = range(math.floor(west / _CELL), math.floor(east / _CELL) + 1)
            rows = range(math.floor(south / _CELL), math.floor(north / _CELL) + 1)
            cells = [(column, row) for row in rows for column in columns]
            complete &= len(cells) <= _MOST_CELLS
            for column, row in cells[:_MOST_CELLS]:
                noise = np.random.default_rng((column + 100_000, row + 100_000))
                parts.append((noise.random((_EACH, 2)) + np.array([column, row])) * _CELL)
                kinds = noise.integers(len(_KINDS), size=_EACH)
                names += [f"{_KINDS[kind]} {k + 1}" for k, kind in enumerate(kinds)]
        places = np.concatenate(parts) if parts else np.empty((0, 2))
        places[:, 1] = np.clip(places[:, 1], -90, 90)
        inside = within_sphere(places, lon, lat, radius_m)
        kept = [name for name, held in zip(names, inside, strict=True) if held]
        return Places(
            {"lon": places[inside, 0], "lat": places[inside, 1], "name": kept}, complete=complete
        )
