"""The published numbers that studies compare with: one table, ``published.toml``.

Every entry states its source, where in it the number stands, the value and its unit, how near
is near enough, and the setting.  Nothing that this package computes is in the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Literal, get_args

import click

__all__ = ["SOURCES", "Published", "Relation", "markdown", "published", "published_numbers"]

SOURCES = {
    "KP": "Koufogiannis and Pappas, Location-dependent privacy (2016)",
    "EG": "ElSalamouny and Gambs, Optimal noise functions for location privacy (2018)",
    "B": "Bordenabe, Measuring privacy with distinguishability metrics (thesis, 2014)",
    "C": "Cai, slides on location differential privacy",
    "F": "Claims of tools in the field, from their published descriptions",
}


Relation = Literal["equals", "at least", "at most"]
"""What a source says of a number."""


@dataclass(frozen=True)
class Published:
    """A number of a source."""

    key: str
    """The study's name, a dot, and a name of its own."""
    source: str
    where: str
    value: float
    tolerance: float
    """How far from the value an obtained number may be and still match: mostly half a unit of the
    last digit printed."""
    setting: str
    """What it is a number of."""
    unit: str = ""
    relation: Relation = "equals"

    @property
    def study(self) -> str:
        """The study that compares it."""
        return self.key.partition(".")[0]

    def agrees(self, obtained: float) -> bool:
        """Whether an obtained number is what the source says, within the tolerance."""
        slack = self.tolerance + 1e-12 * abs(self.value)  # the value is a decimal, read as a double
        if self.relation == "at least":
            return obtained >= self.value - slack
        if self.relation == "at most":
            return obtained <= self.value + slack
        return abs(obtained - self.value) <= slack

    def __str__(self) -> str:
        prefix = "" if self.relation == "equals" else f"{self.relation} "
        return f"{prefix}{self.value:.6g}{f' {self.unit}' if self.unit else ''}"


@cache
def published() -> dict[str, Published]:
    """The table by key, in its order.

    >>> published()["b-areas.within-390"].value
    0.75
    """
    text = files("whereish.studies").joinpath("published.toml").read_text(encoding="utf-8")
    found = {}
    for entry in tomllib.loads(text)["number"]:
        number = Published(**entry)
        assert number.source in SOURCES, number.key
        assert number.relation in get_args(Relation), number.key
        assert number.key not in found, number.key
        found[number.key] = number
    return found


def published_numbers(study: str) -> list[Published]:
    """The numbers that a study must compare."""
    return [number for number in published().values() if number.study == study]


def markdown() -> str:
    """The table as a page of the documentation (``make docs``)."""
    lines = ["# Published numbers\n", "Made by `make docs`; a test keeps it up to date."]
    lines.append(
        "`whereish reproduce` compares each with what it obtains; a number matches if it is within"
        " the tolerance. How the studies run: [studies.md](studies.md).\n"
    )

    def source(number: Published) -> str:
        return number.source

    ordered = sorted(published().values(), key=lambda number: list(SOURCES).index(number.source))
    for name, numbers in groupby(ordered, key=source):
        lines += [f"## {SOURCES[name]}\n", *_rows(numbers), ""]
    return "\n".join(lines)


def _rows(numbers: Iterable[Published]) -> Iterable[str]:
    yield "| where | setting | published | tolerance | compared by |"
    yield "|---|---|---|---|---|"
    for number in numbers:
        yield (
            f"| {number.where} | {number.setting} | {number} | {number.tolerance:g} |"
            f" `{number.key}` |"
        )


if __name__ == "__main__":
    click.echo(markdown(), nl=False)
