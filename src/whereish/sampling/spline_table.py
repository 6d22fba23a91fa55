"""Exact draws from a law in a table on places: a node, a report of its row, and a coin.

The law of a place is the normalised geometric mean of the rows of the nine nodes around it, drawn
as in :mod:`~whereish.sampling.spline`, with the same exact choices
(:mod:`~whereish.sampling.spline_coin`).  A row is summed whole, whatever is drawn; how many draws
it takes depends on the place, so that ``padded=True`` makes a fixed number for every place and
takes the first that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.randomness import Randomness
from whereish.sampling.spline_coin import (
    KEPT,
    OPEN,
    attempts_for,
    chosen_cells,
    coins,
    exact_cells,
    exact_coin,
    nine_around,
    surprises,
)
from whereish.sampling.table import reports_below
from whereish.solvers.geodesic.masses import decay_table, uniform_below
from whereish.solvers.tables.law import ReportTable
from whereish.space.raster import Raster

__all__ = ["SplineTableSampler"]

_PADDED = 64  # places of a padded batch


@dataclass(frozen=True, eq=False)
class SplineTableSampler:
    """Draws reports of a table between the cells of `raster`, at whose centres its rows stand.

    Attributes
    ----------
    acceptance : least chance that a draw is kept.
    """

    law: ReportTable
    raster: Raster
    acceptance: float | None

    def draw(
        self, coordinates: FloatArray, source: Randomness, *, padded: bool
    ) -> tuple[IntArray, IntArray]:
        """Row and column of the node by which one report for each place is called."""
        drawn = self._padded(coordinates, source) if padded else self._drawn(coordinates, source)
        row, column = np.divmod(self.law.reported[drawn], self.law.metric.shape[1])
        return row, column

    def draw_one(self, place: tuple[float, float], source: Randomness) -> tuple[int, int]:
        """Row and column of one report, as :meth:`draw` gives them for one place."""
        row, column = self.draw(np.array([place]), source, padded=False)
        return int(row[0]), int(column[0])

    @cached_property
    def attempts(self) -> int:
        """Draws for each place with ``padded=True``: all rejected with probability below 2^-40."""
        return attempts_for(self.acceptance)

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        return decay_table(self.law.metric.quantum)

    @cached_property
    def _logs(self) -> tuple[FloatArray, FloatArray]:
        """ln of the masses' table and of the sums."""
        return np.log(self._table.astype(np.float64)), np.log(self.law.sums.astype(np.float64))

    def _drawn(self, coordinates: FloatArray, source: Randomness) -> IntArray:
        out = np.empty(len(coordinates), np.int64)
        pending = np.arange(len(coordinates))
        while len(pending):
            found, kept = self._attempt(coordinates[pending], 1, source)
            out[pending[kept[:, 0]]] = found[kept[:, 0], 0]
            pending = pending[~kept[:, 0]]
        return out

    def _padded(self, coordinates: FloatArray, source: Randomness) -> IntArray:
        out = np.empty(len(coordinates), np.int64)
        for first in range(0, len(coordinates), _PADDED):
            part = coordinates[first : first + _PADDED]
            found, kept = self._attempt(part, self.attempts, source)
            while not kept.any(axis=1).all():
                more, also = self._attempt(part, self.attempts, source)
                lacking = ~kept.any(axis=1)
                found[lacking], kept[lacking] = more[lacking], also[lacking]
            out[first : first + len(part)] = found[np.arange(len(part)), kept.argmax(axis=1)]
        return out

    def _attempt(
        self, places: FloatArray, attempts: int, source: Randomness
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """(places, attempts) numbers of reports, and whether each is kept."""
        law, (logs, log_sums) = self.law, self._logs
        count = len(places)
        nine = nine_around(self.raster, places)
        cells = nine.cells(self.raster.columns)
        words = source.words(3 * count * attempts).reshape(-1, 3)
        each = np.repeat(np.arange(count), attempts)
        chosen = chosen_cells(self.raster, places[each], nine.of(each), words, source)
        found = reports_below(law, chosen, uniform_below(law.sums[chosen], source))
        found = found.reshape(count, attempts)
        distances = law.distances[found[:, :, None], cells[:, None, :]]
        values = logs[distances] - log_sums[cells][:, None, :]
        surprise = surprises(words[:, 2]).reshape(count, attempts)
        status = np.empty((count, attempts), np.int8)
        coins(values, nine.weights, surprise, nine.error, status)
        for p, k in np.argwhere(status == OPEN):
            masses = [
                (int(self._table[law.distances[found[p, k], cell]]), int(law.sums[cell]))
                for cell in exact_cells(self.raster, places[p])
            ]
            word = int(words[p * attempts + k, 2])
            status[p, k] = exact_coin(self.raster, places[p], masses, word, source)
        return found, status == KEPT
