"""Products with what is near alone, for many vectors and one metric.

Within H = 8 nats of a place lies all but 0.3% of a planar Laplace law, on a tenth to a quarter of
the pairs that :meth:`GraphMetric.product` visits.  Solvers take most of their steps with

    N = max(e^{-d} - e^{-H}, 0)

and hold what is far, E - N, in between.  Searches start from the cells at which a vector is not 0,
which on narrow or rough maps are few: N is symmetric.  Distances are kept from one product to the
next as far as they fit into a fixed memory, and searched for again beyond that: adding up a kept
batch takes a third of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.randomness import ForkSafeLock
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.sweeps import kept_window, spread_window
from whereish.solvers.geodesic.windows import near_distances, nothing_reached
from whereish.threads import in_threads

__all__ = ["NEAR", "NearProduct"]

NEAR = 8.0
"""Nats within which pairs count."""

_FEW_CELLS = 1024  # whose products take less than loading the kernels of kept distances
_KEPT_BYTES = 5 * 2**27  # 640 MB
_SHARES = 8  # of the batches, which are taken side by side
_IDLE = 0.7  # of the sources in use: fewer, and batches are made anew

Window = tuple[NDArray[np.uint16], IntArray, IntArray]
"""Distances of a batch, where their rows start, and which columns of each row they reach."""


@dataclass(eq=False)
class _Batch:
    """Up to 64 sources among the cells `first` to `end` of the metric's order."""

    first: int
    end: int
    sources: IntArray
    kept: Window | None = None


class NearProduct:
    """v -> N·v, for vectors over the cells of a metric.

    Parameters
    ----------
    metric : what distances are measured by.
    kept_bytes : memory for distances that are kept.
    """

    def __init__(self, metric: GraphMetric, *, kept_bytes: int = _KEPT_BYTES) -> None:
        self.metric = metric
        self._horizon = round(NEAR / metric.quantum)
        self._rate = np.float32(metric.quantum / math.log(2.0))
        self._memory = self._room = kept_bytes
        self._lock = ForkSafeLock()
        self._batches: list[_Batch] = []
        self._sources = np.zeros(metric.cells, np.bool_)

    def __call__(self, values: FloatArray) -> FloatArray:
        metric = self.metric
        if metric.cells <= _FEW_CELLS:
            return metric.product(values, horizon=NEAR)
        self._admit(values != 0)
        size = -(-len(self._batches) // _SHARES) or 1
        parts = [self._batches[k : k + size] for k in range(0, len(self._batches), size)]
        spread = in_threads(partial(self._spread, values), parts)
        return np.add.reduce(spread) if spread else np.zeros(metric.cells)

    def _spread(self, values: FloatArray, batches: list[_Batch]) -> FloatArray:
        """What the sources of some batches add."""
        metric, (rows, cols) = self.metric, self.metric.shape
        out, shares = np.zeros(metric.cells), np.zeros(LANES, np.float32)
        D, reach = nothing_reached(rows, cols, self._horizon)
        for batch in batches:
            window = batch.kept
            if window is None:
                grid = metric.edges, metric.offsets, rows, cols
                near_distances(D, *grid, batch.sources, 0, reach, self._horizon)
                window = *kept_window(D, reach, cols), reach
                if self._has_room(window[0].nbytes):
                    batch.kept = *window[:2], reach.copy()
            shares[:] = 0.0
            shares[: len(batch.sources)] = values[batch.sources]
            spread_window(*window, cols, shares, self._rate, self._horizon, out)
        return out

    def _has_room(self, wanted: int) -> bool:
        """Take memory from what is left, if that is enough."""
        with self._lock:
            if wanted > self._room:
                return False
            self._room -= wanted
            return True

    def _admit(self, used: NDArray[np.bool_]) -> None:
        """Batches for all cells that are `used`, keeping those that have their sources already."""
        order, fresh = self.metric.order, used & ~self._sources
        if np.count_nonzero(used) < _IDLE * np.count_nonzero(self._sources | fresh):
            self._batches, self._room = [], self._memory
        if not self._batches:
            self._batches = list(_batches(order, used, 0, len(order)))
            self._sources = used.copy()
            return
        if not fresh.any():
            return
        batches = []
        for batch in self._batches:
            if not fresh[order[batch.first : batch.end]].any():
                batches.append(batch)
                continue
            if batch.kept is not None:
                self._room += batch.kept[0].nbytes
            self._sources[batch.sources] = False
            batches += _batches(order, used, batch.first, batch.end)
        self._batches = batches
        self._sources |= used


def _batches(order: IntArray, used: NDArray[np.bool_], first: int, end: int) -> Iterator[_Batch]:
    """The used cells between two places of the order, in as few batches, all about as large."""
    at = first + np.flatnonzero(used[order[first:end]])
    parts = np.array_split(at, max(-(-len(at) // LANES), 1))
    bounds = [first, *(int(part[0]) for part in parts[1:]), end]
    for part, begin, stop in zip(parts, bounds[:-1], bounds[1:], strict=True):
        yield _Batch(begin, stop, order[part])
