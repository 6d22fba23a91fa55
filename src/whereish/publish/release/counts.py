"""How often each subject is in a release, at which level: in memory and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

__all__ = ["Counts", "add_counts", "counts_from_json", "counts_to_json"]

Counts = dict[tuple[str, float], int]
"""Reports by subject and level per metre."""


def add_counts(total: Counts, counts: Mapping[tuple[str, float], int]) -> None:
    """Add `counts` to `total`."""
    for key, times in counts.items():
        total[key] = total.get(key, 0) + times


def counts_to_json(counts: Mapping[tuple[str, float], int]) -> list[list[Any]]:
    """Lines of subject, level and times."""
    return [[who, level, times] for (who, level), times in counts.items()]


def counts_from_json(lines: Iterable[Any]) -> Counts:
    """The counts of such lines; `TypeError` where times are no whole number."""
    return {(str(who), float(level)): index(times) for who, level, times in lines}
