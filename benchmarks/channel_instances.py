"""Places, priors, levels and losses that nobody tuned the channel solvers for, with their seeds.

Five kinds of places, six priors, levels eps h from 0.05 to 3 (h: the side of a square that holds
one place on average; on a road, the mean step) and three losses.  The seed of an instance is made
of its name, so that each can be had alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.measure import DATA
from whereish.arrays import FloatArray

SIDE = 500.0
"""Metres: the h of every instance but the road's and the dense ones'."""
KINDS = ("grid", "scattered", "road", "clusters", "decades")
PRIORS = ("uniform", "Zipf", "log-normal", "Dirichlet 0.3", "New York user", "3/4 zeros")
LEVELS = (0.5, 0.2, 1.0, 0.05, 3.0)
LOSSES = ("euclidean", "squared", "threshold")
_CHECKINS = DATA / "gowalla_nyc_checkins.parquet"


@dataclass(frozen=True)
class Instance:
    """A channel to find: the metric is `nats_per_m` times metres unless it is given."""

    name: str
    places: FloatArray
    prior: FloatArray
    nats_per_m: float
    loss: str

    @property
    def n(self) -> int:
        return len(self.prior)

    @property
    def distances(self) -> FloatArray:
        return np.hypot(*np.moveaxis(self.places[:, None] - self.places[None], -1, 0))

    @property
    def losses(self) -> FloatArray:
        """(n, n): metres, square metres, or whether a report is farther than 1.5 h."""
        apart = self.distances
        if self.loss == "threshold":
            return np.where(apart > 1.5 * SIDE, 1.0, 0.0)
        return apart if self.loss == "euclidean" else apart**2


def _rng(*words: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(" ".join(map(str, words)).encode()))


def places_of(kind: str, n: int) -> FloatArray:
    """`n` places in metres, or the nearest number that the kind allows."""
    rng = _rng("places", kind, n)
    extent = SIDE * np.sqrt(n)
    if kind == "grid":
        side = round(np.sqrt(n))
        i, j = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
        return SIDE * np.c_[i.ravel(), j.ravel()].astype(float)
    if kind == "scattered":
        return rng.uniform(0, extent, (n, 2))
    if kind == "road":  # a winding road, with steps from 0.2 to 1.8 h
        along = np.cumsum(rng.uniform(0.2, 1.8, n)) * SIDE
        return np.c_[along, 3 * SIDE * np.sin(along / (15 * SIDE))]
    if kind == "clusters":  # every third place has two others within metres
        centres = rng.uniform(0, extent, (-(-n // 3), 2))
        return centres[np.arange(n) % len(centres)] + rng.normal(size=(n, 2)) * SIDE / 100
    if kind == "decades":  # distances from a centre over ten decades
        radius = extent * 10 ** rng.uniform(-10, 0, n)
        angle = rng.uniform(0, 2 * np.pi, n)
        return extent + np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    raise ValueError(kind)


@cache
def _visits(users: int = 40) -> tuple[FloatArray, ...] | None:
    """Check-ins of the most active users in New York, in metres; None without the data."""
    if not _CHECKINS.exists():
        return None
    import pandas as pd

    rows = pd.read_parquet(_CHECKINS, columns=["user", "lat", "lon"])
    most = rows.user.value_counts().index[:users]
    origin = rows.lon.median(), rows.lat.median()
    x = (rows.lon - origin[0]) * 111_320 * np.cos(np.radians(origin[1]))
    y = (rows.lat - origin[1]) * 110_574
    return tuple(np.c_[x[rows.user == user], y[rows.user == user]] for user in most)


def _of_user(places: FloatArray, rng: np.random.Generator) -> FloatArray | None:
    """One user's check-ins, moved to the middle of the places and counted at the nearest."""
    visits = _visits()
    if visits is None:
        return None
    mine = visits[rng.integers(len(visits))]
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    spread = max(float(np.quantile(np.abs(mine - np.median(mine, axis=0)), 0.9)), 1.0)
    half = float(np.ptp(places, axis=0).max()) / 2
    moved = (mine - np.median(mine, axis=0)) * (half / spread) + middle
    nearest = ((moved[:, None] - places[None]) ** 2).sum(axis=-1).argmin(axis=1)
    return np.bincount(nearest, minlength=len(places)).astype(float)


def prior_of(kind: str, places: FloatArray, *seed: object) -> FloatArray | None:
    """A prior on the places; None where it needs data that is not at hand."""
    rng, n = _rng("prior", kind, *seed), len(places)
    weights: FloatArray | None
    if kind == "uniform":
        weights = np.ones(n)
    elif kind == "Zipf":
        weights = 1.0 / (1.0 + rng.permutation(n))
    elif kind == "log-normal":
        weights = rng.lognormal(sigma=1.5, size=n)
    elif kind == "Dirichlet 0.3":
        weights = np.maximum(rng.dirichlet(np.full(n, 0.3)), 1e-12)
    elif kind == "3/4 zeros":
        weights = np.where(rng.permutation(n) < -(-n // 4), rng.gamma(1.0, size=n) + 0.01, 0.0)
    elif kind == "New York user":
        weights = _of_user(places, rng)
    else:
        raise ValueError(kind)
    return None if weights is None else weights / weights.sum()


def instances(n: int, *, kinds: tuple[str, ...] = KINDS) -> Iterator[Instance]:
    """Every kind of places with every prior; levels and losses take turns."""
    for turn, kind in enumerate(kinds):
        size = 700 if kind == "road" and n >= 400 else n
        places = places_of(kind, size)
        for number, prior in enumerate(PRIORS):
            level = LEVELS[(turn + number) % len(LEVELS)]
            loss = LOSSES[(turn + number // 2) % len(LOSSES)]
            found = made(kind, size, prior, level, loss, places)
            if found is not None:
                yield found


def drawn(seed: int, count: int, sizes: tuple[int, int]) -> Iterator[Instance]:
    """So many instances of all kinds, of a size between two, drawn at random by a seed."""
    rng = _rng("drawn", seed)
    while count:
        n = int(rng.integers(*sizes, endpoint=True))
        words = (str(rng.choice(choice)) for choice in (KINDS, PRIORS, LOSSES))
        kind, prior, loss = words
        level = round(float(np.exp(rng.uniform(np.log(LEVELS[3]), np.log(LEVELS[4])))), 3)
        found = made(kind, n, prior, level, loss)
        if found is not None:
            count -= 1
            yield found


def made(
    kind: str, n: int, prior: str, level: float, loss: str, places: FloatArray | None = None
) -> Instance | None:
    """One instance by its words; None where its prior needs data that is not at hand."""
    places = places_of(kind, n) if places is None else places
    weights = prior_of(prior, places, kind, n)
    if weights is None:
        return None
    name = f"{kind} {len(places)}, {prior}, eps h = {level:g}, {loss}"
    return Instance(name, places, weights, level / SIDE, loss)
