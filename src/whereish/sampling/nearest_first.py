"""Drawing a report by growing shortest paths from the secret, nearest cells first.

The masses k_y·t[D(u, y)] of :mod:`~whereish.solvers.geodesic.masses` sum to Z(u).  For V uniform on
0 .. Z(u) - 1, cells are settled in the order of their distance (Dial's bucket
queue, exact on integer weights) and their masses added until the sum exceeds V:
the cell that does it is the report.  Cells at the horizon or beyond come last, in
the order of the grid.  Nothing is stored per pair, and most draws settle a few
hundred cells; so the time tells how far the draw went.  :func:`draw_padded` does
the same amount of work whatever the secret and the draw: a fixed number of
sweeps, then a sum over all cells without an early end.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances, padded_cell

__all__ = ["Graph", "Masses", "Space", "Workspaces", "draw", "draw_padded", "grow", "reach"]


Graph = tuple[NDArray[np.uint16], IntArray]
"""Edges and offsets of a graph metric."""
Masses = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Weights of the padded cells, 0 in the border, and the table of what a distance leaves."""
Space = tuple[
    NDArray[np.uint16],
    NDArray[np.bool_],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
]
"""Scratch memory of a draw: distances, settled and touched cells, buckets and their queue."""


class Workspaces:
    """Scratch memory for draws on one graph: clean between draws, every thread has its own."""

    def __init__(self, edges: NDArray[np.uint16]) -> None:
        self._edges = edges
        self._local = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to other processes: not the memory of this one's threads."""
        return Workspaces, (self._edges,)

    def mine(self) -> Space:
        """That of the calling thread."""
        found: Space | None = getattr(self._local, "space", None)
        if found is None:
            found = self._local.space = _new_space(self._edges)
        return found


def _new_space(edges: NDArray[np.uint16]) -> Space:
    _, cells, half = edges.shape
    longest = int(edges[edges < LIMIT].max(initial=0))
    return (
        np.full(cells, LIMIT, np.uint16),
        np.zeros(cells, np.bool_),
        np.empty(cells, np.int32),
        np.full(1 << longest.bit_length(), -1, np.int32),
        # A cell enters the queue at most once per neighbour.
        np.empty((cells * 2 * half + 1, 3), np.int32),
    )


@kernel
def _begin(source: int, distance: Any, touched: Any, bucket: Any, queue: Any) -> None:
    """The source is the one cell that waits."""
    distance[source] = 0
    touched[0] = source
    queue[0, 0], queue[0, 1], queue[0, 2] = source, -1, 0
    bucket[0] = 0


@kernel
def _settle(
    now: int, waiting: int, distance: Any, settled: Any, bucket: Any, queue: Any
) -> tuple[Any, int, int]:
    """Settle the nearest cell that waits, -1 if none does; its distance, and how many wait yet."""
    mask = len(bucket) - 1
    while waiting > 0:
        entry = bucket[now & mask]
        if entry < 0:
            now += 1
            continue
        bucket[now & mask] = queue[entry, 1]
        waiting -= 1
        cell = queue[entry, 0]
        if not settled[cell] and distance[cell] == now:
            settled[cell] = True
            return cell, now, waiting
    return np.int32(-1), now, waiting


@kernel
def _spread(
    edges: Any,
    offsets: Any,
    cell: int,
    now: int,
    distance: Any,
    touched: Any,
    bucket: Any,
    queue: Any,
    marks: int,
    entries: int,
) -> tuple[int, int]:
    """Relax the neighbours of a settled cell; cells touched and entries of the queue after it."""
    mask, count = len(bucket) - 1, len(offsets)
    for k in range(2 * count):
        if k < count:
            weight, other = edges[0, cell, k], cell - offsets[k]
        else:
            weight, other = edges[1, cell, k - count], cell + offsets[k - count]
        far = now + np.int64(weight)
        if far < distance[other]:
            if distance[other] == LIMIT:
                touched[marks] = other
                marks += 1
            distance[other] = far
            queue[entries, 0] = other
            queue[entries, 1] = bucket[far & mask]
            queue[entries, 2] = far & mask
            bucket[far & mask] = entries
            entries += 1
    return marks, entries


