"""Sanitising Dask data frames: drawn once (:mod:`whereish.engines.attempts`), then read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from whereish.engines.attempts import (
    Part,
    drawn,
    materialised,
    read_back,
    wanted_columns,
    withheld,
)
from whereish.errors import InvalidInput, MissingExtra
from whereish.publish.formats.tables import BATCH_ROWS, check_columns
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.rows.plan import Plan, planned
from whereish.publish.rows.sanitizer import BatchSanitizer

__all__ = ["sanitize"]


def sanitize(
    frame: Any,
    output: str | Path,
    *,
    ledger: Ledger | None = None,
    subject: str | None = None,
    **plan: Unpack[Plan],
) -> Any:
    """Blur the locations of a Dask data frame into a new folder of Parquet files.

    As :func:`whereish.spark.sanitize`, whose words it takes: the frame is computed once, now;
    `output` is a folder that does not exist yet, on a disk that all workers share; and the
    Dask data frame that is returned reads it.
    """
    try:
        import dask
        import dask.dataframe as dd
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    output, kernel = Path(output).absolute(), planned(plan)
    wanted = wanted_columns(kernel, subject, ledger)
    check_columns("frame", [str(name) for name in frame.columns], wanted)

    def attempt_all(folder: str) -> Any:
        with withheld("Dask"):
            attempts = [
                dask.delayed(_attempt, pure=False)(part, kernel, subject, folder, index)
                for index, part in enumerate(frame[wanted].to_delayed())
            ]
            return dask.compute(*attempts)

    materialised(output, ledger, attempt_all)
    return read_back(str(output), dd.read_parquet)


def _attempt(
    frame: Any, kernel: BatchSanitizer, subject: str | None, folder: str, partition: int
) -> Part | None:
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError):
        raise InvalidInput("the frame has a column whose values are of mixed types") from None
    return drawn(table.to_batches(BATCH_ROWS), kernel, subject, folder, partition)
