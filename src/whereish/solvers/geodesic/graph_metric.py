"""The discrete privacy metric: exact shortest paths in integers.

Edge prices (:mod:`~whereish.privacy.maps.stencil`) are rounded DOWN to multiples of a quantum
q = horizon / 65535 and shortest paths saturate at the horizon.  Then d = q·D is
symmetric, keeps the triangle inequality exactly, is nowhere above the line
integrals of eps, and min(d, horizon) is a metric again, under which every
report remains possible for every secret.  (Fast marching has neither symmetry
nor the triangle inequality: see :mod:`~whereish.solvers.geodesic.fast_marching`.)

All pairs are never stored: a product with E = e^{-d} searches from 64 sources at
a time and forgets (:mod:`~whereish.solvers.geodesic.sweeps`).  Shares of the sources are taken
side by side, and put together in their order: products do not depend on how many threads there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.privacy.maps.stencil import STENCILS, edge_slices
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.masses import check_sums, checked_weights
from whereish.solvers.geodesic.sweeps import (
    BORDER,
    batch_distances,
    exact_sums,
    products,
    settle,
    spread_products,
)
from whereish.threads import in_threads

__all__ = ["HORIZON", "LARGEST_MAP", "GraphMetric"]

_Sums = TypeVar("_Sums", FloatArray, NDArray[np.uint64])

HORIZON = 22.0
"""Distances saturate here: e^-22 of the weight of a near cell is 3e-10."""

LARGEST_MAP = 2**18
"""Cells of the largest map: all pairs of 512 x 512 take minutes per product."""

_TILE = 8  # sources of one batch form a tile of 8 x 8 cells, which settle in few sweeps
_SHARES = 8  # of a product's sources, at most
_FEW_BATCHES = 4  # in a share, at least
_SPARSE = 0.9  # of the cells: where a vector has fewer that are not 0, searches start from these


@dataclass(frozen=True, eq=False)
class GraphMetric:
    """A shortest-path metric on a grid, in integer multiples of a quantum.

    Attributes
    ----------
    weights : (rows, cols, neighbours/2) uint16, the edges of the half stencil from each
        cell, in quanta; 65535 where there is no edge.
    quantum : the unit of all distances.
    """

    weights: NDArray[np.uint16]
    quantum: float

    @classmethod
    def from_prices(
        cls, prices: FloatArray, *, horizon: float = HORIZON, keep: float = 1.0
    ) -> GraphMetric:
        """Round `keep`·prices down to quanta of ``horizon / 65535``."""
        rows, cols, half = prices.shape
        # Nodes may be the corners of cells: what counts is the squares between them.
        if max(rows - 1, 1) * max(cols - 1, 1) > LARGEST_MAP:
            raise InvalidInput(
                f"a privacy map must have at most {LARGEST_MAP:,} cells (512 x 512);"
                f" got {rows} x {cols}: use larger cells or a smaller region"
            )
        if 2 * half not in STENCILS:
            raise InvalidInput(f"neighbours must be one of 8, 16, 32; got {2 * half}")
        quantum = horizon / LIMIT
        # The reserve of 1e-12 covers the rounding of the integrals themselves.
        quanta = np.floor(prices * (keep * (1.0 - 1e-12) / quantum))
        return cls(np.minimum(quanta, LIMIT).astype(np.uint16), quantum)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.weights.shape[0], self.weights.shape[1]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.weights.shape[0] * self.weights.shape[1])

    @property
    def neighbours(self) -> int:
        """Directions of the stencil."""
        return int(2 * self.weights.shape[2])

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The half stencil."""
        return STENCILS[self.neighbours]

    @property
    def pitch(self) -> int:
        """Cells from one padded row to the next."""
        return self.shape[1] + 2 * BORDER

    @cached_property
    def offsets(self) -> IntArray:
        """The steps as differences of padded indices."""
        return np.array([di * self.pitch + dj for di, dj in self.steps], np.int64)

    @cached_property
    def edges(self) -> NDArray[np.uint16]:
        """Weights back and on from every padded cell, for the compiled loops."""
        rows, cols = self.shape
        padded = np.full((2, rows + 2 * BORDER, self.pitch, len(self.steps)), LIMIT, np.uint16)
        inner = padded[:, BORDER : BORDER + rows, BORDER : BORDER + cols]
        for k, step in enumerate(self.steps):
            tail, head = edge_slices(self.shape, step)
            inner[1][*tail, k] = self.weights[*tail, k]
            inner[0][*head, k] = self.weights[*tail, k]
        return padded.reshape(2, -1, len(self.steps))

    @cached_property
    def order(self) -> IntArray:
        """All cells, tile by tile."""
        i, j = np.divmod(np.arange(self.cells), self.shape[1])
        return np.lexsort((j % _TILE, i % _TILE, j // _TILE, i // _TILE)).astype(np.int64)

    def padded(self, cells: IntArray) -> IntArray:
        """Padded indices of unpadded ones."""
        i, j = np.divmod(cells, self.shape[1])
        return np.asarray((i + BORDER) * self.pitch + j + BORDER, np.int64)

    def distances(self, sources: IntArray) -> NDArray[np.uint16]:
        """Integer distances (sources, cells)."""
        sources = np.atleast_1d(np.asarray(sources, np.int64))
        rows, cols = self.shape
        out = np.empty((len(sources), self.cells), np.uint16)
        D = np.empty(((rows + 2 * BORDER) * self.pitch, LANES), np.uint16)
        for start in range(0, len(sources), LANES):
            batch = self.padded(sources[start : start + LANES])
            batch_distances(D, self.edges, self.offsets, rows, cols, batch, 0)
            inner = D.reshape(-1, self.pitch, LANES)[BORDER:-BORDER, BORDER:-BORDER]
            out[start : start + LANES] = inner.reshape(self.cells, LANES).T[: len(batch)]
        return out

    def set_distances(self, labels: NDArray[np.intp], count: int) -> NDArray[np.uint16]:
        """Integer distances (count, cells) to the sets of cells of each label 0 .. count - 1."""
        values = np.full((count, self.cells), LIMIT, np.uint16)
        values[labels, np.arange(self.cells)] = 0
        return self.lipschitz(values)

    def lipschitz(self, values: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """The largest functions below those of `values`, (count, cells), that keep the metric.

        min over y of values(y) + D(u, y): the ends of no edge differ by more than its weight.
        """
        (rows, cols), grid = self.shape, (self.edges, self.offsets, *self.shape)
        out = np.empty_like(values)
        inside = self.padded(np.arange(self.cells))

        def settled(start: int) -> None:
            part = values[start : start + LANES]
            D = np.full(((rows + 2 * BORDER) * (cols + 2 * BORDER), LANES), LIMIT, np.uint16)
            D[inside, : len(part)] = part.T
            settle(D, *grid, 0)
            out[start : start + LANES] = D[inside, : len(part)].T

        in_threads(settled, range(0, len(values), LANES))
        return out

    def product(
        self,
        values: FloatArray,
        core: int = 0,
        *,
        horizon: float = HORIZON,
        wanted: NDArray[np.bool_] | None = None,
    ) -> FloatArray:
        """e^{-max(d, core)}·values, for a vector over the cells or a matrix (cells, sides).

        A nearer `horizon` H gives max(e^{-max(d, core)} - e^{-H}, 0)·values, which costs less by
        about (H/22)^2 where the map is wider than that.  A vector costs its share of cells that are
        not 0, a matrix that of the cells where the product is `wanted`; it is 0 elsewhere.
        """
        rate = np.float32(self.quantum / math.log(2.0))
        farthest = min(round(horizon / self.quantum), LIMIT)
        grid, limits = (self.edges, self.offsets, *self.shape), (rate, core, farthest)
        if values.ndim == 1 and np.count_nonzero(values) < _SPARSE * self.cells:
            single = values.astype(np.float32)

            def spread(some: IntArray) -> FloatArray:
                return spread_products(*grid, some, single[some], *limits)

            return _sum(in_threads(spread, _shares(self.order[values[self.order] != 0])))
        sides = np.ascontiguousarray(values.reshape(self.cells, -1), np.float32)

        def gathered(some: IntArray) -> FloatArray:
            return products(*grid, some, sides, *limits)[0]

        sources = self.order if wanted is None else self.order[wanted[self.order]]
        return _sum(in_threads(gathered, _shares(sources))).reshape(values.shape)

    def exact_sums(
        self,
        weights: NDArray[np.uint64],
        decay: NDArray[np.uint64],
        sources: IntArray | None = None,
    ) -> tuple[NDArray[np.uint64], int]:
        """Sum over y of weights[y]·decay[D(u, y)] in integers, and the sweeps that settle all.

        Cells u outside `sources` get 0.  Weights so large that a sum could wrap around are
        refused with `NotPrivate`.
        """
        checked_weights(weights, self.cells)
        order = self.order if sources is None else self.order[np.isin(self.order, sources)]
        grid = self.edges, self.offsets, *self.shape

        def summed(some: IntArray) -> tuple[NDArray[np.uint64], int]:
            return exact_sums(*grid, some, weights, decay)

        parts, sweeps = zip(*in_threads(summed, _shares(order)), strict=True)
        sums = _sum(parts)  # each has its own sources alone
        check_sums(sums)
        return sums, max(sweeps)


def _shares(sources: IntArray) -> list[IntArray]:
    """Whole batches of sources, side by side; how many shares there are depends on these alone."""
    batches = -(-len(sources) // LANES)
    size = LANES * -(-batches // max(1, min(_SHARES, batches // _FEW_BATCHES)))
    return [sources[first : first + size] for first in range(0, max(len(sources), 1), size or 1)]


def _sum(parts: Sequence[_Sums]) -> _Sums:
    """The sum of some arrays, in their order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
