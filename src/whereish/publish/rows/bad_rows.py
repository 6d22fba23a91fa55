"""Rows that cannot be released, named by their numbers; what they hold is never quoted.

The first row of a file, a frame or an engine's partition is row 1.  Only rows that lack a value,
or have a wrong level, are named: which rows lie outside a region would say where they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput

__all__ = ["BadRows", "numbered_from"]

_NAMED = 5


class BadRows(InvalidInput):
    """What is wrong with the rows `wrong` of a batch; their numbers stand before `advice`."""

    def __init__(self, problem: str, wrong: ArrayLike, advice: str = "") -> None:
        self._problem, self._advice = problem, advice
        self._rows = np.flatnonzero(np.asarray(wrong))
        super().__init__(str(self.numbered(0, "of its batch")))

    def numbered(self, before: int, where: str) -> InvalidInput:
        """The same error, in a batch that has so many rows before it."""
        named = [str(row + before + 1) for row in self._rows[:_NAMED]]
        more = len(self._rows) - len(named)
        end = f" and {more} more" if more else ""
        rows = f"row{'s' if len(self._rows) > 1 else ''} {', '.join(named)}{end}"
        return InvalidInput(f"{self._problem}, in {f'{rows} {where}'.rstrip()}{self._advice}")


@contextlib.contextmanager
def numbered_from(before: int, where: str = "") -> Iterator[None]:
    """Around the work on one batch: so many rows came before it, where `where` says."""
    try:
        yield
    except BadRows as error:
        raise error.numbered(before, where) from None
