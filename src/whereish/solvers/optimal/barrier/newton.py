"""Newton steps of rows with a barrier term: one compiled section that threads share.

Predictor-corrector after Mehrotra (1992) with Gondzio's (1996) multiple centrality corrections, for
the systems of `barrier.systems`.  H is factored by items, whose contributions to S = A H^{-1} A'
are added up.  Then every direction takes two calls of all parts, between which the outputs are
coupled: down, from targets of the products s y to what is asked of k and to k's own part of the
answer, and up, from the multipliers of the sums to the moves of all rows.  Sums over outputs are
sums of the parts, which are fixed, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.solvers.optimal.barrier.coupling import BLOCKS, add_block, factor_sum
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
    weigh_rows,
)
from whereish.solvers.optimal.barrier.factors import NO_FACTOR, solve_packed
from whereish.solvers.optimal.barrier.rows import Pairs
from whereish.solvers.optimal.barrier.systems import (
    Lapack,
    NewtonSystem,
    factor_item,
    follow,
    free,
)
from whereish.solvers.optimal.crew import (
    Crew,
    finish,
    first_item,
    in_crew,
    item_after,
    next_item,
    wait_for_all,
)

__all__ = ["Moved", "Rules", "newton_step"]

_BEGIN, _WEIGH, _FACTOR, _ADD, _DOWN, _UP, _AFTER, _MOVE = range(8)
_VANISH, _CENTRE, _DRAW_IN = range(3)
_DONE, _FAILED, _SINGULAR = range(1, 4)
_THREAD_FAILED = "a thread of the interior point failed"


class Rules(NamedTuple):
    """How a step is made.

    Attributes
    ----------
    corrections : the most of Gondzio's.
    share : of what keeps s and y positive.
    least : the complementarity aimed at is not below it.
    """

    corrections: int
    share: float
    least: float = 0.0


class _Task(NamedTuple):
    """What a section works on; of dk, ds, dy and dmu two are in use at a time."""

    lapack: Lapack
    start: IntArray
    pairs: Pairs
    parts: IntArray
    begun: FloatArray
    """k."""
    at: AtRows
    weight: FloatArray
    """y / s."""
    residual: FloatArray
    """Of the duals, a row for each of k."""
    target: FloatArray
    k: tuple[FloatArray, FloatArray]
    ds: tuple[FloatArray, FloatArray]
    dy: tuple[FloatArray, FloatArray]
    dmu: FloatArray
    plan: IntArray
    """Which targets; which of the two is the best direction, and which is written; corrections."""
    aims: FloatArray
    """Of the products s y; of the steps to look at, or to go; the products' sum; the best steps."""
    found: FloatArray
    """Of every item: a sum of products or whether it was done, and the largest parts of slacks and
    multipliers that are taken away."""
    sums: FloatArray


@dataclass(frozen=True)
class Moved:
    """Where a step leads, and the parts of the direction that are gone."""

    k: FloatArray
    s: FloatArray
    y: FloatArray
    mu: FloatArray
    products: float
    """Sum of s y."""
    steps: Steps


def newton_step(
    rows: SharedRows,
    k: FloatArray,
    s: FloatArray,
    y: FloatArray,
    mu: FloatArray,
    *,
    system: NewtonSystem,
    dual_residual: FloatArray,
    rules: Rules,
) -> Moved:
    """A step along Mehrotra's predictor-corrector direction with some of Gondzio's corrections.

    Raises
    ------
    SolverError
        If a matrix has no factor however it is regularised.
    """
    count, (start, pairs) = len(rows.parts), rows.rows
    # Memory that is new is memory that the system has yet to give.
    dk, ds, dy = (
        (np.empty(shape), np.empty(shape)) for shape in (dual_residual.shape, rows.size, rows.size)
    )
    task = _Task(
        Lapack.here(),
        start,
        pairs,
        np.array(rows.parts, np.int64),
        k,
        AtRows(s, y, np.empty(rows.size)),
        np.empty(rows.size),
        dual_residual,
        np.empty(rows.size),
        dk,
        ds,
        dy,
        np.empty((2, mu.size)),
        np.zeros(4, np.int64),
        np.zeros(6),
        np.empty((max(count, len(system.coupling.parts), BLOCKS), 3)),
        np.empty((count, mu.size)),
    )
    state = in_crew(rows.team, partial(_section, task, system, rules))
    if state != _DONE:
        raise SolverError(NO_FACTOR if state == _SINGULAR else _THREAD_FAILED)
    best, steps = task.plan[1], Steps(float(task.aims[1]), float(task.aims[2]))
    products = float(task.found[:count, 0].sum())
    return Moved(dk[best], ds[best], dy[best], mu + steps.dual * task.dmu[best], products, steps)


