"""Draws from a certified law: shortest paths grown from the secret until the mass is reached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.compiled import compiled
from whereish.randomness import Randomness
from whereish.sampling.nearest_first import Workspaces, draw, draw_padded, grow
from whereish.solvers.eikonal.certify import CertifiedLaw
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.masses import uniform_below
from whereish.solvers.geodesic.sweeps import BORDER

__all__ = ["LawSampler", "integer_below"]


def integer_below(total: int, source: Randomness) -> int:
    """As :func:`~whereish.solvers.geodesic.masses.uniform_below` for one sum, by the same words."""
    share = (1 << 128) // total
    while True:
        high, low = source.words(2).tolist()
        value = ((high << 64) | low) // share
        if value < total:
            return int(value)


@dataclass(frozen=True, eq=False)
class LawSampler:
    """Draws reports of `law`; its tables are shared by all threads, its scratch by none."""

    law: CertifiedLaw

    def draw(
        self, secrets: IntArray, source: Randomness, *, padded: bool
    ) -> tuple[IntArray, IntArray]:
        """Row and column of one report for each secret (flat cells of the law's grid).

        With `padded`, every batch of up to 64 takes the same work.
        """
        metric = self.law.metric
        thresholds = uniform_below(self.law.sums[secrets], source)
        starts = metric.padded(secrets)
        drawn = self._padded(starts, thresholds) if padded else self._nearest(starts, thresholds)
        row, column = np.divmod(drawn, metric.pitch)
        return row - BORDER, column - BORDER

    def draw_one(self, secret: int, source: Randomness) -> tuple[int, int]:
        """Row and column of one report, as :meth:`draw` gives them for one secret."""
        metric = self.law.metric
        threshold = np.uint64(integer_below(int(self.law.sums[secret]), source))
        row, column = divmod(secret, metric.shape[1])
        start = (row + BORDER) * metric.pitch + column + BORDER
        graph, masses = (metric.edges, metric.offsets), (self._weights, self._table)
        drawn = compiled(grow)(graph, masses, start, threshold, self._scratch.mine())
        row, column = divmod(int(drawn), metric.pitch)
        return row - BORDER, column - BORDER

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        return self.law.table

    @cached_property
    def _weights(self) -> NDArray[np.uint64]:
        metric = self.law.metric
        out = np.zeros(metric.edges.shape[1], np.uint64)
        out[metric.padded(np.arange(metric.cells))] = self.law.weights
        return out

    @cached_property
    def _scratch(self) -> Workspaces:
        return Workspaces(self.law.metric.edges)

    def _nearest(self, starts: IntArray, thresholds: NDArray[np.uint64]) -> IntArray:
        graph = self.law.metric.edges, self.law.metric.offsets
        masses = self._weights, self._table
        return draw(graph, masses, starts, thresholds, self._scratch.mine())

    def _padded(self, starts: IntArray, thresholds: NDArray[np.uint64]) -> IntArray:
        metric = self.law.metric
        out = np.empty(len(starts), np.int64)
        for first in range(0, len(starts), LANES):
            count = min(LANES, len(starts) - first)
            batch = np.full(LANES, starts[first], np.int64)
            level = np.zeros(LANES, np.uint64)
            batch[:count] = starts[first : first + count]
            level[:count] = thresholds[first : first + count]
            drawn = draw_padded(
                metric.edges,
                metric.offsets,
                *metric.shape,
                self._weights,
                self.law.table,
                batch,
                level,
                self.law.sweeps,
            )
            out[first : first + count] = drawn[:count]
        return out
