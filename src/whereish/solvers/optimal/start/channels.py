"""Private channels that exist for every metric and cost a few products of n x n.

*Tight*: h_z e^{-d(x,z)} with h = M^{-1} 1, M = e^{-d}, where h >= 0; see `repair`.

*Normalised*: K_xz = w_z e^{-b d(x,z)} / Z_x with Z_x = sum_z w_z e^{-b d(x,z)}, w > 0.  Then
K_xz / K_x'z <= e^{b d(x,x')} Z_x' / Z_x, so it keeps d if and as soon as

    b d(x, x') + |ln Z_x - ln Z_x'| <= d(x, x')   for all pairs,

which b = 1/2 always does (the exponential mechanism).  With weights that make Z nearly
constant b comes near to 1: tight channels are the case Z = 1, b = 1.

*Constant*: one report, whatever the secret.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme, LpResult
from whereish.solvers.optimal.repair import Spare, complete, tight_matrix
from whereish.solvers.optimal.start.merging import merge
from whereish.threads import alone, in_threads

__all__ = [
    "best_start",
    "level_weights",
    "normalised_matrix",
    "simple_solution",
    "spare_channel",
    "strictly_private",
]

_ROUNDS = 60
_DIAMETERS = (0.1, 0.5)
"""Of groups of near places, in nats: merged, their weights do not fight each other."""
_MOST_GROUPS = 1500
_HALVINGS = 7
_INSIDE = 1.0 - 1e-12
_FIRST_EXPONENT = 0.9
_SPARED = 0.1
"""Part of every distance that a spare channel leaves to what it completes."""


def best_start(programme: ChannelProgramme, *others: FloatArray) -> FloatArray:
    """The cheapest of the simple channels after the Bayesian remap, (n, outputs).

    `others` are channels on the same secrets with any reports, private up to what `repair` mends.
    """
    constant = np.zeros((programme.n, programme.cost.shape[0]))
    constant[:, int(programme.cost.sum(axis=1).argmin())] = 1.0
    made: list[Callable[[], FloatArray | None]] = [
        *(partial(_of_near, programme, diameter) for diameter in _DIAMETERS),
        lambda: programme.merged(_simple(programme)),
        *(partial(_completed, programme, other) for other in others),
    ]

    def make(candidate: Callable[[], FloatArray | None]) -> FloatArray | None:
        with alone():
            return candidate()

    found = [matrix for matrix in in_threads(make, made)[::-1] if matrix is not None]
    return min([constant, *found], key=programme.value)


def _completed(programme: ChannelProgramme, other: FloatArray) -> FloatArray:
    return complete(programme, programme.merged(other))


def _of_near(programme: ChannelProgramme, diameter: float) -> FloatArray | None:
    """The simple channel of near places made one, where there are any."""
    merged = merge(programme, diameter)
    if merged is None or merged.first.size > _MOST_GROUPS:
        return None
    return programme.merged(merged.lift(_simple(merged.above)))


def simple_solution(programme: ChannelProgramme, start: FloatArray | None = None) -> LpResult:
    """The best of the simple channels and `start`, remapped, with simple bounds.

    A private channel's rows differ by a factor of at most e^D, D the diameter, so no
    loss is below e^{-D} times the uninformed loss; nor below that of no privacy at all.
    """
    diameter = float(programme.metric.max(initial=0.0))
    uninformed = float(programme.cost.sum(axis=1).min())
    lower = max(np.exp(-diameter) * uninformed, float(programme.cost.min(axis=0).sum()))
    best = best_start(programme) if start is None else best_start(programme, start)
    upper = programme.value(best)
    status = "optimal" if upper <= lower else "stalled"
    return LpResult(upper, min(lower, upper), best, status, "closed form", 0)


def _simple(programme: ChannelProgramme) -> FloatArray:
    tight = tight_matrix(programme.closeness)
    return normalised_matrix(programme.metric) if tight is None else tight


def level_weights(closeness: FloatArray) -> FloatArray:
    """Weights w > 0 that bring closeness @ w near to 1, by multiplicative least squares."""
    w = 1.0 / closeness.sum(axis=1)
    aim = closeness.sum(axis=0)
    for _ in range(_ROUNDS):
        w *= aim / (closeness @ (closeness @ w))
    return np.asarray(w)


def normalised_matrix(metric: FloatArray) -> FloatArray:
    """The normalised channel with the largest b in [1/2, 1] that keeps `metric`."""
    w = level_weights(np.exp(-metric))
    low, high, best = 0.5, 1.0, np.exp(-0.5 * metric)
    best /= best.sum(axis=1, keepdims=True)
    for _ in range(_HALVINGS):
        exponent = 0.5 * (low + high)
        matrix = np.exp(-exponent * metric) * w
        total = matrix.sum(axis=1)
        if _steepest(np.log(total), metric) <= (1.0 - exponent) * _INSIDE:
            low, best = exponent, matrix / total[:, None]
        else:
            high = exponent
    return best


@kernel
def _steepest(value: FloatArray, metric: FloatArray) -> float:
    """The largest |value_x - value_x'| / d(x, x')."""
    steepest = 0.0
    for x in range(value.size):
        for other in range(x):
            change = abs(value[x] - value[other])
            if change > steepest * metric[x, other]:
                steepest = change / metric[x, other] if metric[x, other] > 0 else np.inf
    return steepest


def spare_channel(programme: ChannelProgramme) -> Spare:
    """A channel for `repair.complete`, remapped."""
    matrix = normalised_matrix((1.0 - _SPARED) * programme.metric)
    return Spare(programme.merged(matrix), np.exp(-_SPARED * programme.metric))


def strictly_private(metric: FloatArray) -> FloatArray:
    """A normalised channel that keeps less than `metric` everywhere, for a solver's interior."""
    w = level_weights(np.exp(-metric))
    exponent = _FIRST_EXPONENT
    while True:
        matrix: FloatArray = np.exp(-exponent * metric) * w
        total = matrix.sum(axis=1)
        room = _FIRST_EXPONENT * (1.0 - exponent)
        if exponent <= 0.45 or _steepest(np.log(total), metric) <= room:
            return np.asarray(matrix / total[:, None])
        exponent *= 0.95