def _section(task: _Task, system: NewtonSystem, rules: Rules, crew: Crew, who: int) -> int:
    return step_in_crew(crew, who, task, system, rules)


@kernel
def step_in_crew(crew: Crew, who: int, task: _Task, system: NewtonSystem, rules: Rules) -> int:
    """Write where the best direction leads over that direction; how it ended.

    What is done with an item is written once: it is compiled for every place that names it.
    """
    kind, item, count = _BEGIN, -1, 0
    while True:
        if who > 0:
            kind, item = next_item(crew, who)
            if kind < 0:
                return _DONE
        elif item < 0:
            if not wait_for_all(crew, count):
                return _FAILED
            kind = _next_call(kind, task, system, rules)
            if kind < 0:
                return -kind
            count = _items(kind, task, system)
            item = first_item(crew, kind, count)
            continue
        if kind == _FACTOR:
            done = factor_item(
                task.lapack, item, system, task.start, task.pairs, task.parts, task.weight
            )
            task.found[item, 0] = 1.0 if done else 0.0
        elif kind == _ADD:
            add_block(system.coupling, item)
        else:
            _work_on_part(kind, item, task, system)
        if who > 0:
            finish(crew)
        else:
            item = item_after(crew, item, count)


@kernel
def _items(kind: int, task: _Task, system: NewtonSystem) -> int:
    """How many there are of a kind."""
    if kind == _FACTOR:
        return int(system.coupling.parts.shape[0])
    return BLOCKS if kind == _ADD else task.parts.shape[0]


@kernel
def _next_call(kind: int, task: _Task, system: NewtonSystem, rules: Rules) -> int:
    """What is due after a call that all have done, alone; the next one, or less how it ended."""
    if kind <= _FACTOR:
        return _before_directions(kind, task, system)
    plan, aims, parts = task.plan, task.aims, task.parts.shape[0]
    if kind == _ADD:
        plan[0], plan[1], plan[2] = _VANISH, 0, 1
        return _DOWN if factor_sum(task.lapack.potrf, system.coupling) else -_SINGULAR
    if kind == _DOWN:
        _couple(task, system)
        return _UP
    if kind == _AFTER:
        centring = min(max((task.found[:parts, 0].sum() / aims[3]) ** 3, 1e-6), 1.0)
        aims[0] = max(centring * aims[3], rules.least) / task.target.size
        plan[0] = _CENTRE
        return _DOWN
    return _after_direction(task, rules) if kind == _UP else -_DONE


@kernel
def _before_directions(kind: int, task: _Task, system: NewtonSystem) -> int:
    if kind == _FACTOR:
        done = task.found[: system.coupling.parts.shape[0], 0].min() > 0.0
        return _ADD if done else -_SINGULAR
    if kind == _WEIGH:
        task.aims[3] = task.found[: task.parts.shape[0], 0].sum()
        return _FACTOR
    return _WEIGH


@kernel
def _couple(task: _Task, system: NewtonSystem) -> None:
    """Write the multipliers of the sums."""
    dmu = task.dmu[task.plan[2]]
    dmu[:] = task.sums[0]
    for part in range(1, task.parts.shape[0]):
        for x in range(dmu.size):
            dmu[x] += task.sums[part, x]
    for x in range(dmu.size):
        dmu[x] = system.missing[x] - dmu[x]
    solve_packed(task.lapack.tpsv, system.coupling.packed, dmu)


