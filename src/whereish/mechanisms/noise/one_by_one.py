"""Single reports for a thread that draws many, one by one: a server's event loop.

Words and kernel are those of :meth:`GlobeLaplace.report_one`, so the law and every seeded draw are
the same; arrays, and all that depends on the mechanism alone, are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from whereish.arrays import WordArray
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace, cells_of
from whereish.randomness import Randomness, secure

__all__ = ["one_by_one"]


def one_by_one(
    mechanism: GlobeLaplace, *, rng: Randomness | None = None
) -> Callable[[float, float], tuple[float, float]]:
    """A function from a longitude and a latitude to a report, for one thread alone.

    The two must be degrees that the mechanism takes: nothing is checked.
    """
    source = secure(rng)
    draw = partial(source.words, mechanism.words_per_draw)
    rate, per_degree = mechanism._rate, 10.0**mechanism.decimals
    secret, cells = np.zeros((1, 2)), np.empty((1, 2), np.int64)
    state = np.empty(1, np.uint8)
    degree = 10**mechanism.decimals
    half, turn, pole = 180 * degree, 360 * degree, 90 * degree

    def report(lon: float, lat: float) -> tuple[float, float]:
        words = draw()
        secret[0, 0] = lon
        secret[0, 1] = lat
        left = cells_of(words, secret, rate, per_degree, cells, state)
        secret[0, 0] = secret[0, 1] = 0.0  # a place stays nowhere
        if left:  # what doubles leave open, and rejections
            return mechanism._one_node((lon, lat), _Again(words, source))
        ((column, row),) = cells.tolist()
        if row in (pole, -pole):
            return 0.0, row / degree
        return ((column + half) % turn - half) / degree, row / degree

    return report


class _Again:
    """Words that were drawn already, then those of their source."""

    def __init__(self, words: WordArray, source: Randomness) -> None:
        self._first, self._source = [words], source
        self.reproducible = source.reproducible

    def words(self, count: int) -> WordArray:
        """The first words once, then fresh ones."""
        return self._first.pop() if self._first else self._source.words(count)
