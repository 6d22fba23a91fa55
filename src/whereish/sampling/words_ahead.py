"""Words of a source in its order, some of which are drawn before it is known who takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whereish.arrays import WordArray
from whereish.randomness import Randomness

__all__ = ["WordsAhead"]


class WordsAhead:
    """A source whose words can be put back, to be drawn again next."""

    def __init__(self, source: Randomness) -> None:
        self._source = source
        self._ahead = np.empty(0, np.uint64)

    @property
    def reproducible(self) -> bool:
        """As the source is."""
        return self._source.reproducible

    def __len__(self) -> int:
        """How many words were put back and not drawn since."""
        return self._ahead.size

    def put_back(self, words: Sequence[WordArray]) -> None:
        """The next words, before those that were put back earlier."""
        self._ahead = np.concatenate([*words, self._ahead])

    def words(self, count: int) -> WordArray:
        """The next `count` words."""
        old, self._ahead = self._ahead[:count], self._ahead[count:]
        if old.size == count:
            return old
        new = self._source.words(count - old.size)
        return np.concatenate([old, new]) if old.size else new
