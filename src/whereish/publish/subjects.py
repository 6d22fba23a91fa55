"""Who is in a release how often: what a ledger is to charge."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from whereish.errors import InvalidInput
from whereish.publish.kernel import BatchSanitizer

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

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of one batch."""
        column = batch.column(self.subject)
        if column.null_count:
            raise InvalidInput(
                f"column {self.subject!r} must name a subject in every row; {column.null_count}"
                " are missing: a row that nobody is charged for cannot be released"
            )
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise InvalidInput(
                f"column {self.subject!r} must hold names or numbers; got {column.type}"
            )
        levels = self.kernel.levels(batch)
        table = pa.table(
            {
                "who": column.cast(pa.string()),
                "level": pa.repeat(self._level, len(column)) if levels is None else levels,
            }
        )
        grouped = table.group_by(["who", "level"]).aggregate([([], "count_all")])
        reports = pc.multiply(grouped.column("count_all"), len(self.kernel.locations))
        names, levels_of = grouped.column("who").to_pylist(), grouped.column("level").to_pylist()
        for who, level, times in zip(names, levels_of, reports.to_pylist(), strict=True):
            self.counts[who, level] = self.counts.get((who, level), 0) + times
