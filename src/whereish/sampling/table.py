"""Draws from laws in tables: all masses of a row are summed, so the work does not tell the draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import IntArray
from whereish.randomness import Randomness
from whereish.solvers.geodesic.masses import uniform_below
from whereish.solvers.tables.law import ReportTable, TableLaw

__all__ = ["TableSampler", "draw_from_table", "reports_below"]

_ROWS = 4096  # secrets at a time


def draw_from_table(
    law: TableLaw, cells: NDArray[np.intp] | IntArray, source: Randomness
) -> NDArray[np.intp]:
    """The number of a report for each of the cells."""
    return reports_below(law, cells, uniform_below(law.sums[cells], source))


def reports_below(
    law: TableLaw, cells: NDArray[np.intp] | IntArray, thresholds: NDArray[np.uint64]
) -> NDArray[np.intp]:
    """The report of each cell at which its masses, in order, first exceed a threshold."""
    drawn = np.empty(len(cells), np.intp)
    for first in range(0, len(cells), _ROWS):
        part = slice(first, first + _ROWS)
        cumulated = np.cumsum(law.masses(cells[part]), axis=1, dtype=np.uint64)
        drawn[part] = (cumulated <= thresholds[part, None]).sum(axis=1)
    return drawn


@dataclass(frozen=True, eq=False)
class TableSampler:
    """Draws the cells by which the reports of a table are called."""

    law: ReportTable

    def draw(
        self, secrets: IntArray, source: Randomness, *, padded: bool = True
    ) -> tuple[IntArray, IntArray]:
        """Row and column of one report for each secret; all take the same work, asked or not."""
        called = self.law.reported[draw_from_table(self.law, secrets, source)]
        row, column = np.divmod(called, self.law.metric.shape[1])
        return row, column

    def draw_one(self, secret: int, source: Randomness) -> tuple[int, int]:
        """Row and column of one report, as :meth:`draw` gives them for one secret."""
        row, column = self.draw(np.array([secret], np.int64), source)
        return int(row[0]), int(column[0])
