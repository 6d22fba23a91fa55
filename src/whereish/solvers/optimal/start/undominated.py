"""Outputs that are worth reporting: those that no other one beats at every place.

If c_z >= c_t at every secret, any column of z may move to t at no cost, and a proof that no private
column of t has a negative reduced cost is one for z, too.  So z is left out, and the optimum and
its bound stay as they are.  With a threshold, or where few places have a prior above zero, that
leaves few outputs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel

__all__ = ["undominated"]


def undominated(cost: FloatArray) -> NDArray[np.intp]:
    """The outputs of `cost`, (outputs, n), that no other one beats; of equal ones the first."""
    dearest_first = np.ascontiguousarray(np.argsort(-cost.max(axis=0), kind="stable"))
    return np.flatnonzero(_undominated(cost, cost.sum(axis=1), dearest_first))


@kernel
def _undominated(cost: FloatArray, total: FloatArray, order: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Secrets are compared in `order`, those that tell most outputs apart first."""
    outputs = cost.shape[0]
    kept = np.ones(outputs, np.bool_)
    for z in range(outputs):
        for t in range(outputs):
            if t == z or not kept[t] or total[t] > total[z]:
                continue
            beaten = True
            for x in order:
                if cost[t, x] > cost[z, x]:
                    beaten = False
                    break
            if beaten:
                kept[z] = False
                break
    return kept
