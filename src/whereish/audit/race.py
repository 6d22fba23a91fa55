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

from whereish.arrays import FloatArray, IntArray
from whereish.audit.events import KINDS, Choice, Event, Promise, Reports, Tally, View, fitted
from whereish.audit.pairs import Pair
from whereish.errors import WhereishError
from whereish.privacy.metric import Metric

__all__ = ["BATCH", "Draw", "race"]

Draw: TypeAlias = Callable[[FloatArray, int], Iterator[Reports]]
"""So many reports of one secret, in batches of `BATCH`."""
BATCH = 2**18

_FIRST_ROUND = (500, 20_000)
_NEXT_ROUND = 8
_SURVIVORS = (24, 3)


@dataclass(frozen=True, eq=False)
class _Contender:
    """A pair in one order with one family of events."""

    pair: Pair
    kind: str

    @property
    def keys(self) -> tuple[bytes, bytes]:
        """Names of the two secrets, to look up their reports."""
        return self.pair.x.tobytes(), self.pair.y.tobytes()

    @property
    def secrets(self) -> dict[bytes, FloatArray]:
        """The two secrets by name."""
        return dict(zip(self.keys, (self.pair.x, self.pair.y), strict=True))


def race(
    pairs: list[Pair], metric: Metric, draw: Draw, learning: int, testing: int, risk: float
) -> tuple[Pair, Event]:
    """The pair (in the order of its event) and the event that promise the highest bound.

    No secret is drawn more than `learning` times.
    """
    both = [way for pair in pairs for way in (pair, Pair(pair.y, pair.x, pair.distance))]
    running = [_Contender(pair, kind) for pair in both for kind in KINDS]
    low, high = _FIRST_ROUND
    count = min(max(learning // 64, low), high)
    for survivors in _SURVIVORS:
        if 2 * count > learning:
            break
        ranked = _round(running, metric, draw, count, testing, risk)
        running = [contender for contender, _ in ranked[:survivors]]
        learning -= count
        count *= _NEXT_ROUND
    winner, choice = _round(running, metric, draw, learning, testing, risk)[0]
    return winner.pair, choice.event


def _round(
    running: list[_Contender], metric: Metric, draw: Draw, count: int, testing: int, risk: float
) -> list[tuple[_Contender, Choice]]:
    """Contenders with their best events, on `count` reports of each secret; best first.

    Contenders share the reports of a secret.  Those with a secret that the sampler refuses
    leave the race.
    """
    secrets = {key: place for one in running for key, place in one.secrets.items()}
    sources = {key: draw(place, count) for key, place in secrets.items()}
    tallies: list[tuple[_Contender, Tally]] = []
    for low in range(0, count, BATCH):
        batch: dict[bytes, tuple[Reports, Reports]] = {}
        refusal: WhereishError | None = None
        for key, source in sources.items():
            try:
                batch[key] = next(source).halves()
            except WhereishError as error:
                if low > 0:
                    raise
                refusal = error
        if low == 0:
            left = [one for one in running if all(key in batch for key in one.keys)]
            if not left and refusal is not None:
                raise refusal
            tallies = _fitted(left, metric, batch)
            sources = {key: sources[key] for key in batch}
        for contender, tally in tallies:
            for secret, key in enumerate(contender.keys):
                tally.add(secret, batch[key])
    ranked = []
    for contender, tally in tallies:
        promise = _promise(contender.pair.distance, testing / count, risk, len(running))
        ranked.append((contender, tally.family.choose(tally.counts, promise)))
    return sorted(ranked, key=lambda entry: -entry[1].promise)


def _fitted(
    running: list[_Contender], metric: Metric, batch: dict[bytes, tuple[Reports, Reports]]
) -> list[tuple[_Contender, Tally]]:
    """Families with limits from one half of the first reports."""
    found = []
    for one in running:
        family = fitted(one.kind, View(one.pair.x, one.pair.y, metric), batch[one.keys[0]][0])
        if family is not None:
            found.append((one, Tally(family)))
    return found


def _promise(distance: float, ratio: float, risk: float, rivals: int) -> Promise:
    """Which lower bound per unit of distance hits promise for `ratio` times as many reports.

    The normal bound of the test, less sqrt(2 ln k) standard errors of what was learned, the
    luck to expect of the best of k: `rivals` with some ten unlike events each.
    """
    from scipy.stats import norm

    quantile, luck = float(norm.isf(risk)), math.sqrt(2 * math.log(10 * rivals))

    def promise(first: IntArray, other: IntArray, share: float) -> FloatArray:
        errors = luck + quantile / math.sqrt(ratio / share)
        some = np.maximum(first, 1)
        spread = np.sqrt(1 / some + 1 / (other + 1))
        level = np.log(some / (other + 1)) - errors * spread
        return np.where(first > 0, level / distance, -np.inf)

    return promise
