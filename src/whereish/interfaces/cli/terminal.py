"""Progress and tables on a terminal, in plain text.

Progress is one line on standard error, written over as work goes on and gone at its end; where
standard error is not a terminal nothing is written.  It needs no package for that.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence

__all__ = ["StatusLine", "text_table"]

_PAUSE_S = 0.1
_BAR = 30
_ERASE = "\r\x1b[K"


class StatusLine:
    """One line that follows the work; drawn at most ten times a second."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn = -math.inf

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Write over the line; cut to the terminal's width, so that it stays one."""
        now = time.monotonic()
        if not self.is_shown or now - self._drawn < _PAUSE_S:
            return
        self._drawn = now
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"{_ERASE}{text[:width]}")
        sys.stderr.flush()

    def count(self, what: str, done: int, total: int | None) -> None:
        """A bar, how many are done, and about how long the rest takes."""
        if not total:
            self.show(f"{what} {done:,}")
            return
        part = min(done / total, 1.0)
        bar = ("#" * round(_BAR * part)).ljust(_BAR, ".")
        spent = time.monotonic() - self._started
        left = f", {spent * (1 - part) / part:.0f} s left" if part else ""
        self.show(f"{what} [{bar}] {done:,} of {total:,}{left}")

    def clear(self) -> None:
        """Take the line away; the next step begins its own time."""
        self._started, self._drawn = time.monotonic(), -math.inf
        if self.is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns two blanks apart, as wide as what is in them.

    >>> print(text_table(["mechanism", "loss"], [["exponential", "217 m"]]))
    mechanism    loss
    exponential  217 m
    """
    whole = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in whole
    )
    return "\n".join(f"{indent}{line}" for line in lines)
