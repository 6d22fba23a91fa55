"""Who is in a release how often: what a ledger is to charge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whereish.errors import InvalidInput
from whereish.publish.rows.bad_rows import BadRows
from whereish.publish.rows.sanitizer import BatchSanitizer

__all__ = ["Tally"]


@dataclass
class Tally:
    """Reports per subject and level, added up over batches.

    A subject in k rows with m secret locations each has k m reports: duplicates within
    one file are charged like duplicates across files.
    """

    kernel: BatchSanitizer
    subject: str
    counts: dict[tuple[str, float], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._level = self.kernel.epsilon().per_m
        if any(self.subject in location.columns for location in self.kernel.locations):
            raise InvalidInput("the subject must not be a column of the location")

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of one batch."""
        who, level = self.charged(batch)
        table = pa.table({"who": who, "level": level})
        grouped = table.group_by(["who", "level"]).aggregate([([], "count_all")])
        reports = pc.multiply(grouped.column("count_all"), len(self.kernel.locations))
        names, levels_of = grouped.column("who").to_pylist(), grouped.column("level").to_pylist()
        for who, level, times in zip(names, levels_of, reports.to_pylist(), strict=True):
            self.counts[who, level] = self.counts.get((who, level), 0) + times

    def charged(self, batch: pa.RecordBatch) -> tuple[Any, Any]:
        """Whom each row is about, and the level that each of its reports is charged."""
        who = self._names(batch.column(self.subject))
        levels = self.kernel.charged_levels(batch)
        return who, pa.repeat(self._level, len(who)) if levels is None else pa.array(levels)

    def _names(self, column: Any) -> Any:
        """The subjects as text, one spelling for each."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        spelled = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (spelled or pa.types.is_integer(kind) or pa.types.is_string_view(kind)):
            raise InvalidInput(
                f"column {self.subject!r} must hold names or whole numbers; got {kind}: cast it to"
                " text, so that one person has one spelling"
            )
        names = column.cast(kind).cast(pa.string())
        missing = pc.equal(names, "").fill_null(True)
        count = pc.sum(missing).as_py() or 0
        if count:
            raise BadRows(
                f"column {self.subject!r} must name a subject in every row; {count} are missing",
                missing,
                ": a row that nobody is charged for cannot be released",
            )
        return names
