"""Newton directions of rows with a barrier term: one compiled section that threads share.

Predictor-corrector after Mehrotra (1992) with Gondzio's (1996) multiple centrality corrections, for
H dk - A' dmu = q with A dk given, where H splits by output and A adds the outputs up.  Every
direction takes two calls of all parts, between which the outputs are coupled: down, from targets of
the products s y to what is asked of k and to k's own part of the answer, and up, from the
multipliers of the sums to the moves of all rows.  Sums over outputs are sums of the parts, which
are fixed, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    SharedRows,
    Steps,
    centre_targets,
    draw_in_targets,
    products_after,
    pull_of_targets,
    row_moves,
    vanish_targets,
)
from whereish.solvers.optimal.barrier.factors import add_solutions, solve_outputs, solve_packed
from whereish.solvers.optimal.barrier.rows import Pairs
from whereish.solvers.optimal.crew import (
    Crew,
    call_out,
    finish,
    in_crew,
    next_item,
    own_item,
    wait_for_all,
)
from whereish.solvers.optimal.local.cores import Cores, Reach
from whereish.solvers.optimal.local.kernels import add_along_sums, solve_cores

__all__ = ["Direction", "NewtonSystem", "Weighed", "corrected_direction"]

_DOWN, _UP, _AFTER = 0, 1, 2
_VANISH, _CENTRE, _DRAW_IN = 0, 1, 2
_FAILED = "a thread of the interior point failed"


class Weighed(NamedTuple):
    """Parts whose rows are lambda >= 0 alone, for columns (count, n) that are combined.

    Those of part z are from bounds[z] to bounds[z + 1]; `ratio` is lambda / r of each.
    """

    bounds: IntArray
    columns: FloatArray
    ratio: FloatArray

    @classmethod
    def none(cls) -> Weighed:
        """There are none."""
        return cls(np.zeros(1, np.int64), np.empty((0, 0)), np.empty(0))


class OfCores(NamedTuple):
    """H of outputs with cores, whose variables are a row of k for each part of `outputs`."""

    inverses: FloatArray
    spots: IntArray
    cores: Cores
    outputs: IntArray

    @classmethod
    def none(cls) -> OfCores:
        """There are none."""
        whole, some = np.zeros(0, np.int64), np.zeros(0, np.int32)
        cores = Cores(whole, some, some.reshape(0, 0), Reach(whole, some, some, np.empty(0)))
        return cls(np.empty(0), whole, cores, whole.reshape(0, 2))


class NewtonSystem(NamedTuple):
    """H and S = A H^{-1} A', factored, and what A dk shall be.

    Attributes
    ----------
    coupling : the factor of S, packed.
    missing : A dk.
    weighed : the first rows of k are weights of columns,
    factors : the others are outputs, with the packed factors of their own matrices,
    cores : or parts of outputs with cores.
    """

    coupling: FloatArray
    missing: FloatArray
    factors: FloatArray
    weighed: Weighed
    cores: OfCores


class _Task(NamedTuple):
    """What a section works on; of k, ds, dy and dmu two are in use at a time."""

    tpsv: int
    start: IntArray
    pairs: Pairs
    parts: IntArray
    at: AtRows
    residual: FloatArray
    target: FloatArray
    k: tuple[FloatArray, FloatArray]
    ds: tuple[FloatArray, FloatArray]
    dy: tuple[FloatArray, FloatArray]
    dmu: FloatArray
    plan: IntArray
    """Which targets; which of the two is the best direction, and which is written."""
    aims: FloatArray
    """Of the products s y; of the steps to look at."""
    found: FloatArray
    """(parts, 3): sums of products, and the largest parts of slacks and multipliers taken away."""
    sums: FloatArray


@dataclass(frozen=True)
class Direction:
    """A Newton direction with the steps that keep s and y nonnegative along it."""

    dk: FloatArray
    dmu: FloatArray
    ds: FloatArray
    dy: FloatArray
    steps: Steps


def corrected_direction(
    rows: SharedRows,
    at: AtRows,
    *,
    system: NewtonSystem,
    dual_residual: FloatArray,
    corrections: int,
    least: float = 0.0,
) -> Direction:
    """Mehrotra's predictor-corrector direction with up to `corrections` of Gondzio's.

    The complementarity that it aims at is not below `least`.
    """
    count, (start, pairs) = len(rows.parts), rows.rows
    # Memory that is new is memory that the system has yet to give.
    k, ds, dy = (
        (np.empty(shape), np.empty(shape)) for shape in (dual_residual.shape, rows.size, rows.size)
    )
    dmu, sums = np.empty((2, system.missing.size)), np.empty((count, system.missing.size))
    task = _Task(
        address("dtpsv"),
        start,
        pairs,
        np.array(rows.parts, np.int64),
        at,
        dual_residual,
        np.empty(rows.size),
        k,
        ds,
        dy,
        dmu,
        np.zeros(3, np.int64),
        np.zeros(3),
        np.empty((count, 3)),
        sums,
    )
    section = partial(_section, task, system, corrections, least)
    done, primal, dual = in_crew(rows.team, section)
    if not done:
        raise SolverError(_FAILED)
    best = task.plan[1]
    return Direction(k[best], dmu[best], ds[best], dy[best], Steps(primal, dual))


def _section(
    task: _Task, system: NewtonSystem, corrections: int, least: float, crew: Crew, who: int
) -> tuple[bool, float, float]:
    return direct(crew, who, task, system, corrections, least)


@kernel
def direct(
    crew: Crew, who: int, task: _Task, system: NewtonSystem, corrections: int, least: float
) -> tuple[bool, float, float]:
    """Write the direction and which it is; whether there is one, and its steps."""
    if who > 0:
        while True:
            kind, item = next_item(crew, who)
            if kind < 0:
                return True, 0.0, 0.0
            _work(kind, item, task, system)
            finish(crew)
    plan, aims, size = task.plan, task.aims, task.target.size
    plan[0], plan[1], plan[2] = _VANISH, 0, 1
    done, primal, dual = _along(crew, task, system)
    complementarity = task.found[:, 0].sum()
    plan[1], plan[2] = 1, 0
    aims[1], aims[2] = primal, dual
    done = done and _share(crew, _AFTER, task, system)
    centring = min(max((task.found[:, 0].sum() / complementarity) ** 3, 1e-6), 1.0)
    aims[0] = max(centring * complementarity, least) / size
    plan[0] = _CENTRE
    if done:
        done, primal, dual = _along(crew, task, system)
    plan[1], plan[2] = 0, 1
    for _ in range(corrections):
        if not done or min(primal, dual) > 0.95:
            break
        plan[0] = _DRAW_IN
        aims[1], aims[2] = min(1.0, 1.08 * primal + 0.1), min(1.0, 1.08 * dual + 0.1)
        done, longer, other = _along(crew, task, system)
        if longer + other < primal + dual + 0.02:
            break
        primal, dual = longer, other
        plan[1], plan[2] = plan[2], plan[1]
    return done, primal, dual


@kernel
def _along(crew: Crew, task: _Task, system: NewtonSystem) -> tuple[bool, float, float]:
    """Write the direction for the targets that are planned; the steps along it."""
    if not _share(crew, _DOWN, task, system):
        return False, 0.0, 0.0
    dmu = task.dmu[task.plan[2]]
    dmu[:] = task.sums[0]
    for part in range(1, task.sums.shape[0]):
        for x in range(dmu.size):
            dmu[x] += task.sums[part, x]
    for x in range(dmu.size):
        dmu[x] = system.missing[x] - dmu[x]
    solve_packed(task.tpsv, system.coupling, dmu)
    if not _share(crew, _UP, task, system):
        return False, 0.0, 0.0
    fall_s, fall_y = 1.0, 1.0
    for part in range(task.found.shape[0]):
        fall_s, fall_y = max(fall_s, task.found[part, 1]), max(fall_y, task.found[part, 2])
    return True, 1.0 / fall_s, 1.0 / fall_y


@kernel
def _share(crew: Crew, kind: int, task: _Task, system: NewtonSystem) -> bool:
    """Let everybody work on all parts, and wait for them; whether they are done."""
    count = task.found.shape[0]
    if crew.locks.size == 0:
        for item in range(count):
            _work(kind, item, task, system)
        return True
    call_out(crew, kind, count)
    item = own_item(crew)
    while item >= 0:
        _work(kind, item, task, system)
        finish(crew)
        item = own_item(crew)
    return wait_for_all(crew, count)


@kernel
def _work(kind: int, item: int, task: _Task, system: NewtonSystem) -> None:
    """One part of what is called out."""
    at, best, written = task.at, task.plan[1], task.plan[2]
    part = (task.parts[item, 0], task.parts[item, 1])
    some = (task.start[part[0]], task.start[part[1]])
    k, ds, dy = task.k[written], task.ds[written], task.dy[written]
    aim, steps = task.aims[0], Steps(task.aims[1], task.aims[2])
    if kind == _DOWN:
        if task.plan[0] == _VANISH:
            vanish_targets(at, some, task.target)
            total = 0.0
            for row in range(some[0], some[1]):
                total -= task.target[row]
            task.found[item, 0] = total
        elif task.plan[0] == _CENTRE:
            centre_targets(at, task.ds[best], task.dy[best], aim, some, task.target)
        else:
            draw_in_targets(at, task.ds[best], task.dy[best], steps, aim, some, task.target)
        pull_of_targets(at, task.target, task.start, task.pairs, part, task.residual, k)
        _free(task.tpsv, system, part, k, task.sums[item])
    elif kind == _UP:
        _follow(task.tpsv, system, part, task.dmu[written], k)
        falls = row_moves(at, task.target, task.start, task.pairs, part, k, ds, dy)
        task.found[item, 1], task.found[item, 2] = falls
    else:
        task.found[item, 0] = products_after(at, task.ds[best], task.dy[best], steps, some)


@kernel
def _free(
    tpsv: int, system: NewtonSystem, part: tuple[int, int], k: FloatArray, sums: FloatArray
) -> None:
    """Overwrite the rows of a part by H^{-1} of them; A times that."""
    weighed, cores = system.weighed, system.cores
    first = weighed.bounds.size - 1
    sums[:] = 0.0
    if cores.outputs.shape[0] > 0:
        outputs = (cores.outputs[part[0], 0], cores.outputs[part[0], 1])
        solve_cores(cores.inverses, cores.spots, cores.cores, outputs, k[part[0]], sums)
    elif part[0] < first:
        begin, end = weighed.bounds[part[0]], weighed.bounds[part[0] + 1]
        for at in range(begin, end):
            k[part[0], at - begin] *= weighed.ratio[at]
        add_rows(weighed.columns[begin:end], k[part[0]], sums)
    else:
        solve_outputs(tpsv, system.factors, (part[0] - first, part[1] - first), k[first:], sums)


@kernel
def _follow(
    tpsv: int, system: NewtonSystem, part: tuple[int, int], dmu: FloatArray, k: FloatArray
) -> None:
    """Add H^{-1} A' dmu to the rows of a part."""
    weighed, cores = system.weighed, system.cores
    first = weighed.bounds.size - 1
    if cores.outputs.shape[0] > 0:
        outputs = (cores.outputs[part[0], 0], cores.outputs[part[0], 1])
        add_along_sums(cores.inverses, cores.spots, cores.cores, outputs, dmu, k[part[0]])
    elif part[0] < first:
        begin, end = weighed.bounds[part[0]], weighed.bounds[part[0] + 1]
        for at in range(begin, end):
            k[part[0], at - begin] += weighed.ratio[at] * along(weighed.columns[at], dmu)
    else:
        add_solutions(tpsv, system.factors, (part[0] - first, part[1] - first), dmu, k[first:])


@kernel
def add_rows(rows: FloatArray, weight: FloatArray, sums: FloatArray) -> None:
    """Add weighted rows up."""
    for at in range(rows.shape[0]):
        for x in range(sums.size):
            sums[x] += weight[at] * rows[at, x]


@kernel
def along(row: FloatArray, other: FloatArray) -> float:
    """Their product, in four sums that the machine takes at once."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = row.size - row.size % 4
    for x in range(0, whole, 4):
        one += row[x] * other[x]
        two += row[x + 1] * other[x + 1]
        three += row[x + 2] * other[x + 2]
        four += row[x + 3] * other[x + 3]
    total = (one + two) + (three + four)
    for x in range(whole, row.size):
        total += row[x] * other[x]
    return total
