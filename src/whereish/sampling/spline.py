"""Exact draws from a law between cells: a cell, a report of its law, and a coin.

P(y | u) = prod_c P(y | c)^{B_c(u)} / Z(u), B the spline weights of the nine cells around u
(:mod:`whereish.solvers.splines.weights`).  The geometric mean is nowhere above the arithmetic one,
so this draws from it without Z: take cell c with probability B_c(u), draw y from P(. | c), keep it
with probability

    prod_c P(y | c)^{B_c(u)} / sum_c B_c(u) P(y | c)  <=  1,

else begin anew; Z(u) is the chance of keeping it.  Which cell, is a comparison of a uniform with
spline weights of the place that the doubles name, along each axis; the coin is one with nine
quotients of integers.  Uniforms are strings of bits of which as many are drawn as it takes; doubles
decide with a bound on their error, and what they leave open goes to fractions and balls.  So the
law is exactly the stated one.

By Hoeffding's lemma the coin's chance is at least e^{-r^2/8}, r the range of ln P(y | c) over the
nine cells, which their edges bound for all y: most draws are kept without a look at other distances
than those of the draw itself.

How many draws it takes depends on the place, and how long each takes on the report.
:meth:`SplineSampler.draw` with ``padded=True`` makes a fixed number of draws for every place, each
with the same work, and takes the first that is kept; :attr:`SplineSampler.attempts` is the number
after which none is kept with probability below 2^-40, and then as many follow again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import compiled, kernel
from whereish.randomness import Randomness
from whereish.sampling.eikonal import integer_below
from whereish.sampling.nearest_first import Workspaces, grow, reach
from whereish.sampling.spline_coin import (
    KEPT,
    OPEN,
    attempts_for,
    chosen_cell,
    chosen_cells,
    coin,
    coins,
    doubt,
    exact_cells,
    exact_coin,
    nine_around,
    one_around,
    surprises,
)
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.masses import uniform_below
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances
from whereish.solvers.splines.blocks import around
from whereish.space.raster import Raster

__all__ = ["SplineSampler"]


@kernel
def _attempt(
    graph: Any,
    masses: Any,
    logs: Any,
    draws: Any,
    around: Any,
    coins: Any,
    quantum: float,
    space: Any,
    answers: Any,
) -> None:
    """One draw and its coin for each place; distances are filled where the coin needed them.

    `draws` are sources and thresholds; `around` the nine cells, their weights and ln of their
    sums; `coins` the surprises of the uniforms and the errors of the weights; `answers` what is
    filled: reports, whether they are kept, and distances.
    """
    sources, thresholds = draws
    nine, shares, log_sums = around
    surprise, errors = coins
    found, status, distances = answers
    for i in range(len(sources)):
        found[i] = grow(graph, masses, sources[i], thresholds[i], space)
        here = nine[i], shares[i], log_sums[i]
        status[i] = _tossed(
            graph, logs, found[i], here, surprise[i], errors[i], quantum, space, distances[i]
        )


@kernel
def _tossed(
    graph: Any,
    logs: Any,
    y: int,
    around: Any,
    surprise: float,
    error: float,
    quantum: float,
    space: Any,
    distances: Any,
) -> int:
    """The coin of one draw y: kept, rejected or open."""
    edges, offsets = graph
    nine, shares, log_sums = around
    middle, level = nine[4], log_sums[4]
    low, high = 0.0, 0.0
    for k in range(9):
        step = nine[k] - middle
        price = 0.0
        for m in range(len(offsets)):
            if step == offsets[m]:
                price = edges[1, middle, m] * quantum
            elif step == -offsets[m]:
                price = edges[0, middle, m] * quantum
        low = min(low, level - log_sums[k] - price)
        high = max(high, level - log_sums[k] + price)
    spread = (high - low) * (1.0 + 1e-9)
    if surprise - doubt(surprise) > spread * spread / 8.0 + 1e-9:
        return KEPT
    reach(graph, y, nine, distances, space)
    value = np.empty(9)
    for k in range(9):
        value[k] = logs[distances[k]] - log_sums[k]
    return coin(value, shares, surprise, error)


@kernel
def _attempt_one(
    graph: Any,
    tables: Any,
    draw: Any,
    place: Any,
    surprise: float,
    quantum: float,
    space: Any,
    distances: Any,
) -> tuple[int, int]:
    """One draw for one place, and whether it is kept.

    `tables` are those of a sampler, with that of the masses; `draw` has a source and a threshold;
    `place` its cell's row and column, its offsets down and across, the error of weights, and the
    shape of the raster.
    """
    weights, table, logs, padded, log_sums = tables
    source, threshold = draw
    i, j, down, across, error, rows, cols = place
    nine, shares, levels = np.empty(9, np.int64), np.empty(9), np.empty(9)
    around(i, j, (rows, cols), nine)
    v = 0.5 * (0.5 - down) ** 2, 0.75 - down * down, 0.5 * (0.5 + down) ** 2
    h = 0.5 * (0.5 - across) ** 2, 0.75 - across * across, 0.5 * (0.5 + across) ** 2
    for k in range(9):
        shares[k] = v[k // 3] * h[k % 3]
        levels[k] = log_sums[nine[k]]
        nine[k] = padded[nine[k]]
    y = grow(graph, (weights, table), source, threshold, space)
    here = nine, shares, levels
    return y, _tossed(graph, logs, y, here, surprise, error, quantum, space, distances)


@kernel
def _padded_attempts(
    edges: Any,
    offsets: Any,
    rows: int,
    cols: int,
    weights: Any,
    decay: Any,
    sources: Any,
    sweeps: int,
    lanes: Any,
    thresholds: Any,
    found: Any,
    distances: Any,
) -> None:
    """Draws for up to seven places, in time that depends on neither places nor draws.

    Lanes 9p to 9p + 8 search from the nine cells of place p; attempt k of it draws from the law of
    lane ``lanes[p, k]`` of these with ``thresholds[p, k]``.
    """
    pitch = cols + 2 * BORDER
    D = np.empty(((rows + 2 * BORDER) * pitch, LANES), np.uint16)
    batch_distances(D, edges, offsets, rows, cols, sources, sweeps)
    places, attempts = lanes.shape
    total = np.zeros(9, np.uint64)
    for p in range(places):
        total[:] = 0
        found[p, :] = 0
        for i in range(rows):
            base = (i + BORDER) * pitch + BORDER
            for c in range(base, base + cols):
                for k in range(9):
                    total[k] += weights[c] * decay[D[c, 9 * p + k]]
                for k in range(attempts):
                    found[p, k] += np.int64(total[lanes[p, k]] <= thresholds[p, k])
        for k in range(attempts):
            cell = found[p, k]
            at = (cell // cols + BORDER) * pitch + cell % cols + BORDER
            found[p, k] = at
            for m in range(9):
                distances[p, k, m] = D[at, 9 * p + m]


@dataclass(frozen=True, eq=False)
class SplineSampler:
    """Draws reports of a law between the cells of `raster`; scratch memory is each thread's own."""

    built: BuiltLaw
    raster: Raster

    def draw(
        self, coordinates: FloatArray, source: Randomness, *, padded: bool
    ) -> tuple[IntArray, IntArray]:
        """Row and column (of the law's grid) of one report for each place."""
        drawn = self._padded(coordinates, source) if padded else self._drawn(coordinates, source)
        row, column = np.divmod(drawn, self.built.law.metric.pitch)
        return row - BORDER, column - BORDER

    def draw_one(self, place: tuple[float, float], source: Randomness) -> tuple[int, int]:
        """Row and column of one report, as :meth:`draw` gives them for one place."""
        law, metric, raster = self.built.law, self.built.law.metric, self.raster
        weights, logs, padded, log_sums = self._tables
        tables = weights, self._table, logs, padded, log_sums
        graph, space = (metric.edges, metric.offsets), self._scratch.mine()
        here, attempt = one_around(raster, place), compiled(_attempt_one)
        distances = np.empty(9, np.uint16)
        while True:
            words = source.words(3).tolist()
            chosen = chosen_cell(raster, place, here, words, source)
            total = int(law.sums[self.built.secrets[chosen]])
            draw = int(padded[chosen]), np.uint64(integer_below(total, source))
            surprise = -math.log(min((words[2] + 0.5) * 2.0**-64, 1.0))
            where = (*here, raster.rows, raster.columns)
            y, kept = attempt(
                graph, tables, draw, where, surprise, metric.quantum, space, distances
            )
            if kept == OPEN:
                masses = self._masses(np.array(place), int(y))
                kept = exact_coin(raster, np.array(place), masses, words[2], source)
            if kept == KEPT:
                row, column = divmod(int(y), metric.pitch)
                return row - BORDER, column - BORDER

    @cached_property
    def attempts(self) -> int:
        """Draws for each place with ``padded=True``: all rejected with probability below 2^-40."""
        return attempts_for(self.built.acceptance)

    @cached_property
    def _scratch(self) -> Workspaces:
        return Workspaces(self.built.law.metric.edges)

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        return self.built.law.table

    @cached_property
    def _tables(self) -> tuple[NDArray[np.uint64], FloatArray, IntArray, FloatArray]:
        """Padded weights, ln of the masses' table, padded cells and ln of sums of the secrets."""
        law = self.built.law
        metric = law.metric
        weights = np.zeros(metric.edges.shape[1], np.uint64)
        weights[metric.padded(np.arange(metric.cells))] = law.weights
        padded = metric.padded(self.built.secrets)
        logs = np.log(law.table.astype(np.float64))
        return weights, logs, padded, np.log(law.sums[self.built.secrets].astype(np.float64))

    def _drawn(self, coordinates: FloatArray, source: Randomness) -> IntArray:
        law, metric = self.built.law, self.built.law.metric
        weights, logs, padded, log_sums = self._tables
        nine = nine_around(self.raster, coordinates)
        cells, shares = nine.cells(self.raster.columns), nine.weights
        out = np.empty(len(coordinates), np.int64)
        pending = np.arange(len(coordinates))
        while len(pending):
            whole = len(pending) == len(out)
            part = nine if whole else nine.of(pending)
            words = source.words(3 * len(pending)).reshape(-1, 3)
            chosen = chosen_cells(self.raster, coordinates[pending], part, words, source)
            secrets = self.built.secrets[chosen]
            thresholds = uniform_below(law.sums[secrets], source)
            around_here = cells[pending]
            found = np.empty(len(pending), np.int64)
            status = np.empty(len(pending), np.int8)
            distances = np.empty((len(pending), 9), np.uint16)
            _attempt(
                (metric.edges, metric.offsets),
                (weights, law.table),
                logs,
                (padded[chosen], thresholds),
                (padded[around_here], shares[pending], log_sums[around_here]),
                (surprises(words[:, 2]), part.error),
                metric.quantum,
                self._scratch.mine(),
                (found, status, distances),
            )
            for row in np.flatnonzero(status == OPEN):
                word, place = int(words[row, 2]), coordinates[pending[row]]
                masses = self._masses(place, int(found[row]))
                status[row] = exact_coin(self.raster, place, masses, word, source)
            kept = status == KEPT
            out[pending[kept]] = found[kept]
            pending = pending[~kept]
        return out

    def _masses(self, place: FloatArray, report: int) -> list[tuple[int, int]]:
        """The probabilities of a report (a padded index) in the exact cells around a place."""
        law, metric = self.built.law, self.built.law.metric
        secrets = self.built.secrets[exact_cells(self.raster, place)]
        row, column = divmod(report, metric.pitch)
        source = (row - BORDER) * metric.shape[1] + column - BORDER
        distances = metric.distances(np.array([source]))[0, secrets]
        return [
            (int(law.table[d]), int(z)) for d, z in zip(distances, law.sums[secrets], strict=True)
        ]

    def _padded(self, coordinates: FloatArray, source: Randomness) -> IntArray:
        out = np.empty(len(coordinates), np.int64)
        together = LANES // 9
        for first in range(0, len(coordinates), together):
            part = coordinates[first : first + together]
            filled = part[np.minimum(np.arange(together), len(part) - 1)]
            found, kept = self._padded_batch(filled, source)
            while not kept[: len(part)].any(axis=1).all():
                more, also = self._padded_batch(filled, source)
                lacking = ~kept.any(axis=1)
                found[lacking], kept[lacking] = more[lacking], also[lacking]
            index = kept.argmax(axis=1)
            out[first : first + len(part)] = found[np.arange(together), index][: len(part)]
        return out

    def _padded_batch(
        self, places: FloatArray, source: Randomness
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """All attempts for seven places: reports, and whether each is kept."""
        law = self.built.law
        weights, logs, padded, log_sums = self._tables
        count, attempts = len(places), self.attempts
        nine = nine_around(self.raster, places)
        cells, shares = nine.cells(self.raster.columns), nine.weights
        words = source.words(3 * count * attempts).reshape(-1, 3)
        each = np.repeat(np.arange(count), attempts)
        chosen = chosen_cells(self.raster, places[each], nine.of(each), words, source)
        # Repeated cells of the rim have equal laws: any lane of them will do.
        lanes = (cells[each] == chosen[:, None]).argmax(axis=1).reshape(count, attempts)
        thresholds = uniform_below(law.sums[self.built.secrets[chosen]], source)
        sources = np.full(LANES, padded[cells[0, 0]], np.int64)
        sources[: 9 * count] = padded[cells].ravel()
        found = np.empty((count, attempts), np.int64)
        distances = np.empty((count, attempts, 9), np.uint16)
        metric = law.metric
        _padded_attempts(
            metric.edges,
            metric.offsets,
            *metric.shape,
            weights,
            law.table,
            sources,
            law.sweeps,
            lanes,
            thresholds.reshape(count, attempts),
            found,
            distances,
        )
        values = logs[distances] - log_sums[cells][:, None, :]
        surprise = surprises(words[:, 2]).reshape(count, attempts)
        status = np.empty((count, attempts), np.int8)
        coins(values, shares, surprise, nine.error, status)
        for p, k in np.argwhere(status == OPEN):
            masses = self._masses(places[p], int(found[p, k]))
            word = int(words[p * attempts + k, 2])
            status[p, k] = exact_coin(self.raster, places[p], masses, word, source)
        return found, status == KEPT
