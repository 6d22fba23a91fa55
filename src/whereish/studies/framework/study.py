"""A study, and the run that it writes its findings, tables and figures to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whereish.errors import InvalidInput
from whereish.randomness import SeededRandomness
from whereish.studies.framework.finding import Finding
from whereish.studies.framework.published import Published, published

__all__ = ["Drawing", "Run", "Study", "Table", "in_turn", "real_data"]

Step = TypeVar("Step")
Watch = Callable[[str, int, int], None]
"""Called with what is being done, and how many of how many steps are done."""


@dataclass(frozen=True)
class Study:
    """What is reproduced, and how."""

    name: str
    """As on the command line; keys of its published numbers start with it."""
    title: str
    source: str
    """A key of :data:`~whereish.studies.framework.published.SOURCES`."""
    seed: int
    """Of all that is drawn; printed with the results."""
    run: Callable[[Run], None]
    """Does the work, and writes what it finds to the :class:`Run` that it is given."""


def in_turn(*parts: Callable[[Run], None]) -> Callable[[Run], None]:
    """A study of several parts, one after the other."""

    def run_parts(run: Run) -> None:
        for part in parts:
            part(run)

    return run_parts


@dataclass(frozen=True)
class Table:
    """Numbers that the study obtained beside those that have a published one."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure with its caption."""

    name: str
    caption: str
    figure: Any


@dataclass
class Run:
    """One run of a study: what it may use, and what it found so far."""

    study: Study
    quick: bool = False
    watch: Watch | None = None
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.public = np.random.default_rng(self.study.seed)
        self.rng = SeededRandomness(self.study.seed)

    def published_value(self, name: str) -> float:
        """The published number of this name."""
        return self._published(name).value

    def compare(self, name: str, obtained: float, *, reason: str = "") -> Finding:
        """Set a number beside the published one of this name; `reason` is said if they differ."""
        return self._found(name, float(obtained), reason)

    def cannot_compare(self, name: str, reason: str) -> Finding:
        """Say why there is nothing to set beside the published number of this name."""
        return self._found(name, None, reason)

    def _found(self, name: str, obtained: float | None, reason: str) -> Finding:
        number = self._published(name)
        if any(finding.published == number for finding in self.findings):
            raise InvalidInput(f"{number.key} has a finding already")
        finding = Finding(number, obtained, reason)
        self.findings.append(finding)
        return finding

    def _published(self, name: str) -> Published:
        key = f"{self.study.name}.{name}"
        if key not in published():
            raise InvalidInput(f"{key} is not in the table of published numbers")
        return published()[key]

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Keep a table; numbers are printed to five digits."""
        if any(len(row) != len(head) for row in rows):
            raise InvalidInput(f"every row of the table {title!r} must have {len(head)} cells")
        printed = tuple(tuple(_printed(cell) for cell in row) for row in rows)
        self.tables.append(Table(title, tuple(head), printed))

    def draw(self, name: str, figure: Any, caption: str) -> None:
        """Keep a figure (or the axes of one); it is written as NAME.png and NAME.svg."""
        self.drawings.append(Drawing(name, caption, getattr(figure, "figure", None) or figure))

    def note(self, sentence: str) -> None:
        """Keep a sentence: a conclusion, or what data was used."""
        self.notes.append(sentence)

    def steps(self, items: Sequence[Step], doing: str) -> Iterator[Step]:
        """The items one by one, with progress."""
        for done, item in enumerate(items):
            if self.watch is not None:
                self.watch(doing, done, len(items))
            yield item
        if self.watch is not None:
            self.watch(doing, len(items), len(items))


def _printed(cell: object) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, float | np.floating):
        return f"{float(cell):.5g}"
    return str(cell)


def real_data(name: str) -> Path | None:
    """A file of real data, from WHEREISH_DATA or ../shared/data; None where it is absent."""
    folder = os.environ.get("WHEREISH_DATA")
    path = (Path(folder) if folder else Path("..") / "shared" / "data") / name
    return path if path.is_file() else None
