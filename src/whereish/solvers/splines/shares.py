"""Shares of edges in use: of the sides of the squares between nodes, and of what crosses these.

The slope of a spline at the centre of a square between four nodes is that of its sides, two and
two; in the middle of a side it is mostly that of this side; at a node, of the sides that meet
there.  So every side has a share of its own, and all edges that cross a square have one together,
and what a share leaves room for is told by the slopes at the points around: a share falls as the
largest of them is above 1, and may rise as all of them are below.  Where none can rise any more,
every side has a place beside it at which the whole of eps is used.

Shares that differ from side to side bend the shortest paths of far reports, and where these part
and meet the spline is steeper than any side is.  So what lies around a side that falls falls a
quarter as much (`spread`), and no side rises by more than those around it (`smoothed`): a side that
fell alone would push those beside it over, and these others in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS, edge_slices
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.splines.corners import corner_prices
from whereish.solvers.splines.points import PARTS

__all__ = ["EdgeShares", "spread"]

_AROUND = PARTS // 2  # points along each axis: half a square, to the middles of what is beside
_BESIDE = _AROUND + 1  # of a side, along one axis or the other: and one more
_LEAST = 0.5  # a slope below that leaves as much room as that
_SPREAD, _REACH = 0.25, PARTS - 1  # of what is too much, to the points so far away along each axis
_SMOOTHINGS = 2  # with a quarter of what is on either side: a standard deviation of one side


@dataclass(frozen=True, eq=False)
class EdgeShares:
    """Shares of edges between (rows, cols) nodes.

    Attributes
    ----------
    east : (rows, cols - 1) of sides from a node to the next in its row.
    north : (rows - 1, cols) of sides from a node to the next in its column.
    crossing : of all edges that cross a square; a single row or column of nodes has one row or
        column of squares, through which no edge goes.
    """

    east: FloatArray
    north: FloatArray
    crossing: FloatArray

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> EdgeShares:
        """All of every edge between so many nodes."""
        rows, cols = shape
        return cls(
            np.ones((rows, cols - 1)),
            np.ones((rows - 1, cols)),
            np.ones((max(rows - 1, 1), max(cols - 1, 1))),
        )

    @classmethod
    def up_to(
        cls, most: NDArray[np.uint16], edges: NDArray[np.uint16], frame: int, neighbours: int
    ) -> EdgeShares:
        """The shares of a framed grid's edges at which they are `most`, along each step.

        Edges that cross a square are measured by its diagonals.
        """
        steps = list(STENCILS[neighbours])
        inner = edges[frame : edges.shape[0] - frame, frame : edges.shape[1] - frame]
        rows, cols = inner.shape[:2]
        ratio = most / np.maximum(inner.astype(np.float64), 1.0)
        if 1 in (rows, cols):
            crossing = np.full((max(rows - 1, 1), max(cols - 1, 1)), np.inf)
        else:
            crossing = np.maximum(
                ratio[:-1, :-1, steps.index((1, 1))], ratio[:-1, 1:, steps.index((1, -1))]
            )
        east, north = steps.index((0, 1)), steps.index((1, 0))
        return cls(ratio[:, :-1, east], ratio[:-1, :, north], crossing)

    @classmethod
    def left_by(cls, slopes: FloatArray) -> EdgeShares:
        """What slopes on a grid of points (as shares of eps) leave: 1 over the largest around."""
        rows, cols = ((count - 1) // PARTS for count in slopes.shape)

        def room(most: FloatArray, down: bool, across: bool) -> FloatArray:
            first = [PARTS if half else PARTS // 2 for half in (down, across)]
            counts = [max(n - half, 1) for n, half in ((rows, down), (cols, across))]
            last = [start + PARTS * n for start, n in zip(first, counts, strict=True)]
            here = most[first[0] : last[0] : PARTS, first[1] : last[1] : PARTS]
            return np.asarray(1.0 / np.maximum(here, _LEAST))

        sides = np.maximum(
            _largest_within(slopes, _BESIDE, _AROUND), _largest_within(slopes, _AROUND, _BESIDE)
        )
        return cls(
            room(sides, False, True)[:, : cols - 1],
            room(sides, True, False)[: rows - 1],
            room(_largest_within(slopes, _AROUND, _AROUND), True, True),
        )

    def times(self, other: EdgeShares | float) -> EdgeShares:
        """All shares times others."""
        if isinstance(other, EdgeShares):
            factors = other.east, other.north, other.crossing
            parts = zip((self.east, self.north, self.crossing), factors, strict=True)
            return EdgeShares(*(a * b for a, b in parts))
        return EdgeShares(self.east * other, self.north * other, self.crossing * other)

    def at_most(self, other: EdgeShares) -> EdgeShares:
        """All shares, none above others."""
        return EdgeShares(
            np.minimum(self.east, other.east),
            np.minimum(self.north, other.north),
            np.minimum(self.crossing, other.crossing),
        )

    def damped(self, rising: float) -> EdgeShares:
        """Where they are above 1, to that power; with 0 none is above 1."""
        parts = self.east, self.north, self.crossing
        return EdgeShares(*(np.where(part > 1.0, part**rising, part) for part in parts))

    def smoothed(self) -> EdgeShares:
        """Where they are above 1, no more than the geometric mean around, but at least 1."""
        parts = self.east, self.north, self.crossing
        return EdgeShares(
            *(np.where(part > 1.0, np.clip(_mean_around(part), 1.0, part), part) for part in parts)
        )

    def mean(self) -> float:
        """The mean share of the sides of squares."""
        return float((self.east.sum() + self.north.sum()) / (self.east.size + self.north.size))

    def of(self, edges: NDArray[np.uint16], frame: int, neighbours: int) -> NDArray[np.uint16]:
        """These shares of the edges of a framed grid, rounded down; in the frame the outermost."""
        crossing = np.pad(self.crossing, frame, mode="edge")
        means = corner_prices(crossing, (1.0, 1.0), neighbours=neighbours, tight=False)
        out = edges.copy()
        for k, (di, dj) in enumerate(STENCILS[neighbours]):
            tail, _ = edge_slices(edges.shape[:2], (di, dj))
            if not edges[*tail, k].size:
                continue
            if di and dj:
                share = means[*tail, k] / math.hypot(di, dj)
            else:
                share = np.pad(self.north if di else self.east, frame, mode="edge")
            out[*tail, k] = np.minimum(np.floor(edges[*tail, k] * share + 1e-6), LIMIT)
        return out


def spread(slopes: FloatArray) -> FloatArray:
    """Slopes on a grid of points (shares of eps), at least a quarter of what is above 1 around."""
    around = _largest_within(slopes - 1.0, _REACH, _REACH)
    return np.where(around > 0.0, np.maximum(slopes, 1.0 + _SPREAD * around), slopes)


def _mean_around(shares: FloatArray) -> FloatArray:
    """Geometric means, weighted by a bell that is about a side wide."""
    if not shares.size:
        return shares
    logs = np.log(shares)
    for axis in (0, 1) * _SMOOTHINGS:
        pads = [(0, 0), (0, 0)]
        pads[axis] = (1, 1)
        wide, count = np.pad(logs, pads, mode="edge"), logs.shape[axis]
        before, after = (np.take(wide, range(k, k + count), axis) for k in (0, 2))
        logs = (before + 2.0 * logs + after) / 4.0
    return np.asarray(np.exp(logs))


def _largest_within(grid: FloatArray, down: int, across: int) -> FloatArray:
    """The largest value, at least 0, within so many points along each axis."""
    for axis, reach in ((0, down), (1, across)):
        count, pads = grid.shape[axis], [(0, 0), (0, 0)]
        pads[axis] = (reach, reach)
        wide = np.pad(grid, pads)
        shifted = [np.take(wide, range(k, k + count), axis) for k in range(2 * reach + 1)]
        grid = np.maximum.reduce(shifted)
    return grid
