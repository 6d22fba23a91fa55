"""Outputs that are worth reporting: those that no other one beats at every place.

If c_z >= c_t at every secret, any column of z may move to t at no cost, and a proof that no private
column of t has a negative reduced cost is one for z, too.  So z is left out, and the optimum and
its bound stay as they are.  With a threshold, or where few places have a prior above zero, that
leaves few outputs.

Where only c_z + s >= c_t, s >= 0 the same for all such z and t an output that stays, moving their
columns costs at most sum_x s_x in all, since the reports of a secret sum to one: the optimum
without them is at most so much above the optimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel

__all__ = ["undominated"]


def undominated(cost: FloatArray, tolerated: FloatArray | None = None) -> NDArray[np.intp]:
    """The outputs of `cost`, (outputs, n), that no other one beats; of equal ones the first.

    An output is beaten where another one costs at most `tolerated` more, (n,), at every secret.
    """
    if tolerated is None:
        tolerated = np.zeros(cost.shape[1])
    dearest_first = np.ascontiguousarray(np.argsort(-cost.max(axis=0), kind="stable"))
    cheapest_first = np.argsort(cost.sum(axis=1), kind="stable")
    return np.flatnonzero(_undominated(cost, tolerated, cheapest_first, dearest_first))


@kernel
def _undominated(
    cost: FloatArray,
    tolerated: FloatArray,
    outputs: NDArray[np.intp],
    secrets: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Outputs in turn, each against those kept before, which stay; secrets that tell most first."""
    kept = np.zeros(outputs.size, np.bool_)
    for turn in range(outputs.size):
        z = outputs[turn]
        kept[z] = True
        for t in outputs[:turn]:
            if not kept[t]:
                continue
            beaten = True
            for x in secrets:
                if cost[t, x] - cost[z, x] > tolerated[x]:
                    beaten = False
                    break
            if beaten:
                kept[z] = False
                break
    return kept
