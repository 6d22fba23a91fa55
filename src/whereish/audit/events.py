"""Events that may tell two secrets apart, and the choice of one by likelihood ratio.

For noise on a plane with density c exp(-eps |z - x|) the likelihood ratio of x and y is
exp(eps (|z - y| - |z - x|)), so the most telling events are {|z - y| - |z - x| >= c}: cones
behind x, seen from y.  A cone of half-angle w has the level eps d (1 - w²/6), roughly, and
the mass w/pi; narrow ones lose little of the level, wide ones are hit often.

The events of a *family* are thresholds of a score (:class:`Tail`), or unions of the cells of
a partition that come more often from the first secret (:class:`Cells`).  Cells are put in
order with one half of the reports and counted with the other, so that a lucky order
promises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.privacy.metric import Metric, Scaled, Sum
from whereish.privacy.norms import Geodesic, GreatCircle
from whereish.space.sphere import RADIUS_M

__all__ = ["KINDS", "Choice", "Event", "Promise", "Reports", "Tally", "View", "fitted", "on_sphere"]

Score: TypeAlias = Callable[["Reports"], FloatArray]
Counts: TypeAlias = IntArray
"""Axes: half of the reports, secret, what the family counts."""
Promise: TypeAlias = Callable[[IntArray, IntArray, float], FloatArray]
"""From hits of both secrets in this share of the reports to the bound they promise."""

_MOST_CELLS = 1024
_MOST_ATOMS = 8
_TAILS = np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(9e-3, 1e-6, 40)])
_CONES = np.concatenate([np.linspace(0.1, 0.9, 9), [0.94, 0.96, 0.98, 0.99]])


@dataclass(frozen=True)
class Event:
    """A set of reports, with words for it."""

    name: str
    holds: Callable[[Reports], NDArray[np.bool_]]


@dataclass(frozen=True)
class Choice:
    """The event of a family that promises the highest lower bound."""

    promise: float
    event: Event


class Reports:
    """Reports of one batch, with distances and offsets to secrets computed once."""

    def __init__(self, z: FloatArray, metric: Metric) -> None:
        self.z, self.metric = z, metric
        self._distances: dict[bytes, FloatArray] = {}
        self._offsets: dict[bytes, FloatArray] = {}

    def __len__(self) -> int:
        return len(self.z)

    def halves(self) -> tuple[Reports, Reports]:
        """Every second one, and the rest."""
        return Reports(self.z[::2], self.metric), Reports(self.z[1::2], self.metric)

    def distance(self, place: FloatArray) -> FloatArray:
        """Distances to one place: by the metric, or in metres for degrees."""
        key = place.tobytes()
        if key not in self._distances:
            measured = _haversine_m if on_sphere(self.metric) else self.metric
            self._distances[key] = measured(self.z, place[None]).ravel()
        return self._distances[key]

    def offset(self, place: FloatArray) -> FloatArray:
        """Differences to one place; degrees east are shrunk with the latitude."""
        key = place.tobytes()
        if key not in self._offsets:
            apart = self.z - place
            if on_sphere(self.metric):
                apart[:, 0] = np.mod(apart[:, 0] + 180.0, 360.0) - 180.0
                apart[:, 0] *= math.cos(math.radians(place[1]))
            self._offsets[key] = apart
        return self._offsets[key]


@dataclass(frozen=True)
class View:
    """Two secrets in this order: a report is to tell that the first is the true one."""

    here: FloatArray
    there: FloatArray
    metric: Metric

    def farther(self, z: Reports) -> FloatArray:
        """How much farther a report is from the other secret."""
        return z.distance(self.there) - z.distance(self.here)

    def near(self, z: Reports) -> FloatArray:
        """Minus the distance to the first secret."""
        return -z.distance(self.here)

    def far(self, z: Reports) -> FloatArray:
        """Distance to the first secret."""
        return z.distance(self.here)

    def far_from_other(self, z: Reports) -> FloatArray:
        """Distance to the other secret."""
        return z.distance(self.there)

    def behind(self, z: Reports) -> FloatArray:
        """How far a report is behind the first secret, along the line of the two."""
        return np.asarray(z.offset(self.here) @ self._axis)

    def cosine(self, z: Reports) -> FloatArray:
        """Cosine of the angle at the first secret between a report and straight behind."""
        offset = z.offset(self.here)
        length = np.sqrt(np.einsum("ij,ij->i", offset, offset))
        ones = np.ones(len(z))
        return np.asarray(np.divide(offset @ self._axis, length, out=ones, where=length > 0))

    @cached_property
    def _axis(self) -> FloatArray:
        line = -Reports(self.there[None], self.metric).offset(self.here)[0]
        length = float(np.linalg.norm(line))
        return np.asarray(line / length if length > 0 else line)


def on_sphere(metric: Metric) -> bool:
    """Whether a metric reads its coordinates as degrees."""
    if isinstance(metric, Sum):
        return all(map(on_sphere, metric.parts))
    base = metric.base if isinstance(metric, Scaled) else metric
    return isinstance(base, GreatCircle | Geodesic)


def _haversine_m(z: FloatArray, place: FloatArray) -> FloatArray:
    """Great-circle metres without care for antipodes: a score may be any function."""
    (lon, lat), (lon0, lat0) = np.radians(z).T, np.radians(place[0])
    east, north = np.sin((lon - lon0) / 2), np.sin((lat - lat0) / 2)
    square = north * north + np.cos(lat) * math.cos(lat0) * east * east
    return np.asarray(2 * RADIUS_M * np.arcsin(np.sqrt(np.minimum(square, 1.0))))


class Family(Protocol):
    """Events of one kind, counted together."""

    @property
    def size(self) -> int:
        """How many numbers a count has."""

    def count(self, z: Reports) -> IntArray:
        """How many reports fall where."""

    def choose(self, counts: Counts, promise: Promise) -> Choice:
        """The most promising event."""


@dataclass(frozen=True)
class Tail:
    """The events {score >= c} for c in `limits`, in rising order."""

    describe: str
    score: Score
    limits: FloatArray

    @property
    def size(self) -> int:
        """One number a limit."""
        return len(self.limits)

    def count(self, z: Reports) -> IntArray:
        """How many scores reach each limit."""
        return len(z) - np.searchsorted(np.sort(self.score(z)), self.limits)

    def choose(self, counts: Counts, promise: Promise) -> Choice:
        """All limits at once, on all reports: one number chosen leaves little to luck."""
        first, other = counts.sum(axis=0)
        found = promise(first, other, 1.0)
        best = int(np.argmax(found))
        limit, score = self.limits[best], self.score
        event = Event(self.describe.format(abs(limit)), lambda z: score(z) >= limit)
        return Choice(float(found[best]), event)


@dataclass(frozen=True)
class Cells:
    """Unions of those cells of a partition that the first secret favours most."""

    describe: str
    size: int
    place: Callable[[Reports], NDArray[np.intp]]

    def count(self, z: Reports) -> IntArray:
        """How many reports are in each cell."""
        return np.bincount(self.place(z), minlength=self.size)

    def choose(self, counts: Counts, promise: Promise) -> Choice:
        """Cells in the order of one half, as many as the other half likes."""
        order = np.argsort(-(counts[0, 0] + 0.5) / (counts[0, 1] + 0.5), kind="stable")
        hits = counts[1][:, order].cumsum(axis=1)
        found = promise(hits[0], hits[1], 0.5)
        best = int(np.argmax(found))
        chosen = np.zeros(self.size, bool)
        chosen[order[: best + 1]] = True
        name = f"{best + 1} of {self.size} {self.describe}"
        return Choice(float(found[best]), Event(name, lambda z: chosen[self.place(z)]))


class Tally:
    """Counts of one family that reports are added to, batch by batch."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.counts: Counts = np.zeros((2, 2, family.size), np.int64)

    def add(self, secret: int, halves: tuple[Reports, Reports]) -> None:
        """Count reports of the first (0) or the other (1) secret, in two halves."""
        for half, reports in enumerate(halves):
            self.counts[half, secret] += self.family.count(reports)


