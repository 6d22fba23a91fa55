"""The cheapest private column on some rows: an interior point in one compiled piece.

    minimise r . k   subject to  G k >= 0,  w . k = 1,

with multipliers y >= 0 of the rows and tau of the sum: r - tau w - G' y = 0 where the duals are
feasible, and min_x (r - G' y)_x / w_x is a lower bound for any y >= 0.  The directions are those of
`directions`, for one output, whose sum couples nothing but itself.  Pricing asks for thousands of
such columns, and a step takes some ten microseconds at a few dozen places: less than Python takes
to say what is to be done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    Steps,
    centre_targets,
    draw_in_targets,
    products_after,
    pull_of_targets,
    row_moves,
    vanish_targets,
)
from whereish.solvers.optimal.barrier.factors import factor_regularised, pack, solve_packed
from whereish.solvers.optimal.barrier.rows import (
    Pairs,
    assemble_normal_matrix,
    pull_back,
    slacks,
    write_multipliers,
)

__all__ = ["Columns", "Lapack", "OneOutput", "cheapest_column", "corrected_move", "price_outputs"]

_MOST_ITERATIONS = 60
_CORRECTIONS, _STEP = 2, 0.95


class Lapack(NamedTuple):
    """Where its functions are in this process."""

    potrf: int
    tpsv: int
    gesv: int


class Columns(NamedTuple):
    """What is found of several outputs: bounds of the optima, columns, multipliers of all rows.

    `private` says whether the column, closed upward, has a negative reduced cost beyond what is
    tolerated; otherwise it leans on rows that it does not have, or is excluded by its bound.
    """

    lower: FloatArray
    k: FloatArray
    y: FloatArray
    private: NDArray[np.bool_]


class OneOutput(NamedTuple):
    """The Newton system of one column: H dk - dtau w = q, w . dk = missing.

    Attributes
    ----------
    factor : that of H, packed.
    weight, along : w and H^{-1} w.
    """

    factor: FloatArray
    weight: FloatArray
    along: FloatArray
    missing: float


@kernel
def dot(one: FloatArray, other: FloatArray) -> float:
    """Their product, added up from the first number on."""
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total


@kernel
def _along_targets(
    tpsv: int,
    system: OneOutput,
    at: AtRows,
    target: FloatArray,
    start: IntArray,
    pairs: Pairs,
    residual: FloatArray,
    dk: FloatArray,
    ds: FloatArray,
    dy: FloatArray,
) -> tuple[float, Steps]:
    """Write the direction for these targets; dtau, and the steps that keep s and y nonnegative."""
    pull_of_targets(at, target, start, pairs, (0, 1), residual, dk)
    solve_packed(tpsv, system.factor, dk[0])
    curvature = dot(system.weight, system.along)
    dtau = (system.missing - dot(system.weight, dk[0])) / curvature
    for x in range(dk.shape[1]):
        dk[0, x] += dtau * system.along[x]
    fall_s, fall_y = row_moves(at, target, start, pairs, (0, 1), dk, ds, dy)
    return dtau, Steps(1.0 / max(1.0, fall_s), 1.0 / max(1.0, fall_y))


@kernel
def corrected_move(
    tpsv: int,
    system: OneOutput,
    at: AtRows,
    start: IntArray,
    pairs: Pairs,
    residual: FloatArray,
    corrections: int,
) -> tuple[FloatArray, FloatArray, float, Steps]:
    """The direction of `newton` for one output: dk, dy, dtau and the steps."""
    rows = (0, pairs.source.size)
    size, n = pairs.source.size, residual.shape[1]
    target = np.empty(size)
    dk, ds, dy = np.empty((2, 1, n)), np.empty((2, size)), np.empty((2, size))
    vanish_targets(at, rows, target)
    _, steps = _along_targets(tpsv, system, at, target, start, pairs, residual, dk[0], ds[0], dy[0])
    complementarity = dot(at.slack, at.y)
    after = products_after(at, ds[0], dy[0], steps, rows)
    aim = min(max((after / complementarity) ** 3, 1e-6), 1.0) * complementarity / size
    centre_targets(at, ds[0], dy[0], aim, rows, target)
    used, free = 1, 0
    dtau, steps = _along_targets(
        tpsv, system, at, target, start, pairs, residual, dk[1], ds[1], dy[1]
    )
    for _ in range(corrections):
        if min(steps.primal, steps.dual) > 0.95:
            break
        longer = Steps(min(1.0, 1.08 * steps.primal + 0.1), min(1.0, 1.08 * steps.dual + 0.1))
        draw_in_targets(at, ds[used], dy[used], longer, aim, rows, target)
        other, corrected = _along_targets(
            tpsv, system, at, target, start, pairs, residual, dk[free], ds[free], dy[free]
        )
        if corrected.primal + corrected.dual < steps.primal + steps.dual + 0.02:
            break
        dtau, steps = other, corrected
        used, free = free, used
    return dk[used], dy[used], dtau, steps


@kernel
def cheapest_column(
    lapack: Lapack,
    reduced: FloatArray,
    weight: FloatArray,
    start: IntArray,
    pairs: Pairs,
    y: FloatArray,
    tau: float,
    tolerance: float,
) -> tuple[bool, float, FloatArray, FloatArray]:
    """Whether all matrices had factors; the lower bound, the column, the multipliers of the bound.

    Begins at feasible duals y > 0 and `tau`, and ends when the bound is within `tolerance`, or when
    the sign of the optimum is decided and half of its size is known.
    """
    n = reduced.size
    k = np.full((1, n), 1.0 / weight.sum())
    work, factor, along = np.empty((n, n)), np.empty(n * (n + 1) // 2), np.empty(n)
    residual, none = np.empty((1, n)), np.zeros(pairs.source.size)
    lower, best = -np.inf, y
    for _ in range(_MOST_ITERATIONS):
        pulled = pull_back(y, start, pairs, n)
        bound = np.inf
        for x in range(n):
            share = (reduced[x] - pulled[0, x]) / weight[x]
            bound = share if share < bound or np.isnan(share) else bound
        if bound > lower:
            lower, best = bound, y
        upper = dot(reduced, k[0])
        decided = lower >= 0.0 or (upper < 0.0 and upper - lower < 0.5 * abs(upper))
        if decided or upper - lower < tolerance:
            break
        slack = slacks(k, start, pairs)
        assemble_normal_matrix(y / slack, 0, y.size, pairs, work)
        if not factor_regularised(lapack.potrf, work):
            return False, lower, k[0], best
        pack(work, factor)
        along[:] = weight
        solve_packed(lapack.tpsv, factor, along)
        system = OneOutput(factor, weight, along, 1.0 - dot(weight, k[0]))
        for x in range(n):
            residual[0, x] = reduced[x] - tau * weight[x] - pulled[0, x]
        at = AtRows(slack, y, none)
        dk, dy, dtau, steps = corrected_move(
            lapack.tpsv, system, at, start, pairs, residual, _CORRECTIONS
        )
        k = k + _STEP * steps.primal * dk
        y = y + _STEP * steps.dual * dy
        tau += _STEP * steps.dual * dtau
    return True, lower, k[0], best


@kernel
def price_outputs(
    lapack: Lapack,
    cost: FloatArray,
    mu: FloatArray,
    weight: FloatArray,
    closeness: FloatArray,
    start: IntArray,
    pairs: Pairs,
    tolerance: float,
    outputs: tuple[int, int],
    out: Columns,
) -> bool:
    """Write the cheapest columns for c_z - mu of a range of outputs; whether all were found.

    What is tolerated is `tolerance` times w . k; columns are found to a tenth of it.
    """
    n = mu.size
    for z in range(outputs[0], outputs[1]):
        begin, end = start[z], start[z + 1]
        mine = Pairs(pairs.source[begin:end], pairs.target[begin:end], pairs.factor[begin:end])
        reduced = cost[z] - mu
        ratio = reduced / weight
        tau = min(ratio.min(), 0.0) - 0.3 * np.abs(ratio).mean() - 1e-12
        y = np.empty(end - begin)
        if not write_multipliers(lapack.gesv, reduced - tau * weight, (0, y.size), mine, y):
            return False
        found, lower, k, best = cheapest_column(
            lapack, reduced, weight, np.array([0, y.size]), mine, y, tau, 0.1 * tolerance
        )
        if not found:
            return False
        out.lower[z], out.k[z], out.y[begin:end] = lower, k, best
        value, size = 0.0, 0.0
        for x in range(n):
            closed = 0.0
            for other in range(n):
                closed = max(closed, closeness[x, other] * k[other])
            value += reduced[x] * closed
            size += weight[x] * closed
        out.private[z] = lower < -tolerance and value < -tolerance * size
    return True
