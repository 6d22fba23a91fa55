"""Many sweeps of the first-order method over all groups, in one section that threads share.

A sweep of few places takes less than saying it: so groups lie one after the other in memory, as
kernels read them, and threads are called out twice for each sweep: to move and solve all groups,
then for what the sums lack, the coupling's rows in blocks.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.solvers.optimal.crew import (
    Crew,
    finish,
    first_item,
    in_crew,
    item_after,
    next_item,
    wait_for_all,
)
from whereish.solvers.optimal.first_order.sweeps import Singles, Weighted, sweep, take_costs
from whereish.threads import Workers

__all__ = ["Laid", "Scaled", "sweep_all"]

_SOLVE, _COUPLE, _MOVE, _BOTH = 0, 1, 2, 3
_BLOCKS = 4
"""Of the coupling's rows."""
_BEGINS = ("place", "row", "matrix", "entry", "value")
_FAILED = "a thread of the first-order method failed"


class Scaled(NamedTuple):
    """What one group sweeps over, (places, outputs) but for the inverse."""

    rows: Weighted
    inverse: Singles
    x: Singles
    v: Singles
    pulled: Singles
    cost: Singles


class Laid(NamedTuple):
    """The groups one after the other: group g has rows[g] to rows[g + 1], and so on.

    Attributes
    ----------
    size : (groups, 2) array
        Places and outputs of every group.
    place, row, matrix, entry, value : arrays
        Where those of each group begin: places, rows, the inverse, X, and V.
    """

    size: IntArray
    place: IntArray
    row: IntArray
    matrix: IntArray
    entry: IntArray
    value: IntArray
    places: IntArray
    rows: Weighted
    proximal: Singles
    inverse: Singles
    x: Singles
    v: Singles
    pulled: Singles
    cost: Singles

    @classmethod
    def of(cls, groups: list[tuple[IntArray, float, Scaled]]) -> Laid:
        """Places, proximal term and arrays of every group."""
        size = np.array([one.x.shape for _, _, one in groups], np.int64)
        counts = np.array([one.rows.source.size for _, _, one in groups], np.int64)
        begins = (size[:, 0], counts, size[:, 0] ** 2, size.prod(axis=1), counts * size[:, 1])
        arrays = list(zip(*(one for _, _, one in groups), strict=True))
        rows = Weighted(*map(np.concatenate, zip(*arrays[0], strict=True)))
        begin = {
            name: np.append(0, np.cumsum(each)) for name, each in zip(_BEGINS, begins, strict=True)
        }
        flat = {
            name: np.concatenate([one.ravel() for one in each])
            for name, each in zip(Scaled._fields[1:], arrays[1:], strict=True)
        }
        return cls(
            size=size,
            places=np.concatenate([places for places, _, _ in groups]),
            rows=rows,
            proximal=np.array([proximal for _, proximal, _ in groups], np.float32),
            **begin,
            **flat,
        )

    def group(self, g: int) -> Scaled:
        """The arrays of one group, in this memory."""
        places, outputs = self.size[g]
        some = slice(self.row[g], self.row[g + 1])
        source, target, weight, factor = self.rows
        rows = Weighted(source[some], target[some], weight[some], factor[some])
        x, pulled, cost = (
            each[self.entry[g] : self.entry[g + 1]].reshape(places, outputs)
            for each in (self.x, self.pulled, self.cost)
        )
        inverse = self.inverse[self.matrix[g] : self.matrix[g + 1]].reshape(places, places)
        v = self.v[self.value[g] : self.value[g + 1]].reshape(-1, outputs)
        return Scaled(rows, inverse, x, v, pulled, cost)


class _Sums(NamedTuple):
    """What the sums of all groups lack, and how that moves them."""

    coupling: FloatArray
    found: FloatArray
    """(groups, n): those of every group."""
    lacks: FloatArray
    missing: FloatArray
    """The coupling times what they lack."""
    total: FloatArray
    """Added up over the sweeps."""


