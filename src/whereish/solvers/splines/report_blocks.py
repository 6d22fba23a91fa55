"""The laws of a built map as blocks of 64 reports, each seen only from where it is near.

From a place farther than the horizon from all reports of a block, these are alike: the logarithms
of their masses are the same at all nine nodes around it.  So a block is filled where one of its
reports is nearer, and two nodes beyond; elsewhere its `top` is -inf, and nothing of it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.compiled import kernel
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.windows import BORDER, near_distances, nothing_reached
from whereish.solvers.splines.blocks import Block
from whereish.solvers.splines.points import NearBlock, near_block

__all__ = ["near_shares", "report_blocks", "report_shares"]

_SEEN = 1  # nodes from which a report is near, to squares that see it: one of nine nodes is near
_FILLED = 2  # to the nodes that these squares look at
_SHARES = 4  # at most; each takes the memory of a block over all nodes
_FEW_BLOCKS = 4  # in a share, at least


def report_shares(built: BuiltLaw, with_masses: bool = True) -> list[Iterator[Block]]:
    """The blocks of all reports, dealt out to shares that can be looked at side by side.

    How many there are depends on the law alone, so that sums over them do, too.
    """
    count = _count(built)

    def share(first: int) -> Iterator[Block]:
        return (
            block
            for _, block in report_blocks(built, first=first, step=count, with_masses=with_masses)
        )

    return [share(first) for first in range(count)]


def near_shares(built: BuiltLaw, farthest: float) -> list[Iterator[NearBlock]]:
    """The same as distances, which may end at so many nats."""
    horizon = min(math.ceil(min(farthest / built.law.metric.quantum, LIMIT)), LIMIT)
    count = _count(built)
    return [_near_blocks(built, first, count, horizon) for first in range(count)]


def _count(built: BuiltLaw) -> int:
    blocks = -(-int(np.count_nonzero(built.law.weights)) // LANES)
    return max(1, min(_SHARES, blocks // _FEW_BLOCKS))


def _batches(
    built: BuiltLaw, first: int, step: int, horizon: int = LIMIT
) -> Iterator[tuple[IntArray, NDArray[np.float32], NDArray[np.uint16], IntArray]]:
    """Reports, their shares of the largest weight, distances from them, and where these reach.

    A short batch repeats its last report, without mass: no sum, no maximum changes.
    """
    law, metric = built.law, built.law.metric
    weights = (law.weights / float(law.weights.max())).astype(np.float32)
    order = metric.order[law.weights[metric.order] > 0]
    grid = metric.edges, metric.offsets, *metric.shape
    D, reach = nothing_reached(*metric.shape, horizon)
    for start in range(first * LANES, len(order), step * LANES):
        near_distances(D, *grid, order, start, reach, horizon)
        reports = order[start : start + LANES]
        if len(reports) < LANES:
            _repeat_last(D, reach, metric.shape[1], len(reports))
        shares = np.zeros(LANES, np.float32)
        shares[: len(reports)] = weights[reports]
        yield reports, shares, D, reach


def _near_blocks(built: BuiltLaw, first: int, step: int, horizon: int) -> Iterator[NearBlock]:
    metric, frame = built.law.metric, built.frame
    where = (frame + BORDER) * metric.pitch + frame + BORDER, metric.pitch
    for _, shares, D, reach in _batches(built, first, step, horizon):
        seen = _seen(reach, frame, metric.shape[1])
        yield near_block(D, shares, seen, where, metric.quantum, all_count=False)


def report_blocks(
    built: BuiltLaw, *, first: int = 0, step: int = 1, with_masses: bool = True
) -> Iterator[tuple[IntArray, Block]]:
    """Up to 64 reports at a time, with their logarithms and masses over the map's nodes.

    Every `step`-th block is made, from the `first` on.  Where masses are not asked for, they are
    anything.
    """
    law, shape = built.law, built.law.metric.shape
    table = law.table / float(law.table[0])
    tables = np.log(table).astype(np.float32), table.astype(np.float32)
    nodes = built.used.size
    A, E = np.empty((nodes, LANES), np.float32), np.empty((nodes, LANES), np.float32)
    top = np.empty(nodes, np.float32)
    for reports, shares, D, reach in _batches(built, first, step):
        share = shares if with_masses else shares[:0]
        _fill(D, reach, shape, built.frame, share, tables, (A, E, top))
        yield reports, (A, E, top)


@kernel
def _fill(
    D: Any,
    reach: Any,
    shape: Any,
    frame: int,
    shares: Any,
    tables: Any,
    block: Any,
) -> None:
    """Logarithms and masses of a block's reports, from distances within `reach`.

    With no `shares` there are no masses.
    """
    rows, cols = shape
    logs, masses = tables
    A, E, top = block
    pitch, wide = cols + 2 * BORDER, cols - 2 * frame
    top[:] = -np.inf
    for i in range(frame, rows - frame):
        first, last = _columns_near(reach, i, _FILLED, frame, cols)
        for j in range(first, last):
            c, at = (i + BORDER) * pitch + j + BORDER, (i - frame) * wide + j - frame
            _looked_up(D[c], logs, A[at])
            if len(shares):
                _looked_up(D[c], masses, E[at])
                _scale(E[at], shares)
        first, last = _columns_near(reach, i, _SEEN, frame, cols)
        for j in range(first, last):
            c, at = (i + BORDER) * pitch + j + BORDER, (i - frame) * wide + j - frame
            top[at] = logs[_least(D[c])]


@kernel
def _columns_near(reach: Any, i: int, nodes: int, frame: int, cols: int) -> tuple[int, int]:
    """From which column to which some report is within so many nodes of the i-th row."""
    first, last = cols, -1
    for r in range(max(i - nodes, 0), min(i + nodes + 1, len(reach))):
        first, last = min(first, reach[r, 0]), max(last, reach[r, 1])
    return max(first - nodes, frame), min(last + nodes, cols - frame - 1) + 1


@kernel
def _seen(reach: Any, frame: int, cols: int) -> Any:
    """From which column to which nodes of each row see a report near, all without the frame."""
    seen = np.empty((len(reach) - 2 * frame, 2), np.int64)
    for i in range(len(seen)):
        first, last = _columns_near(reach, i + frame, _SEEN, frame, cols)
        seen[i, 0], seen[i, 1] = first - frame, last - frame
    return seen


@kernel
def _looked_up(distances: Any, table: Any, out: Any) -> None:
    for lane in range(LANES):
        out[lane] = table[distances[lane]]


@kernel
def _scale(numbers: Any, shares: Any) -> None:
    for lane in range(LANES):
        numbers[lane] *= shares[lane]


@kernel
def _least(distances: Any) -> Any:
    least = distances[0]
    for lane in range(1, LANES):
        least = min(least, distances[lane])
    return least


@kernel
def _repeat_last(D: Any, reach: Any, cols: int, count: int) -> None:
    """Let the lanes from the `count`-th on be the one before, wherever anything was reached."""
    for i in range(len(reach)):
        base = (i + BORDER) * (cols + 2 * BORDER) + BORDER
        for c in range(base + reach[i, 0], base + reach[i, 1] + 1):
            D[c, count:] = D[c, count - 1]
