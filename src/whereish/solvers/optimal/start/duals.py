"""Duals to begin from: those of the tight mechanism.

The tight mechanism's columns are bumps e^{-d(., z)}.  Its duals solve M mu = b with
b_z = min_t sum_x c_tx e^{-d(x,z)}, the cost of a bump at its best output.  For an output t the
reduced cost r = c_t - mu is negative near the output and positive away from it.  On a bump all
rows from the centre outwards are tight, so what is positive flows inwards along shortest paths:
every secret passes r_x and what it received to its neighbour towards the centre, multiplied by
e^{-d} on the way.  Any flow y >= 0 gives a true lower bound, so that nothing here must be exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.rows import Pairs
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.start.channels import level_weights

__all__ = ["anchors", "inward_flows", "near_tight", "tight_duals"]

_RIDGE = 1e-4  # near-coinciding places would make M singular


def tight_duals(programme: ChannelProgramme) -> FloatArray:
    """mu of the tight mechanism after its Bayesian remap."""
    M = programme.closeness + _RIDGE * np.eye(programme.n)
    return np.asarray(np.linalg.solve(M, programme.bump_costs.min(axis=0)))


def near_tight(programme: ChannelProgramme) -> FloatArray:
    """The tight mechanism, remapped: where it does not exist, stochastic but not private."""
    matrix = programme.closeness * level_weights(programme.closeness)
    return programme.merged(matrix / matrix.sum(axis=1, keepdims=True))


def anchors(programme: ChannelProgramme) -> NDArray[np.intp]:
    """The secret around which each output's column lies: where its bump is nearest to the best."""
    best = np.maximum(programme.bump_costs.min(axis=0), np.finfo(float).tiny)
    return np.asarray((programme.bump_costs / best).argmin(axis=1))


@kernel
def inward_flows(
    reduced: FloatArray, metric: FloatArray, centre: int, begin: NDArray[np.intp], rows: Pairs
) -> FloatArray:
    """A flow on every row, for one output; rows begin[j]..begin[j+1] have target j."""
    flow = np.zeros(rows.source.size)
    amount = reduced.copy()
    for x in np.argsort(-metric[centre]):
        if x == centre or amount[x] <= 0.0:
            continue
        parent, shortest = -1, np.inf
        for row in range(begin[x], begin[x + 1]):
            i = rows.source[row]
            length = metric[x, i] + metric[i, centre]
            if metric[i, centre] < metric[x, centre] and length < shortest:
                parent, shortest = row, length
        if parent >= 0:
            flow[parent] = amount[x]
            amount[rows.source[parent]] += rows.factor[parent] * amount[x]
    return flow