@kernel
def _clean(
    distance: Any,
    settled: Any,
    touched: Any,
    bucket: Any,
    queue: Any,
    marks: int,
    entries: int,
) -> None:
    """Leave the scratch memory as it was found."""
    for entry in range(entries):
        bucket[queue[entry, 2]] = -1
    for mark in range(marks):
        distance[touched[mark]] = LIMIT
        settled[touched[mark]] = False


@kernel
def grow(graph: Any, masses: Any, source: int, threshold: Any, space: Any) -> int:
    """The padded cell whose mass takes the sum above `threshold`, or -1 beyond the horizon."""
    edges, offsets = graph
    weights, decay = masses
    distance, settled, touched, bucket, queue = space
    _begin(source, distance, touched, bucket, queue)
    marks, entries, waiting = 1, 1, 1
    total, found, now = np.uint64(0), -1, 0
    while found < 0:
        cell, now, waiting = _settle(now, waiting, distance, settled, bucket, queue)
        if cell < 0:
            break
        total += weights[cell] * decay[now]
        if total > threshold:
            found = cell
            break
        marks, more = _spread(
            edges, offsets, cell, now, distance, touched, bucket, queue, marks, entries
        )
        waiting, entries = waiting + more - entries, more
    if found < 0:
        far = decay[LIMIT]
        for cell in range(len(settled)):
            if not settled[cell]:
                total += weights[cell] * far
                if total > threshold:
                    found = cell
                    break
    _clean(distance, settled, touched, bucket, queue, marks, entries)
    return found


@kernel
def reach(graph: Any, source: int, targets: Any, found: Any, space: Any) -> None:
    """Distances from `source` to a few cells into `found`, LIMIT where they reach the horizon.

    Nearest cells first, until all targets are settled.
    """
    edges, offsets = graph
    distance, settled, touched, bucket, queue = space
    _begin(source, distance, touched, bucket, queue)
    marks, entries, waiting = 1, 1, 1
    now, missing = 0, len(targets)
    for k in range(len(targets)):
        found[k] = LIMIT
    while missing > 0:
        cell, now, waiting = _settle(now, waiting, distance, settled, bucket, queue)
        if cell < 0:
            break
        for k in range(len(targets)):
            if targets[k] == cell:
                found[k] = now
                missing -= 1
        marks, more = _spread(
            edges, offsets, cell, now, distance, touched, bucket, queue, marks, entries
        )
        waiting, entries = waiting + more - entries, more
    _clean(distance, settled, touched, bucket, queue, marks, entries)


@kernel
def draw(
    graph: Graph,
    masses: Masses,
    sources: IntArray,
    thresholds: NDArray[np.uint64],
    space: Space,
) -> IntArray:
    """One report per source (padded cells)."""
    out = np.empty(len(sources), np.int64)
    for i in range(len(sources)):
        out[i] = grow(graph, masses, sources[i], thresholds[i], space)
    return out


@kernel
def draw_padded(
    edges: NDArray[np.uint16],
    offsets: IntArray,
    rows: int,
    cols: int,
    weights: NDArray[np.uint64],
    decay: NDArray[np.uint64],
    sources: IntArray,
    thresholds: NDArray[np.uint64],
    sweeps: int,
) -> IntArray:
    """Reports for at most 64 sources, in time that depends on neither source nor draw.

    `sources` and `thresholds` must have 64 entries; fill with any cell and threshold 0.
    """
    pitch = cols + 2 * BORDER
    D = np.empty(((rows + 2 * BORDER) * pitch, LANES), np.uint16)
    batch_distances(D, edges, offsets, rows, cols, sources, sweeps)
    total = np.zeros(LANES, np.uint64)
    passed = np.zeros(LANES, np.int64)
    for i in range(rows):
        base = (i + BORDER) * pitch + BORDER
        for c in range(base, base + cols):
            weight = weights[c]
            for lane in range(LANES):
                total[lane] += weight * decay[D[c, lane]]
                passed[lane] += np.int64(total[lane] <= thresholds[lane])
    out = np.empty(LANES, np.int64)
    for lane in range(LANES):
        cell = passed[lane]
        out[lane] = padded_cell(cell, cols)
    return out
