"""What a dual mu is worth: for every output a transportation problem with losses.

A dual mu of the sums bounds every private channel by its sum, as soon as no private column k of any
output z has (c_z - mu) . k < 0.  By duality that is so if and only if there are multipliers y >= 0
of the rows k_i >= e^{-d(i,j)} k_j with c_z - mu - G' y >= 0: what a place i has too much, r_i > 0
for r = c_z - mu, may be sent to a place j that lacks, r_j < 0, and e^{-d(i,j)} of it arrives,

    sum_j f_ij <= r_i,     sum_i e^{-d(i,j)} f_ij + s_j >= -r_j,     f, s >= 0.

Thanks to the triangle inequality nothing has to pass a third place: this is a transportation
problem.  On steep metrics each place that lacks has a few dozen places near it that can give, and a
simplex method takes milliseconds.  It makes the sum of s least; mu - s is then a dual for this
output, and for those before, since lowering mu harms none.  Most outputs lack nothing, which
threads find at the same time; the others come a few at a time, which lower what is left of mu by
the most that one of them lacks.

Nothing rests on the simplex method: any f >= 0 gives a true s, taken anew from f and raised by what
rounding may have added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from whereish.arrays import FloatArray
from whereish.threads import workers

__all__ = ["lowered_duals", "shortfalls"]

_FARTHEST = math.exp(-16.0)
"""Closeness below which nothing is sent: what arrives would be lost in the tolerance."""
_FEW_GIVERS, _MOST_GIVERS = 24, 64
"""Places that may give to one, the nearest first: to begin with, and where those leave a lack."""
_TOLERANCE = 1e-9
"""Of the simplex method, in units of the largest cost; what it leaves lowers the bound."""
_NOTHING = 1e-8
"""Of the sum of mu: less counts as no lack."""
_AT_ONCE = 4
"""Outputs of one call, which takes a millisecond to say."""
_LACKING = 8
"""Outputs that lower mu together: they lack at different places, or the same there."""
_EPS = float(np.finfo(float).eps)


def lowered_duals(
    cost: FloatArray,
    mu: FloatArray,
    closeness: FloatArray,
    *,
    over: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """mu lowered until no private column of any output has a negative reduced cost.

    None if it is `over` before the last output.
    """
    calls = [cost[begin : begin + _AT_ONCE] for begin in range(0, len(cost), _AT_ONCE)]

    def found(one: FloatArray) -> FloatArray | None:
        return None if over() else shortfalls(one, mu, closeness, _FEW_GIVERS)

    with workers() as team:
        parts = [part for part in team.map(found, calls) if part is not None]
        if len(parts) < len(calls):
            return None
        short = np.concatenate(parts)
        lacking = short.sum(axis=1) > _NOTHING * float(np.abs(mu).sum())
        lowered = _less(mu, short[~lacking].max(axis=0, initial=0.0))
        left = cost[lacking]
        for begin in range(0, len(left), _LACKING):
            if over():
                return None
            alone = [one[None] for one in left[begin : begin + _LACKING]]
            lacks = team.map(partial(shortfalls, mu=lowered, closeness=closeness), alone)
            lowered = _less(lowered, np.max(lacks, axis=(0, 1)))
    return lowered


def _less(mu: FloatArray, short: FloatArray) -> FloatArray:
    """mu - short, not rounded up."""
    less = mu - short
    return np.asarray(less - _EPS * (np.abs(less) + short))


def shortfalls(
    cost: FloatArray, mu: FloatArray, closeness: FloatArray, givers: int = _MOST_GIVERS
) -> FloatArray:
    """s >= 0, (outputs, n), such that (c_z - mu + s_z) . k >= 0 for every private column k."""
    problems = [_Problem.of(one - mu, closeness, givers) for one in cost]
    flows = _least_short(problems)
    found = []
    for one, problem, flow in zip(cost, problems, flows, strict=True):
        reduced, size = one - mu, one + np.abs(mu)
        for where, sent in ((problem.giver, -flow), (problem.taker, problem.arrives * flow)):
            reduced = reduced + np.bincount(where, sent, minlength=mu.size)
            size = size + np.bincount(where, np.abs(sent), minlength=mu.size)
        ends = np.concatenate([problem.giver, problem.taker])
        terms = np.bincount(ends, minlength=mu.size)
        # An entry sums so many numbers, products with e^{-d}, itself off by an ulp, among them.
        found.append(np.maximum((terms + 8.0) * _EPS * size - reduced, 0.0))
    return np.array(found)


class _Problem(NamedTuple):
    """What places have or lack, (n,), and which place may give to which, with what arrives."""

    reduced: FloatArray
    giver: NDArray[np.intp]
    taker: NDArray[np.intp]
    arrives: FloatArray

    @classmethod
    def of(cls, reduced: FloatArray, closeness: FloatArray, givers: int) -> _Problem:
        gives, lacks = np.flatnonzero(reduced > 0), np.flatnonzero(reduced < 0)
        near = closeness[np.ix_(lacks, gives)]
        if gives.size > givers:
            least = np.partition(near, -givers, axis=1)[:, -givers, None]
            near = np.where(near >= least, near, 0.0)
        taker, giver = np.nonzero(near > _FARTHEST)
        return cls(reduced, gives[giver], lacks[taker], near[taker, giver])


def _least_short(problems: list[_Problem]) -> list[FloatArray]:
    """What to send on every arc so that the least is lacking in all; never more than there is.

    The problems have nothing to do with each other, but that one call solves them all.
    """
    rows, columns, entries, bounds, costs = [], [], [], [], []
    begin, first = [], 0
    for at, (reduced, giver, taker, arrives) in enumerate(problems):
        lacks = np.flatnonzero(reduced < 0)
        flows = first + np.arange(giver.size)
        row = at * reduced.size
        rows += [row + giver, row + taker, row + lacks]
        columns += [flows, flows, first + giver.size + np.arange(lacks.size)]
        entries += [np.ones(giver.size), -arrives, np.full(lacks.size, -1.0)]
        bounds.append(reduced / (float(np.abs(reduced).max()) or 1.0))
        costs += [np.zeros(giver.size), np.ones(lacks.size)]
        begin.append(first)
        first += giver.size + lacks.size
    if not any(problem.giver.size for problem in problems):
        return [np.zeros(0) for _ in problems]
    places = np.concatenate(rows), np.concatenate(columns)
    shape = (sum(problem.reduced.size for problem in problems), first)
    found = linprog(  # type: ignore[call-overload]  # sparse is documented
        np.concatenate(costs),
        A_ub=coo_array((np.concatenate(entries), places), shape).tocsc(),
        b_ub=np.concatenate(bounds),
        method="highs-ds",
        options={"primal_feasibility_tolerance": _TOLERANCE, "presolve": False},
    )
    if found.x is None:
        return [np.zeros(problem.giver.size) for problem in problems]
    return [
        _within_supply(problem, found.x[at : at + problem.giver.size])
        for at, problem in zip(begin, problems, strict=True)
    ]


def _within_supply(problem: _Problem, flow: FloatArray) -> FloatArray:
    """The flow in units of cost, less what a place gives beyond what it has."""
    supply = np.maximum(problem.reduced, 0.0)
    flow = float(np.abs(problem.reduced).max()) * np.maximum(flow, 0.0)
    sent = np.bincount(problem.giver, flow, minlength=supply.size)
    part = np.minimum(1.0, supply / np.maximum(np.maximum(sent, supply), np.finfo(float).tiny))
    return np.asarray(flow * part[problem.giver])
