"""Slopes of a spline law at 25 points of every square: no bound, but nearly the largest, and cheap.

A slope is continuous from square to square, so that the points between two are looked at once.

A search for a law needs to know where it is too steep and where there is room, many times; a proof
(:mod:`~whereish.solvers.splines.bound`) is made of what it finds.  Most times it need not look at
all points, nor at all reports: what is chosen, and what is far, are the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.masses import TABLE_BITS
from whereish.solvers.splines.blocks import around, at_point
from whereish.solvers.splines.bound import CellLaws, exponents
from whereish.solvers.splines.lanes.operations import (
    add_at_point,
    around_node,
    columns,
    least,
    steepest_at_point,
)
from whereish.solvers.splines.passes import over_blocks
from whereish.solvers.splines.weights import spline_slopes, spline_weights

__all__ = [
    "PARTS",
    "Chosen",
    "NearBlock",
    "NearLaws",
    "all_points",
    "near_block",
    "point_gradients",
    "point_grid",
    "sampled_means",
    "sampled_slopes",
    "share_points",
]

PARTS = 4
"""Into so many parts points cut a square along each axis."""

_POINTS: FloatArray = np.linspace(-0.5, 0.5, PARTS + 1)
_SPLINE = tuple(f(_POINTS).astype(np.float32) for f in (spline_weights, spline_slopes))

_FAR = 11.0
"""Nats: what lies farther has 2e-4 of the mass."""

_NO_SUMS: FloatArray = np.zeros((0, 3))
_NO_MEANS, _NO_SLOPES = np.zeros((0, 2), np.float32), np.zeros(0, np.float32)
"""Where one of the two is not asked for."""


NearBlock: TypeAlias = tuple[
    NDArray[np.uint16],
    NDArray[np.float32],
    IntArray,
    tuple[int, int],
    tuple[np.float32, np.float32, np.float32],
    float,
]
"""Distances (cells, 64) from 64 reports, and shares of these; from which column to which the nodes
of each row have a gradient; where rows of nodes begin among the cells, and how far apart; quantum,
rate and tail of masses; and what the logarithm of a mass is taken for where the distance is 0: with
infinity no report is left out."""


@dataclass(frozen=True, eq=False)
class NearLaws(CellLaws):
    """Laws of which distances are known.

    Attributes
    ----------
    near : makes their blocks, anew for every pass; distances may end at so many nats.
    """

    near: Callable[[float], Iterable[Iterator[NearBlock]]]


def near_block(
    distances: NDArray[np.uint16],
    shares: NDArray[np.float32],
    seen: IntArray,
    where: tuple[int, int],
    quantum: float,
    *,
    all_count: bool,
) -> NearBlock:
    """A block of reports, as compiled loops take it.

    Masses are those of :mod:`~whereish.solvers.geodesic.masses`, whose table is rounded upwards by
    half a unit in the mean: t' = -q t + 1/2.
    """
    tail = 0.5 / quantum / 2.0**TABLE_BITS
    masses = np.float32(quantum), np.float32(quantum / math.log(2.0)), np.float32(tail)
    return distances, shares, seen, where, masses, math.inf if all_count else 0.0


Chosen = NDArray[np.bool_]
"""(rows, cols, 5, 5) which points of squares are looked at."""


def all_points(shape: tuple[int, ...]) -> Chosen:
    """Every point of a grid of squares, those between two in the later one."""
    chosen = np.ones((*shape, PARTS + 1, PARTS + 1), np.bool_)
    chosen[:-1, :, PARTS] = False
    chosen[:, :-1, :, PARTS] = False
    return chosen


def share_points(values: NDArray[Any]) -> None:
    """Copy values at points between two squares from the later one to the other."""
    values[:-1, :, PARTS] = values[1:, :, 0]
    values[:, :-1, :, PARTS] = values[:, 1:, :, 0]


def point_gradients(values: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """(rows, cols, 5, 5, 2) gradients at points of the spline of values at nodes, across and down.

    Per longer side of a cell.
    """
    height, width = _in_longer(cell)
    wide = np.pad(values, 1, mode="edge")
    nine = np.lib.stride_tricks.sliding_window_view(wide, (3, 3))
    weights, slopes = spline_weights(_POINTS), spline_slopes(_POINTS)
    across = np.einsum("ar,bs,ijrs->ijab", weights, slopes / width, nine, optimize=True)
    down = np.einsum("ar,bs,ijrs->ijab", slopes / height, weights, nine, optimize=True)
    return np.stack([across, down], axis=-1)


def sampled_means(laws: NearLaws, cell: tuple[float, float], chosen: Chosen) -> FloatArray:
    """(rows, cols, 5, 5, 2) the mean m of the gradients at points, across and down.

    Per longer side of a cell; 0 at points that are not `chosen`.
    """
    listed, sides = _Listed.of(chosen), _in_longer(cell)
    limits, shape, points = exponents(laws, _FAR), chosen.shape[:2], listed.points
    farthest = -float(limits[0].min()) + sum(float(part.max()) for part in laws.change)

    def nothing() -> FloatArray:
        return np.zeros((len(listed.which), 3))

    def add(block: NearBlock, out: FloatArray) -> None:
        _look(block, limits, points, shape, sides, _SPLINE, _NO_MEANS, out, _NO_SLOPES)

    return listed.means(over_blocks(laws.near(farthest), nothing, add))


def sampled_slopes(
    laws: NearLaws, levels: FloatArray, cell: tuple[float, float], chosen: Chosen, means: FloatArray
) -> FloatArray:
    """(rows, cols, 5, 5) the largest |grad ln P| / eps over all reports at points of every square.

    Other parameters are those of :func:`~whereish.solvers.splines.bound.largest_slopes`.

    Parameters
    ----------
    chosen : which points to look at, among :func:`all_points`.  The others are 0.
    means : those of :func:`sampled_means`.
    """
    listed, limits, sides = _Listed.of(chosen), exponents(laws), _in_longer(cell)
    shape, points = chosen.shape[:2], listed.points
    own = means.reshape(-1, 2)[listed.which].astype(np.float32)

    def look(block: NearBlock, out: NDArray[np.float32]) -> None:
        _look(block, limits, points, shape, sides, _SPLINE, own, _NO_SUMS, out)

    found = over_blocks(laws.near(math.inf), lambda: np.zeros(len(own), np.float32), look)
    return listed.slopes(found, levels, cell)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Points one after another: where those of each square begin, and their numbers in it."""

    points: tuple[IntArray, IntArray]
    which: NDArray[np.intp]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, chosen: Chosen) -> Self:
        flat = chosen.reshape(-1, chosen.shape[2] * chosen.shape[3])
        which = np.flatnonzero(flat)
        first = np.concatenate([[0], np.cumsum(flat.sum(axis=1))]).astype(np.int64)
        return cls((first, (which % flat.shape[1]).astype(np.int64)), which, chosen.shape)

    def means(self, found: list[FloatArray]) -> FloatArray:
        """Means from the sums of shares of the reports."""
        sums = np.add.reduce(found)
        means = np.zeros((math.prod(self.shape), 2))
        means[self.which] = sums[:, 1:] / np.where(sums[:, :1] > 0.0, sums[:, :1], 1.0)
        return means.reshape(*self.shape, 2)

    def slopes(
        self, found: list[NDArray[np.float32]], levels: FloatArray, cell: tuple[float, float]
    ) -> FloatArray:
        """Slopes from the largest |G - m|^2 of shares of the reports."""
        flat = np.zeros(math.prod(self.shape))
        flat[self.which] = np.maximum.reduce(found)
        best, (rows, cols) = flat.reshape(self.shape), self.shape[:2]
        share_points(best)
        t = _POINTS + 0.5
        ends = np.stack([1.0 - t, t])
        four = np.stack([[levels[a : a + rows, b : b + cols] for b in (0, 1)] for a in (0, 1)])
        eps = np.einsum("ax,by,abij->ijxy", ends, ends, four) * max(cell)
        return np.asarray(np.sqrt(best) / eps)


