"""Single reports for a thread that draws many, one by one: a server's event loop.

Words and kernel are those of :meth:`GlobeLaplace.report_one`, so the law and every seeded draw are
the same.  What depends on the mechanism alone is made once, and all that a draw needs lies in one
small array, since every object that Python passes to compiled code costs about as much as a draw.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from whereish.arrays import WordArray
from whereish.compiled import compiled, kernel
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace, cells_of
from whereish.randomness import Randomness, draws_of_bytes, secure

__all__ = ["one_by_one"]

# The array: four words, longitude and latitude, rate and steps per degree; then what was drawn,
# longitude and latitude, and whether it is left open; then a cell and a byte for the kernel.
_SIZE: Final = 14
_ASKED, _LAW, _DRAWN = struct.Struct("=32s2d"), struct.Struct("=2d"), struct.Struct("=2dq")
_LAW_AT, _DRAWN_AT = _ASKED.size, _ASKED.size + _LAW.size


def one_by_one(
    mechanism: GlobeLaplace, *, rng: Randomness | None = None
) -> Callable[[float, float], tuple[float, float]]:
    """A function from a longitude and a latitude to a report, for one thread alone.

    The two must be degrees that the mechanism takes: nothing is checked.
    """
    source = secure(rng)
    words_of = draws_of_bytes(source, mechanism.words_per_draw)
    memory = np.zeros(_SIZE, np.uint64)
    view = memory.data.cast("B")
    ask, drawn, draw = _ASKED.pack_into, _DRAWN.unpack_from, compiled(draw_one)
    _LAW.pack_into(view, _LAW_AT, mechanism._rate, 10.0**mechanism.decimals)

    def report(lon: float, lat: float) -> tuple[float, float]:
        words = words_of()
        ask(view, 0, words, lon, lat)
        draw(memory)
        east, north, left = drawn(view, _DRAWN_AT)
        if left:  # what doubles leave open, and rejections
            return mechanism._one_node((lon, lat), _Again(words, source))
        return east, north

    return report


@kernel
def draw_one(memory: WordArray) -> None:
    """Draw what the array asks for, and forget the words and the place."""
    numbers, whole = memory.view(np.float64), memory.view(np.int64)
    place, cell = numbers[4:6].reshape(1, 2), whole[11:13].reshape(1, 2)
    state, per_degree = memory.view(np.uint8)[104:105], numbers[7]
    whole[10] = cells_of(memory[:4], place, numbers[6], per_degree, cell, state)
    memory[:6] = 0
    half = np.int64(180 * per_degree)
    column = (cell[0, 0] + half) % (2 * half) - half
    numbers[8] = 0.0 if 2 * abs(cell[0, 1]) == half else column / per_degree
    numbers[9] = cell[0, 1] / per_degree


class _Again:
    """Words that were drawn already, then those of their source."""

    def __init__(self, words: bytes, source: Randomness) -> None:
        self._first, self._source = [np.frombuffer(words, np.uint64)], source
        self.reproducible = source.reproducible

    def words(self, count: int) -> WordArray:
        """The first words once, then fresh ones."""
        return self._first.pop() if self._first else self._source.words(count)
