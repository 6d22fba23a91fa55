"""The choice of two secrets and an event for a statistical audit, on reports for that alone.

Pairs of secrets, in both orders, with each family of events are compared by the bound that
they promise: all on few reports, the best again on more, the last few on all that may be
spent on learning.  What is chosen depends on none of the reports that are tested later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.audit.events import KINDS, Choice, Event, Promise, Reports, Tally, View, fitted
from whereish.audit.pairs import Pair
from whereish.errors import WhereishError
from whereish.privacy.metric import Metric
from whereish.space.points import FloatArray

__all__ = ["Draw", "race"]

Draw: TypeAlias = Callable[[FloatArray, int], Iterator[Reports]]
"""So many reports of one secret, in batches."""

_FIRST_ROUND = (500, 20_000)
_NEXT_ROUND = 8
_SURVIVORS = (24, 3)


@dataclass(frozen=True, eq=False)
class _Contender:
    """A pair in one order with one family of events."""

    pair: Pair
    backwards: bool
    kind: str


def race(
    pairs: list[Pair], metric: Metric, draw: Draw, learning: int, testing: int, risk: float
) -> tuple[Pair, Event]:
    """The pair (in the order of its event) and the event that promise the highest bound."""
    running = [
        _Contender(pair, backwards, kind)
        for pair in pairs
        for backwards in (False, True)
        for kind in KINDS
    ]
    low, high = _FIRST_ROUND
    count = min(max(learning // 64, low), high)
    for survivors in _SURVIVORS:
        if count >= learning:
            break
        ranked = _round(running, metric, draw, count, testing, risk)
        running = [contender for contender, _ in ranked[:survivors]]
        count *= _NEXT_ROUND
    ranked = _round(running, metric, draw, learning, testing, risk)
    winner, choice = ranked[0]
    pair = winner.pair
    return (Pair(pair.y, pair.x, pair.distance) if winner.backwards else pair), choice.event


def _round(
    running: list[_Contender], metric: Metric, draw: Draw, count: int, testing: int, risk: float
) -> list[tuple[_Contender, Choice]]:
    """Contenders with their best events, on `count` reports of each secret; best first."""
    by_pair: dict[int, list[_Contender]] = {}
    for contender in running:
        by_pair.setdefault(id(contender.pair), []).append(contender)
    found: list[tuple[_Contender, Choice]] = []
    refusal: WhereishError | None = None
    for contenders in by_pair.values():
        try:
            found += _compared(contenders, metric, draw, count, testing, risk, len(running))
        except WhereishError as error:  # a secret outside what the sampler takes
            refusal = error
    if not found and refusal is not None:
        raise refusal
    return sorted(found, key=lambda entry: -entry[1].promise)


def _compared(
    contenders: list[_Contender],
    metric: Metric,
    draw: Draw,
    count: int,
    testing: int,
    risk: float,
    rivals: int,
) -> list[tuple[_Contender, Choice]]:
    """The best event of each contender for one pair."""
    pair = contenders[0].pair
    tallies: list[tuple[_Contender, Tally]] = []
    for batches in zip(draw(pair.x, count), draw(pair.y, count), strict=True):
        halves = [batch.halves() for batch in batches]
        if not tallies:
            for contender in contenders:
                here, there = (pair.x, pair.y)[:: -1 if contender.backwards else 1]
                own = halves[contender.backwards][0]
                family = fitted(contender.kind, View(here, there, metric), own)
                if family is not None:
                    tallies.append((contender, Tally(family)))
        for contender, tally in tallies:
            for secret in range(2):
                tally.add(secret ^ contender.backwards, halves[secret])
    promise = _promise(pair.distance, testing / count, risk, rivals)
    return [(contender, tally.family.choose(tally.counts, promise)) for contender, tally in tallies]


def _promise(distance: float, ratio: float, risk: float, rivals: int) -> Promise:
    """Which lower bound per unit of distance hits promise for `ratio` times as many reports.

    The normal bound of the test, less sqrt(2 ln k) standard errors of what was learned, the
    luck to expect of the best of k: `rivals` with some ten unlike events each.
    """
    from scipy.stats import norm

    quantile, luck = float(norm.isf(risk)), math.sqrt(2 * math.log(10 * rivals))

    def promise(
        first: NDArray[np.int64], other: NDArray[np.int64], share: float
    ) -> NDArray[np.float64]:
        errors = luck + quantile / math.sqrt(ratio / share)
        some = np.maximum(first, 1)
        spread = np.sqrt(1 / some + 1 / (other + 1))
        level = np.log(some / (other + 1)) - errors * spread
        return np.where(first > 0, level / distance, -np.inf)

    return promise