@kernel
def _after_direction(task: _Task, rules: Rules) -> int:
    """Whether it is the best so far, and whether another one is to be tried."""
    plan, aims = task.plan, task.aims
    fall_s, fall_y = 1.0, 1.0
    for part in range(task.parts.shape[0]):
        fall_s, fall_y = max(fall_s, task.found[part, 1]), max(fall_y, task.found[part, 2])
    primal, dual = 1.0 / fall_s, 1.0 / fall_y
    better = plan[0] != _DRAW_IN or primal + dual >= aims[4] + aims[5] + 0.02
    if better:
        plan[1], plan[2] = plan[2], plan[1]
        aims[4], aims[5] = primal, dual
    aims[1], aims[2] = aims[4], aims[5]
    if plan[0] == _VANISH:
        return _AFTER
    if better and plan[3] < rules.corrections and min(primal, dual) <= 0.95:
        plan[0] = _DRAW_IN
        plan[3] += 1
        aims[1], aims[2] = min(1.0, 1.08 * primal + 0.1), min(1.0, 1.08 * dual + 0.1)
        return _DOWN
    aims[1], aims[2] = rules.share * aims[4], rules.share * aims[5]
    return _MOVE


@kernel
def _work_on_part(kind: int, item: int, task: _Task, system: NewtonSystem) -> None:
    """Rows and columns of a part, for all that comes before and after factors."""
    at, best, written = task.at, task.plan[1], task.plan[2]
    part = (task.parts[item, 0], task.parts[item, 1])
    some = (task.start[part[0]], task.start[part[1]])
    steps = Steps(task.aims[1], task.aims[2])
    if kind == _WEIGH:
        task.found[item, 0] = weigh_rows(task.begun, at, task.start, task.pairs, part, task.weight)
    elif kind == _DOWN:
        _aim(some, task, steps)
        k = task.k[written]
        pull_of_targets(at, task.target, task.start, task.pairs, part, task.residual, k)
        free(task.lapack.tpsv, system, task.weight, part, k, task.sums[item])
    elif kind == _UP:
        k, ds, dy = task.k[written], task.ds[written], task.dy[written]
        follow(task.lapack.tpsv, system, task.weight, part, task.dmu[written], k)
        falls = row_moves(at, task.target, task.start, task.pairs, part, k, ds, dy)
        task.found[item, 1], task.found[item, 2] = falls
    elif kind == _AFTER:
        task.found[item, 0] = products_after(at, task.ds[best], task.dy[best], steps, some)
    else:
        k, ds, dy = task.k[best], task.ds[best], task.dy[best]
        task.found[item, 0] = take_step(task.begun, at, steps, part, some, k, ds, dy)


@kernel
def _aim(rows: tuple[int, int], task: _Task, steps: Steps) -> None:
    """Write the targets of a range of rows."""
    at, best, aim = task.at, task.plan[1], task.aims[0]
    if task.plan[0] == _VANISH:
        vanish_targets(at, rows, task.target)
    elif task.plan[0] == _CENTRE:
        centre_targets(at, task.ds[best], task.dy[best], aim, rows, task.target)
    else:
        draw_in_targets(at, task.ds[best], task.dy[best], steps, aim, rows, task.target)


@kernel
def take_step(
    k: FloatArray,
    at: AtRows,
    steps: Steps,
    outputs: tuple[int, int],
    rows: tuple[int, int],
    dk: FloatArray,
    ds: FloatArray,
    dy: FloatArray,
) -> float:
    """Overwrite the moves of a range of rows of k by where they lead; the sum of s y there."""
    products = 0.0
    for z in range(outputs[0], outputs[1]):
        for x in range(k.shape[1]):
            dk[z, x] = k[z, x] + steps.primal * dk[z, x]
    for row in range(rows[0], rows[1]):
        ds[row] = at.slack[row] + steps.primal * ds[row]
        dy[row] = at.y[row] + steps.dual * dy[row]
        products += ds[row] * dy[row]
    return products