def sweep_all(
    team: Workers, laid: Laid, coupling: FloatArray, times: int, relaxation: np.float32
) -> FloatArray:
    """So many sweeps; what moved the sums, added up."""
    n = len(coupling)
    sums = _Sums(coupling, np.zeros((len(laid.size), n)), *np.zeros((3, n)))
    if times and not in_crew(team, partial(_section, laid, sums, times, relaxation)):
        raise SolverError(_FAILED)
    return sums.total


def _section(
    laid: Laid, sums: _Sums, times: int, relaxation: np.float32, crew: Crew, who: int
) -> bool:
    return sweep_groups(crew, who, laid, sums, times, relaxation)


@kernel
def sweep_groups(
    crew: Crew, who: int, laid: Laid, sums: _Sums, times: int, relaxation: np.float32
) -> bool:
    """Sweep `times` times; whether all threads did what they had taken."""
    kind, item, count, turn = _MOVE, -1, 0, 0
    while True:
        if who > 0:
            kind, item = next_item(crew, who)
            if kind < 0:
                return True
        elif item < 0:
            if not wait_for_all(crew, count):
                return False
            if turn > 2 * times:
                return True
            kind = _next_call(turn, times, sums)
            turn += 1
            count = _BLOCKS if kind == _COUPLE else laid.size.shape[0]
            item = first_item(crew, kind, count)
            continue
        _work(kind, item, laid, sums, relaxation)
        if who > 0:
            finish(crew)
        else:
            item = item_after(crew, item, count)


@kernel
def _next_call(turn: int, times: int, sums: _Sums) -> int:
    """What is due between two calls, alone, and the next one: two for each sweep, and one more."""
    if turn % 2 == 1:
        for x in range(sums.lacks.size):
            total = 0.0
            for g in range(sums.found.shape[0]):
                total += sums.found[g, x]
            sums.lacks[x] = 1.0 - total
        return _COUPLE
    if turn == 0:
        return _SOLVE
    for x in range(sums.lacks.size):
        sums.total[x] += sums.missing[x]
    return _BOTH if turn < 2 * times else _MOVE


@kernel
def _work(kind: int, item: int, laid: Laid, sums: _Sums, relaxation: np.float32) -> None:
    """Move a group, solve it, or find some of what the sums lack."""
    if kind == _COUPLE:
        n = sums.lacks.size
        some = slice(n * item // _BLOCKS, n * (item + 1) // _BLOCKS)
        np.dot(sums.coupling[some], sums.lacks, sums.missing[some])
        return
    places, outputs = laid.size[item]
    where = laid.places[laid.place[item] : laid.place[item + 1]]
    row, entry = slice(laid.row[item], laid.row[item + 1]), laid.entry[item]
    whole = slice(entry, laid.entry[item + 1])
    x = laid.x[whole].reshape((places, outputs))
    pulled = laid.pulled[whole].reshape((places, outputs))
    matrix = slice(laid.matrix[item], laid.matrix[item + 1])
    inverse = laid.inverse[matrix].reshape((places, places))
    if kind != _SOLVE:
        flat = laid.v[laid.value[item] : laid.value[item + 1]]
        v = flat.reshape((flat.size // outputs, outputs))
        source, target, weight, factor = laid.rows
        rows = Weighted(source[row], target[row], weight[row], factor[row])
        missing = np.empty(places, np.float32)
        for at in range(places):
            missing[at] = np.float32(sums.missing[where[at]])
        sweep(x, np.dot(inverse, missing), v, rows, relaxation, pulled)
    if kind != _MOVE:
        take_costs(pulled, laid.cost[whole].reshape((places, outputs)), laid.proximal[item], x)
        np.dot(inverse, pulled, x)
        add_up(x, where, sums.found[item])


@kernel
def add_up(x: Singles, places: IntArray, sums: FloatArray) -> None:
    """Write the sums over the outputs, in double precision."""
    outputs = x.shape[1]
    whole = outputs - outputs % 4
    for at in range(x.shape[0]):
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for z in range(0, whole, 4):
            one += x[at, z]
            two += x[at, z + 1]
            three += x[at, z + 2]
            four += x[at, z + 3]
        for z in range(whole, outputs):
            one += x[at, z]
        sums[places[at]] = (one + two) + (three + four)
