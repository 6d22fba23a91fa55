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
from whereish.results import JsonResult

__all__ = ["DryRun", "Exposure", "Notes", "Release", "track_note"]

_ROUNDED_UP = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


@dataclass(frozen=True)
class Exposure(JsonResult):
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
    `notes` are what else is to be known: how a file was read, that it seems to be a track.
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
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """What people ask first, then the formal guarantee."""
        return "\n".join((f"{self.rows} rows written to {self.path.name}", *self.lines()))

    def lines(self) -> list[str]:
        """The sentence for people, the guarantee, what it is about, and what is to be noted."""
        lines = [
            self.in_words,
            f"guarantee: {self.guarantee}",
            f"this holds for {self.scope}" if self.scope else "",
            "" if self.exposure is None else str(self.exposure),
            *self.notes,
        ]
        return [line for line in lines if line]

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
            "notes": list(self.notes),
            "reproducible": self.reproducible,
            "resumed": self.resumed,
        }


@dataclass(frozen=True)
class DryRun:
    """What a release would be: its columns, its guarantee, whom it exposes; nothing was written.

    `release` has the rows that were read; `read`, `kept` and `dropped` are names of columns.
    """

    release: Release
    files: int
    read: tuple[str, ...]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]

    def __str__(self) -> str:
        said = [
            f"{self.release.rows} rows of {self.files} file{'s' if self.files > 1 else ''} would be"
            f" written to {self.release.path.name}; nothing was written or charged",
            f"read: {', '.join(self.read)}",
            f"released: the locations as reports{''.join(f', {name}' for name in self.kept)}",
            f"dropped: {', '.join(self.dropped) or 'nothing'}",
        ]
        return "\n".join([*said, *self.release.lines()])

    def to_json(self) -> dict[str, Any]:
        """The same in plain words."""
        return {
            "dry_run": True,
            "files": self.files,
            "read": list(self.read),
            "kept": list(self.kept),
            "dropped": list(self.dropped),
            "would_be": self.release.to_json(),
        }


class Notes:
    """What is to be said of a release beside its guarantee."""

    def __init__(self) -> None:
        self._read_as: list[str] = []

    def add(self, read_as: str | None) -> None:
        """How a file was read, once for all files that were read alike."""
        if read_as is not None and read_as not in self._read_as:
            self._read_as.append(read_as)

    def said(self, exposure: Exposure, rows: int, *, tracks: bool) -> tuple[str, ...]:
        """All notes, with what independent noise gives away of a track."""
        notes = [f"read with {one}" for one in self._read_as]
        if tracks or (exposure.named and rows > 1 and exposure.reports > rows / 2):
            notes.append(track_note(exposure.reports))
        return tuple(notes)


def track_note(reports: int) -> str:
    """What so many reports with independent noise give away where their places are alike.

    The mean of n independent errors of mean square s^2 has the root mean square s / sqrt(n).
    """
    what = "this seems to be one person's track"
    if reports < 2:
        return f"{what}: whereish trace reports a track within one budget for all of it"
    share = 1 / math.sqrt(reports)
    return (
        f"{what}: noise that is drawn anew for each of {reports} points averages out, and where"
        f" they stay at one place the mean of the reports is off by {share:.1%} of one report's"
        " error only; whereish trace reports a track within one budget for all of it"
    )