def _quantiles(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Values at these levels, each once."""
    return np.unique(np.sort(values)[(levels * (len(values) - 1)).astype(np.intp)])


def _tail(describe: str, method: Callable[[View, Reports], FloatArray]) -> Maker:
    def make(view: View, z: Reports) -> Family:
        def score(reports: Reports) -> FloatArray:
            return method(view, reports)

        return Tail(describe, score, _quantiles(score(z), _TAILS))

    return make


def _grid(describe: str, scores: list[tuple[Score, FloatArray]], z: Reports) -> Cells:
    """Cells between quantiles of several scores."""
    cuts = [_quantiles(score(z), levels) for score, levels in scores]

    def place(reports: Reports) -> NDArray[np.intp]:
        index = np.zeros(len(reports), np.intp)
        for (score, _), cut in zip(scores, cuts, strict=True):
            index = index * (len(cut) + 1) + np.searchsorted(cut, score(reports), side="right")
        return index

    return Cells(describe, math.prod(len(cut) + 1 for cut in cuts), place)


def _polar(view: View, z: Reports) -> Family:
    rings = np.linspace(0, 1, 13)[1:-1]
    return _grid("sectors of rings", [(view.cosine, _CONES), (view.far, rings)], z)


def _boxes(view: View, z: Reports) -> Family:
    """Boxes of a grid; of the first axes only where there are very many."""
    axes = min(z.z.shape[1], int(math.log2(_MOST_CELLS)))
    each = int(_MOST_CELLS ** (1 / axes) + 1e-9)
    levels = np.linspace(0, 1, min(each, 256) + 1)[1:-1]
    return _grid("boxes", [(_coordinate(axis), levels) for axis in range(axes)], z)


def _coordinate(axis: int) -> Score:
    return lambda reports: reports.z[:, axis]


def _atoms(view: View, z: Reports) -> Family:
    """The outputs that come most often, if any come often."""
    values, counts = np.unique(z.z[:20_000], axis=0, return_counts=True)
    often = [i for i in np.argsort(-counts)[:_MOST_ATOMS] if counts[i] >= 5]
    atoms = values[often]

    def place(reports: Reports) -> NDArray[np.intp]:
        index = np.zeros(len(reports), np.intp)
        for number, atom in enumerate(atoms, 1):
            index[(reports.z == atom).all(axis=1)] = number
        return index

    return Cells("outputs that come again and again, or others", len(atoms) + 1, place)


Maker: TypeAlias = Callable[[View, Reports], Family]

_ANYWHERE: dict[str, Maker] = {"boxes": _boxes, "atoms": _atoms}
_NEEDS_DISTANCES: dict[str, Maker] = {
    "farther": _tail("at least {:.4g} farther from the other secret", View.farther),
    "half-plane": _tail("at least {:.4g} behind the secret", View.behind),
    "cone": _tail("in the cone behind the secret of cosine {:.4g}", View.cosine),
    "ball": _tail("within {:.4g} of the secret", View.near),
    "tail": _tail("at least {:.4g} from the secret", View.far),
    "tail of the other": _tail("at least {:.4g} from the other secret", View.far_from_other),
    "polar": _polar,
}
KINDS: dict[str, Maker] = _NEEDS_DISTANCES | _ANYWHERE
"""The families that are tried, by name."""


def fitted(kind: str, view: View, z: Reports) -> Family | None:
    """The family of this kind with limits from reports `z` of the first secret.

    None for kinds that measure distances where reports are not places like the secrets.
    """
    if kind in _NEEDS_DISTANCES and z.z.shape[1] != len(view.here):
        return None
    return KINDS[kind](view, z)
