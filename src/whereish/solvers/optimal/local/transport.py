"""What a dual mu is worth: for every output a transportation problem with losses.

A dual mu of the sums bounds every private channel by its sum, as soon as no private column k of any
output z has (c_z - mu) . k < 0.  By duality that is so if and only if there are multipliers y >= 0
of the rows k_i >= e^{-d(i,j)} k_j with c_z - mu - G' y >= 0: what a place i has too much, r_i > 0
for r = c_z - mu, may be sent to a place j that lacks, r_j < 0, and e^{-d(i,j)} of it arrives,

    sum_j f_ij <= r_i,     sum_i e^{-d(i,j)} f_ij + s_j >= -r_j,     f, s >= 0.

Thanks to the triangle inequality nothing has to pass a third place: this is a transportation
problem.  On steep metrics each place that lacks has a few dozen places near it that can give, and a
simplex method takes milliseconds.  It makes the sum of s least; mu - s is then a dual for this
output, and for those before, since lowering mu harms none.

Nothing rests on the simplex method: any f >= 0 gives a true s, taken anew from f and raised by what
rounding may have added.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from whereish.arrays import FloatArray

__all__ = ["lowered_duals", "shortfall"]

_FARTHEST = math.exp(-16.0)
"""Closeness below which nothing is sent: what arrives would be lost in the tolerance."""
_MOST_GIVERS = 64
"""Places that may give to one, the nearest first."""
_TOLERANCE = 1e-9
"""Of the simplex method, in units of the largest cost; what it leaves lowers the bound."""
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
    mu = mu.copy()
    for one in cost:
        if over():
            return None
        short = shortfall(one, mu, closeness)
        mu -= short
        mu -= _EPS * (np.abs(mu) + short)  # the difference was rounded
    return mu


def shortfall(cost: FloatArray, mu: FloatArray, closeness: FloatArray) -> FloatArray:
    """s >= 0 such that (cost - mu + s) . k >= 0 for every private column k."""
    reduced = cost - mu
    gives, lacks = np.flatnonzero(reduced > 0), np.flatnonzero(reduced < 0)
    if lacks.size == 0:
        return np.zeros(mu.size)
    near = closeness[np.ix_(lacks, gives)]
    taker, giver = _arcs(near)
    flow = _least_short(reduced[gives], -reduced[lacks], giver, taker, near[taker, giver])
    i, j = gives[giver], lacks[taker]
    size = cost + np.abs(mu)
    for where, sent in ((i, -flow), (j, near[taker, giver] * flow)):
        reduced = reduced + np.bincount(where, sent, minlength=mu.size)
        size = size + np.bincount(where, np.abs(sent), minlength=mu.size)
    terms = np.bincount(np.concatenate([i, j]), minlength=mu.size)
    # An entry sums so many numbers, products with e^{-d}, itself off by an ulp, among them.
    return np.asarray(np.maximum((terms + 8.0) * _EPS * size - reduced, 0.0))


def _arcs(near: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which place may take from which: `near` is (takers, givers)."""
    if near.shape[1] > _MOST_GIVERS:
        least = np.partition(near, -_MOST_GIVERS, axis=1)[:, -_MOST_GIVERS, None]
        near = np.where(near >= least, near, 0.0)
    taker, giver = np.nonzero(near > _FARTHEST)
    return taker, giver


def _least_short(
    supply: FloatArray,
    demand: FloatArray,
    giver: NDArray[np.intp],
    taker: NDArray[np.intp],
    arrives: FloatArray,
) -> FloatArray:
    """What to send on every arc so that the least is lacking in all; never more than there is."""
    arcs, scale = giver.size, max(float(supply.max(initial=0.0)), float(demand.max()))
    if arcs == 0:
        return np.zeros(0)
    row = np.concatenate([giver, supply.size + taker, supply.size + np.arange(demand.size)])
    column = np.concatenate([np.arange(arcs), np.arange(arcs + demand.size)])
    entry = np.concatenate([np.ones(arcs), -arrives, np.full(demand.size, -1.0)])
    found = linprog(  # type: ignore[call-overload]  # sparse is documented
        np.concatenate([np.zeros(arcs), np.ones(demand.size)]),
        A_ub=coo_array((entry, (row, column))).tocsc(),
        b_ub=np.concatenate([supply, -demand]) / scale,
        method="highs-ds",
        options={"primal_feasibility_tolerance": _TOLERANCE},
    )
    if found.x is None:
        return np.zeros(arcs)
    flow = scale * np.maximum(found.x[:arcs], 0.0)
    sent = np.bincount(giver, flow, minlength=supply.size)
    return np.asarray(flow * np.minimum(1.0, supply / np.maximum(sent, supply))[giver])
