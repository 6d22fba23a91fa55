"""The laws of a built map as blocks of 64 reports, each seen only from where it is near.

From a place farther than the horizon from all reports of a block, these are alike: the logarithms
of their masses are the same at all nine nodes around it.  So a block is filled where one of its
reports is nearer, and two nodes beyond; elsewhere its `top` is -inf, and nothing of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from whereish.arrays import IntArray
from whereish.compiled import kernel
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.windows import BORDER, near_distances, nothing_reached
from whereish.solvers.splines.blocks import Block

__all__ = ["report_blocks", "report_shares"]

_SEEN = 1  # nodes from which a report is near, to squares that see it: one of nine nodes is near
_FILLED = 2  # to the nodes that these squares look at
_SHARES = 4  # at most; each takes the memory of a block over all nodes
_FEW_BLOCKS = 4  # in a share, at least


def report_shares(built: BuiltLaw) -> list[Iterator[Block]]:
    """The blocks of all reports, dealt out to shares that can be looked at side by side.

    How many there are depends on the law alone, so that sums over them do, too.
    """
    blocks = -(-int(np.count_nonzero(built.law.weights)) // LANES)
    count = max(1, min(_SHARES, blocks // _FEW_BLOCKS))

    def share(first: int) -> Iterator[Block]:
        return (block for _, block in report_blocks(built, first=first, step=count))

    return [share(first) for first in range(count)]


def report_blocks(
    built: BuiltLaw, *, first: int = 0, step: int = 1
) -> Iterator[tuple[IntArray, Block]]:
    """Up to 64 reports at a time, with their logarithms and masses over the map's nodes.

    Every `step`-th block is made, from the `first` on.
    """
    law, metric, frame = built.law, built.law.metric, built.frame
    table = law.table / float(law.table[0])
    logs, masses = np.log(table).astype(np.float32), table.astype(np.float32)
    shares = (law.weights / float(law.weights.max())).astype(np.float32)
    order = metric.order[law.weights[metric.order] > 0]
    rows, cols = metric.shape
    nodes = built.used.size
    D, reach = nothing_reached(rows, cols, LIMIT)
    A, E = np.empty((nodes, LANES), np.float32), np.empty((nodes, LANES), np.float32)
    top = np.empty(nodes, np.float32)
    for start in range(first * LANES, len(order), step * LANES):
        near_distances(D, metric.edges, metric.offsets, rows, cols, order, start, reach, LIMIT)
        reports = order[start : start + LANES]
        _fill(D, reach, rows, cols, frame, shares[reports], logs, masses, A, E, top)
        yield reports, (A, E, top)


@kernel
def _fill(
    D: Any,
    reach: Any,
    rows: int,
    cols: int,
    frame: int,
    shares: Any,
    logs: Any,
    masses: Any,
    A: Any,
    E: Any,
    top: Any,
) -> None:
    """Logarithms and masses of a block's reports, from distances within `reach`."""
    share = np.zeros(LANES, np.float32)
    share[: len(shares)] = shares
    pitch, wide = cols + 2 * BORDER, cols - 2 * frame
    top[:] = -np.inf
    for i in range(frame, rows - frame):
        first, last = cols, -1
        for r in range(max(i - _FILLED, 0), min(i + _FILLED + 1, rows)):
            first, last = min(first, reach[r, 0]), max(last, reach[r, 1])
        for j in range(max(first - _FILLED, frame), min(last + _FILLED, cols - frame - 1) + 1):
            c, at = (i + BORDER) * pitch + j + BORDER, (i - frame) * wide + j - frame
            for lane in range(LANES):
                # A short block repeats its last report, without mass: no sum, no maximum changes.
                d = D[c, min(lane, len(shares) - 1)]
                A[at, lane] = logs[d]
                E[at, lane] = masses[d] * share[lane]
        first, last = cols, -1
        for r in range(max(i - _SEEN, 0), min(i + _SEEN + 1, rows)):
            first, last = min(first, reach[r, 0]), max(last, reach[r, 1])
        for j in range(max(first - _SEEN, frame), min(last + _SEEN, cols - frame - 1) + 1):
            c, at = (i + BORDER) * pitch + j + BORDER, (i - frame) * wide + j - frame
            nearest = D[c, 0]
            for lane in range(len(shares)):
                nearest = min(nearest, D[c, lane])
            top[at] = logs[nearest]
