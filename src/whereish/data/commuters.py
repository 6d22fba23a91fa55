"""Synthetic commuters: home-work pairs from a density raster, and how far they travel.

The study of Andrés et al. (CCS 2013, section 5) blurs the homes of a commuter file (the
US census's LODES) and asks whether the histogram of commute distances survives.  This
module makes such a file from any map of population density, with no download.

Homes fall into cells in proportion to their people, uniformly within a cell.  The job of
somebody who lives in cell i is in cell j with probability proportional to

    jobs_j exp(-d(i, j) / reach),    jobs_j proportional to people_j ^ concentration,

the gravity model of trip distribution (Wilson 1971): more jobs attract more, distance
deters, and jobs are more concentrated than homes.  Everything follows from the seed; the
people are made up, so no privacy is at stake here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.privacy.norms import Euclidean
from whereish.space.points import Points, checked_coordinates
from whereish.space.raster import Raster
from whereish.units import METRES_PER, Length

__all__ = ["MILES", "CommuteHistogram", "Commuters", "commute_histogram", "synthetic_commuters"]

MILES = (0.0, 10.0, 25.0, 50.0, math.inf)
"""Borders of the commute classes of the LODES study, in miles."""


@dataclass(frozen=True, eq=False)
class Commuters:
    """Pairs of places on one plane: row i lives at homes[i] and works at works[i]."""

    homes: Points
    works: Points

    def __post_init__(self) -> None:
        if len(self.homes) != len(self.works) or self.homes.space != self.works.space:
            raise InvalidInput("there must be one work place for each home, on the same plane")

    def __len__(self) -> int:
        return len(self.homes)

    def histogram(self, *, homes: Points | None = None) -> CommuteHistogram:
        """Commute distances, from the true homes or from reported ones."""
        return commute_histogram(self.homes if homes is None else homes, self.works)


@dataclass(frozen=True, eq=False)
class CommuteHistogram:
    """How many commutes fall into each class of distance (low <= d < high, in miles)."""

    counts: IntArray
    edges_mi: tuple[float, ...] = MILES

    @property
    def shares(self) -> FloatArray:
        """Counts over their sum."""
        return np.asarray(self.counts / max(int(self.counts.sum()), 1))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, such as 0-10 and 50+."""
        return tuple(
            f"{low:g}+" if math.isinf(high) else f"{low:g}-{high:g}"
            for low, high in pairwise(self.edges_mi)
        )

    def change(self, other: CommuteHistogram) -> float:
        """Share of commutes that sit in another class (total variation distance)."""
        if self.edges_mi != other.edges_mi:
            raise InvalidInput("both histograms must have the same classes")
        return float(np.abs(self.shares - other.shares).sum() / 2)


def commute_histogram(
    homes: Points | ArrayLike, works: Points, *, edges_mi: Sequence[float] = MILES
) -> CommuteHistogram:
    """Distances home to work, counted in classes."""
    edges = tuple(float(edge) for edge in edges_mi)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise InvalidInput("edges_mi must be at least two rising numbers of miles")
    start = checked_coordinates(homes, works.space)
    if len(start) != len(works):
        raise InvalidInput(f"there must be one work place for each home; got {len(works)} works")
    miles = Euclidean()(start, works.coordinates) / METRES_PER["mi"]
    index = np.searchsorted(edges, miles, side="right") - 1
    inside = (index >= 0) & (index < len(edges) - 1)
    return CommuteHistogram(np.bincount(index[inside], minlength=len(edges) - 1), edges)


def synthetic_commuters(
    raster: Raster,
    density: ArrayLike,
    count: int,
    *,
    seed: int,
    reach: Length | str = "10 km",
    concentration: float = 1.3,
) -> Commuters:
    """`count` made-up commuters of the region that `raster` covers.

    Parameters
    ----------
    density
        People per area (any unit) of each cell, of the raster's shape.
    seed
        Which people: the same seed makes the same file.
    reach
        Distance at which a job is e times less attractive.
    concentration
        Exponent above 1: jobs crowd more than homes.

    Raises
    ------
    InvalidInput
        If the density does not fit the raster, or `count` is not > 0.

    Examples
    --------
    >>> import whereish as wh
    >>> raster = wh.Raster(2, 2, (5000, 5000))
    >>> people = wh.synthetic_commuters(raster, [[9, 1], [4, 2]], 100, seed=1)
    >>> len(people), people.homes
    (100, Points(100 in the plane in metres))
    """
    people = _people(raster, density)
    if not isinstance(count, int) or count < 1:
        raise InvalidInput(f"count must be a whole number > 0; got {count!r}")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InvalidInput(f"seed must be an integer; got {seed!r}")
    if not (math.isfinite(concentration) and concentration > 0):
        raise InvalidInput(f"concentration must be a finite number > 0; got {concentration!r}")
    rng = np.random.default_rng(seed)
    scale = Length.positive(reach, name="reach").m
    centres = raster.centres()
    home = rng.choice(len(people), size=count, p=people / people.sum())
    work = np.empty(count, np.intp)
    jobs = (people / people.max()) ** concentration
    for cell in np.unique(home):
        distance = np.hypot(*(centres - centres[cell]).T)
        pull = jobs * np.exp(-(distance - distance[jobs > 0].min()) / scale)
        rows = np.flatnonzero(home == cell)
        work[rows] = rng.choice(len(people), size=len(rows), p=pull / pull.sum())
    return Commuters(
        *(Points(_within(raster, centres[cells], rng), raster.plane) for cells in (home, work))
    )


def _people(raster: Raster, density: ArrayLike) -> FloatArray:
    values = np.asarray(density, dtype=np.float64)
    if values.shape != raster.shape:
        raise InvalidInput(
            f"density must have the raster's shape {raster.shape}; got {values.shape}"
        )
    if not np.isfinite(values).all() or (values < 0).any() or values.sum() <= 0:
        raise InvalidInput("density must be finite numbers >= 0, and not all zero")
    return values.ravel()


def _within(raster: Raster, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Uniform places within the cells of these centres."""
    return np.asarray(centres + (rng.random(centres.shape) - 0.5) * np.asarray(raster.cell))
