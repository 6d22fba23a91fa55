"""Passes over all reports of a law, shares of them side by side.

A pass adds up or raises something at every place, block by block of reports.  Each share of the
blocks has arrays of its own for that, and these are put together in the order of the shares: the
result does not depend on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from whereish.solvers.splines.blocks import Block
from whereish.threads import in_threads

__all__ = ["Shares", "over_blocks"]

_Own = TypeVar("_Own")
_Block = TypeVar("_Block")

Shares: TypeAlias = Iterable[Iterator[Block]]
"""Blocks of reports, in shares that have nothing in common."""


def over_blocks(
    shares: Iterable[Iterator[_Block]],
    own: Callable[[], _Own],
    look: Callable[[_Block, _Own], None],
) -> list[_Own]:
    """What `own` makes, for each share, once `look` was called with each of its blocks and that.

    Without any block there is one that nothing was done with.
    """

    def result(blocks: Iterator[_Block]) -> _Own:
        mine = own()
        for block in blocks:
            look(block, mine)
        return mine

    return in_threads(result, shares) or [own()]