def _in_longer(cell: tuple[float, float]) -> tuple[float, float]:
    """Sides of a cell in units of the longer: single precision has no room for metres squared."""
    return cell[0] / max(cell), cell[1] / max(cell)


def point_grid(values: FloatArray) -> FloatArray:
    """Values (rows, cols, 5, 5) at the points of squares, on one grid, the larger at each point."""
    rows, cols = values.shape[:2]
    out = np.zeros((PARTS * rows + 1, PARTS * cols + 1))
    for a in range(PARTS + 1):
        for b in range(PARTS + 1):
            here = out[a : a + PARTS * rows : PARTS, b : b + PARTS * cols : PARTS]
            np.maximum(here, values[:, :, a, b], out=here)
    return out


@kernel
def _nodes_around(i: int, j: int, shape: Any, where: Any, cells: Any) -> None:
    """The cells of the nine nodes around one."""
    around(i, j, shape, cells)
    for m in range(9):
        cells[m] = where[0] + cells[m] // shape[1] * where[1] + cells[m] % shape[1]


@kernel
def _look(
    block: Any,
    limits: Any,
    points: Any,
    shape: Any,
    cell: Any,
    spline: Any,
    means: Any,
    sums: Any,
    best: Any,
) -> None:
    """Add a block's masses and masses times G_x, G_y at the points of each square to `sums`.

    And raise `best` to the largest |G - m|^2 over its reports.  One of the two may be empty.
    `points` are listed square by square: where each begins, and their numbers in it, in order.
    """
    D, shares, seen, where, masses, most = block
    floor, halvings = limits
    first, which = points
    count = len(spline[0])
    ih, iw = np.float32(1.0 / cell[0]), np.float32(1.0 / cell[1])
    cells, sides = np.empty(9, np.int64), np.empty((6, LANES), np.float32)
    nine, middle = np.empty((10, LANES), np.float32), np.arange(9)
    for i in range(shape[0]):
        for j in range(seen[i, 0], seen[i, 1]):
            here, own = i * shape[1] + j, where[0] + i * where[1] + j
            if first[here] == first[here + 1]:
                continue
            counts = len(sums) > 0 and most - masses[0] * least(D, own) >= floor[here]
            if not counts and len(best) == 0:
                continue
            _nodes_around(i, j, shape, where, cells)
            around_node(D, cells, shares, masses, nine)
            fall = np.float32(1.0 / (1 << halvings[here])), halvings[here]
            row = -1
            for point in range(first[here], first[here + 1]):
                v, h = which[point] // count, which[point] % count
                if v != row:
                    columns(nine, 4, middle, at_point(spline, v, ih), sides)
                    row = v
                along = at_point(spline, h, iw)
                if counts:
                    add_at_point(sides, nine, 9, along, fall, sums, point)
                if len(best):
                    mean = means[point, 0], means[point, 1]
                    best[point] = max(best[point], steepest_at_point(sides, along, mean))
