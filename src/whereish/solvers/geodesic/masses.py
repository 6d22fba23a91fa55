"""The law that is sampled: integers, so that what is proven is what is drawn.

Masses are m(u, y) = k_y·t[D(u, y)] with integer weights k and an integer table t
of e^{-q·i}.  The table starts at 2^42 and goes on by

    t[i + 1] = ceil(t[i] / e^q),

rounded upwards with a lower bound of e^q, so that t[i] <= e^{q·(j - i)} t[j] holds
exactly for all i <= j.  With D a metric and Z(u) the exact sum of the masses,

    |ln P(y | u) - ln P(y | u')| <= q·D(u, u') + |ln Z(u) - ln Z(u')|

for all y: the bound that :mod:`whereish.solvers.eikonal.certify` certifies edge by edge.  The
rounding upwards makes the far tail flatter, never steeper, and no mass is ever zero.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import NotPrivate
from whereish.randomness import Randomness
from whereish.solvers.geodesic.lanes import LIMIT

__all__ = [
    "SUM_LIMIT",
    "TABLE_BITS",
    "check_sums",
    "checked_weights",
    "decay_table",
    "integer_weights",
    "uniform_below",
]

TABLE_BITS = 42
"""t[0] = 2^42, which leaves 21 bits for the weights below 2^63."""

SUM_LIMIT = 1 << 63
"""Sums of masses stay below this, and are computed so that what reaches it stops there."""

_FIXED_POINT = 128


@lru_cache(maxsize=8)
def decay_table(quantum: float, core: int = 0) -> NDArray[np.uint64]:
    """The integer table of e^{-quantum·max(i, core)} for i = 0 .. 65535."""
    context = Context(prec=60)
    # Decimal's exp is correct to half a unit of its last place: one unit less is below e^q.
    power = context.exp(Decimal(quantum))
    below = context.subtract(power, Decimal(1).scaleb(power.adjusted() - 59))
    ratio = int(context.multiply(below, Decimal(2) ** _FIXED_POINT)) - 1
    table = [1 << TABLE_BITS]
    for _ in range(LIMIT):
        table.append(-(-(table[-1] << _FIXED_POINT) // ratio))
    result = np.array(table, np.uint64)
    result[:core] = result[core]
    result.flags.writeable = False
    return result


def integer_weights(weights: FloatArray, largest_sum: float) -> NDArray[np.uint64]:
    """Weights rounded to integers k, scaled so that no sum of masses reaches 2^63.

    `largest_sum` bounds the sums of weights·e^{-d}; a factor of two is kept in hand.
    """
    scale = 2.0 ** (62 - TABLE_BITS) / max(1.0, largest_sum)
    return np.rint(weights * scale).astype(np.uint64)


def checked_weights(weights: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Weights of which no mass k·t reaches 2^63, so that saturated sums never wrap around."""
    if weights.dtype != np.uint64 or weights.shape != (count,):
        raise NotPrivate(
            f"there must be {count} weights, as uint64; got {weights.dtype} of shape"
            f" {weights.shape}: build the mechanism again"
        )
    if not 0 < int(weights.max()) < SUM_LIMIT >> TABLE_BITS:
        raise NotPrivate(
            f"weights must be below {SUM_LIMIT >> TABLE_BITS}, and one of them above 0; the largest"
            f" is {int(weights.max())}: build the mechanism again"
        )
    return weights


def check_sums(sums: NDArray[np.uint64]) -> None:
    """Refuse sums that were stopped at 2^63."""
    if int(sums.max(initial=0)) >= SUM_LIMIT:
        raise NotPrivate(
            "the masses of a secret must sum to less than 2^63; these weights sum to more: build"
            " the mechanism again"
        )


def uniform_below(sums: NDArray[np.uint64], source: Randomness) -> NDArray[np.uint64]:
    """Exactly uniform integers in 0 .. sum - 1 (rejected with probability 2^-64)."""
    out = []
    words = source.words(2 * len(sums)).tolist()
    for total, high, low in zip(sums.tolist(), words[::2], words[1::2], strict=True):
        value = ((high << 64) | low) // ((1 << 128) // total)
        while value >= total:
            high, low = source.words(2).tolist()  # noqa: PLW2901
            value = ((high << 64) | low) // ((1 << 128) // total)
        out.append(value)
    return np.array(out, np.uint64)
