"""What was released, and what that exposes of one person."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whereish.errors import shortened
from whereish.privacy.guarantee import Guarantee

__all__ = ["Exposure", "Release"]

_ROUNDED_UP = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


@dataclass(frozen=True)
class Exposure:
    """Of whom most is released: all reports of one person compose, at the sum of their levels.

    Parameters
    ----------
    reports
        The reports of the most exposed subject; of all rows, where subjects are not named,
        since all may be one person's.
    per_m
        What they keep together, per true metre: at most this; infinite where not known.
    named
        Whether a column names the subjects.
    """

    reports: int
    per_m: float
    named: bool

    @classmethod
    def of_subjects(cls, counts: Mapping[tuple[str, float], int]) -> Exposure:
        """The worst subject, from the reports of each subject and level."""
        reports: dict[str, int] = {}
        levels: dict[str, list[float]] = {}
        for (who, level), times in counts.items():
            reports[who] = reports.get(who, 0) + times
            levels.setdefault(who, []).append(level * times)
        sums = {who: math.fsum(parts) for who, parts in levels.items()}
        worst = max(sums, key=lambda who: (sums[who], reports[who]))
        return cls(reports[worst], sums[worst], named=True)

    def __str__(self) -> str:
        whose = "the most exposed subject has" if self.named else "if all rows are one person's:"
        together = "of unknown level together"
        if math.isfinite(self.per_m):
            # Up, so that the figure says no less than is exposed; the last digits of a sum of
            # doubles are not exposure.
            figure = _ROUNDED_UP.create_decimal(f"{self.per_m:.12g}").normalize()
            together = f"together at {figure:g}/m"
        return f"{whose} {self.reports} reports, {together}"


@dataclass(frozen=True)
class Release:
    """What was released: how many rows, under which guarantee each.

    `resumed` says that an earlier run had drawn the reports, and this one only finished.
    `in_words` says in a sentence what each report tells and how far away it is.
    `scope` says what the guarantee is about, in the words that the file itself carries, and
    `exposure` what holds for the person of whom most is released.
    """

    path: Path
    rows: int
    guarantee: Guarantee
    reproducible: bool
    resumed: bool = False
    scope: str = ""
    exposure: Exposure | None = None
    in_words: str = ""

    def __str__(self) -> str:
        """What people ask first, then the formal guarantee."""
        lines = [
            f"{self.rows} rows written to {self.path.name}",
            self.in_words,
            f"guarantee: {self.guarantee}",
            f"this holds for {self.scope}" if self.scope else "",
            "" if self.exposure is None else str(self.exposure),
        ]
        return "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        where = shortened(self.path.name, 60)
        return f"Release({where!r}, {self.rows} rows, {self.guarantee!r})"

    def to_json(self) -> dict[str, Any]:
        """The release in plain words."""
        return {
            "in_words": self.in_words,
            "path": self.path.name,
            "rows": self.rows,
            "guarantee": self.guarantee.to_json(),
            "scope": self.scope,
            "exposure": None if self.exposure is None else str(self.exposure),
            "reproducible": self.reproducible,
            "resumed": self.resumed,
        }
