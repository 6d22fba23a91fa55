"""A bound at once: the tight mechanism's duals, lowered together until places can pay for them.

A dual mu bounds every private channel by its sum if, for every output z, the places x with too
much, r_x = c_zx - mu_x > 0, can pay for those that lack (`local.transport`).  Here a rule says how,
in about a millisecond for an output.  Its column is about e^{-d(., a)} around a middle a,
so what i gives to j loses nothing of its worth if j lies on the way from i to a; the *detour*
d(i, j) - (d(i, a) - d(j, a)) is what it loses in nats.

1. From the outermost inwards, every place that lacks takes from those near it, by least detour.
2. What is left moves inwards, first to places that still lack, then along the way of least detour.
3. Every place that lacks takes from any near it.

What is lacking then, s_x at most over the outputs, must be taken off mu.  Off each place alone that
is dear, since neighbouring outputs lack at neighbouring places.  A column takes in e^{-d} of what
its neighbours are lowered by, so delta >= 0 with sum_y e^{-d(x,y)} delta_y near to s_x serves all
outputs around together, for a fraction of the sum (`_together`).  A few such rounds are followed by
one in which every output lowers mu by what it lacks, whose sum is a bound whatever happened before:
any payment is a multiplier y >= 0, and rounding is counted on the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.start.duals import anchors, tight_duals
from whereish.threads import in_threads

__all__ = ["early_duals", "paid_duals"]

_NEAR = 160
"""Places near a place with which it may trade."""
_ONWARD = 24
"""Of those, the nearest to which what is left may move."""
_ROUNDS, _STEP = 3, 0.7
"""Rounds in which mu is lowered for all outputs together, and by what part of what they lack."""
_SMOOTHINGS = 60
_LONGEST_DETOUR = 2.0
"""Nats: what costs more has to wait until the rest has moved inwards."""
_OUTPUTS = 50
"""That pay at the same time, in one thread."""
_EPS = float(np.finfo(float).eps)


def early_duals(programme: ChannelProgramme) -> FloatArray:
    """mu whose sum no private channel can beat, from that of the tight mechanism."""
    mu, middles, near = tight_duals(programme), anchors(programme), _nearest(programme)
    cost, metric, closeness = programme.cost, programme.metric, programme.closeness
    parts = [slice(begin, begin + _OUTPUTS) for begin in range(0, len(cost), _OUTPUTS)]
    for _ in range(_ROUNDS):

        def paid(some: slice, mu: FloatArray = mu) -> FloatArray:
            return _paid(cost[some], mu, middles[some], metric, closeness, near, True)

        lacks = mu - np.min(in_threads(paid, parts), axis=0)
        mu = mu - _STEP * _together(lacks, closeness)
    return paid_duals(programme, mu)


def paid_duals(
    programme: ChannelProgramme, mu: FloatArray, reduced: FloatArray | None = None
) -> FloatArray:
    """mu lowered, output by output, by what places cannot pay for.

    `reduced`, (outputs, n), is what some multipliers y >= 0 leave of the costs, c - G' y or less:
    what they have moved need not be moved by the rule.
    """
    middles, near = anchors(programme), _nearest(programme)
    cost = programme.cost if reduced is None else reduced
    metric, closeness = programme.metric, programme.closeness
    return np.asarray(_paid(cost, mu, middles, metric, closeness, near, False))


def _nearest(programme: ChannelProgramme) -> NDArray[np.intp]:
    order = np.argsort(programme.metric, axis=1, kind="stable")
    return np.ascontiguousarray(order[:, 1 : _NEAR + 1])


def _together(lacks: FloatArray, closeness: FloatArray) -> FloatArray:
    """delta >= 0 with closeness @ delta near to `lacks`, by multiplicative least squares."""
    aim, delta = closeness @ lacks, lacks / closeness.sum(axis=1)
    tiny = np.finfo(float).tiny
    for _ in range(_SMOOTHINGS):
        delta = delta * (aim / np.maximum(closeness @ (closeness @ delta), tiny))
    return np.asarray(delta)


@kernel
def _paid(
    cost: FloatArray,
    mu: FloatArray,
    middles: NDArray[np.intp],
    metric: FloatArray,
    closeness: FloatArray,
    near: NDArray[np.intp],
    together: bool,
) -> FloatArray:
    """mu less what is lacking: at most over the outputs `together`, or one output after another."""
    n, lowered = mu.size, mu.copy()
    off = np.empty(n)
    for z in range(cost.shape[0]):
        away = metric[middles[z]]
        inwards = np.argsort(-away)
        rest = cost[z] - (mu if together else lowered)
        off[:] = np.abs(rest)
        _take(rest, off, away, metric, closeness, near, inwards, _LONGEST_DETOUR)
        _move_inwards(rest, off, away, metric, closeness, near[:, :_ONWARD], inwards)
        _take(rest, off, away, metric, closeness, near, inwards[::-1], np.inf)
        for x in range(n):
            lacking = 2.0 * _EPS * off[x] - rest[x]
            if lacking > 0.0:
                before = mu[x] if together else lowered[x]
                lowered[x] = min(lowered[x], before - lacking - _EPS * (abs(before) + lacking))
    return lowered


@kernel
def _pay(
    rest: FloatArray, off: FloatArray, giver: int, taker: int, closeness: FloatArray, amount: float
) -> None:
    """Move `amount`; `off` sums what each of its roundings is an ulp of, at most."""
    arrives = closeness[taker, giver] * amount
    rest[giver] -= amount
    rest[taker] += arrives
    off[giver] += abs(rest[giver])
    off[taker] += abs(rest[taker]) + 2.0 * arrives


@kernel
def _take(
    rest: FloatArray,
    off: FloatArray,
    away: FloatArray,
    metric: FloatArray,
    closeness: FloatArray,
    near: NDArray[np.intp],
    order: NDArray[np.intp],
    longest: float,
) -> None:
    """Places that lack take from those near them that have, the least detour first."""
    for x in order:
        while rest[x] < 0.0:
            giver, least = -1, longest
            for i in near[x]:
                if rest[i] > 0.0 and closeness[x, i] > 0.0:
                    detour = metric[x, i] - (away[i] - away[x])
                    if detour <= least:
                        giver, least = i, detour
            if giver < 0:
                break
            amount = min(rest[giver], -rest[x] / closeness[x, giver])
            before = rest[x]
            _pay(rest, off, giver, x, closeness, amount)
            if rest[x] == before and rest[giver] > 0.0:
                break  # what is lacking is below rounding


@kernel
def _move_inwards(
    rest: FloatArray,
    off: FloatArray,
    away: FloatArray,
    metric: FloatArray,
    closeness: FloatArray,
    near: NDArray[np.intp],
    order: NDArray[np.intp],
) -> None:
    """What places have left goes to those further in that lack, then along the shortest way."""
    for x in order:
        while rest[x] > 0.0:
            onward, lacking, shortest, least = -1, -1, np.inf, np.inf
            for i in near[x]:
                if away[i] >= away[x] or closeness[x, i] == 0.0:
                    continue
                detour = metric[x, i] - (away[x] - away[i])
                if detour < shortest:
                    onward, shortest = i, detour
                if rest[i] < 0.0 and detour < least:
                    lacking, least = i, detour
            if lacking >= 0 and least < shortest + _LONGEST_DETOUR:
                amount = min(rest[x], -rest[lacking] / closeness[x, lacking])
                before = rest[lacking]
                _pay(rest, off, x, lacking, closeness, amount)
                if rest[lacking] > before:
                    continue
            if onward >= 0:
                _pay(rest, off, x, onward, closeness, rest[x])
            break
