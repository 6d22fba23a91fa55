"""Sanitising Spark data frames: drawn once (:mod:`whereish.engines.attempts`), then read.

Rows reach the kernel as Arrow batches (`mapInArrow`), and the task writes its reports
itself; what it yields to Spark is the name of its file and who is in it.  So reports do
not travel through the Java machine, and subjects are counted in the same pass that
draws them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Iterator
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
from whereish.publish.formats.tables import check_columns
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.rows.plan import Plan, planned
from whereish.publish.rows.sanitizer import BatchSanitizer

__all__ = ["sanitize"]

_SCHEME = re.compile(r"(\w[\w+.-]*)://")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PARTS = pa.schema({"name": pa.string(), "rows": pa.int64(), "counts": pa.string()})


def sanitize(
    frame: Any,
    output: str | Path,
    *,
    ledger: Ledger | None = None,
    subject: str | None = None,
    **plan: Unpack[Plan],
) -> Any:
    """Blur the locations of a Spark data frame into a new folder of Parquet files.

    Parameters
    ----------
    frame
        A Spark data frame; it is computed once, now.
    output
        A folder that does not exist yet, on a file system that driver and executors
        share; or an address such as "hdfs://..." (:mod:`whereish.engines.hadoop.write`).
    ledger, subject
        As in :func:`whereish.sanitize`.
    **plan
        See :class:`~whereish.publish.rows.plan.Plan`.

    Returns
    -------
    A Spark data frame that reads `output`.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtra("pyspark", "spark") from None
    kernel = planned(plan)
    wanted = wanted_columns(kernel, subject, ledger)
    check_columns("frame", frame.columns, wanted)
    address = str(output)
    if _SCHEME.match(address) and not address.startswith("file://"):
        from whereish.engines.hadoop.write import to_address

        return to_address(frame, address, kernel, ledger, subject)
    path = Path(address.removeprefix("file://")).absolute()
    refuse_patterns(str(path))

    def attempt_all(folder: str) -> list[Part]:
        attempts = frame.select(*wanted).mapInArrow(
            _attempt(kernel, subject, folder), "name string, rows bigint, counts string"
        )
        with running():
            rows = attempts.collect()
        return [Part(row.name, row.rows, _counts(row.counts)) for row in rows]

    materialised(path, ledger, attempt_all)
    return read_back(f"file://{path}", frame.sparkSession.read.parquet)


def _attempt(kernel: BatchSanitizer, subject: str | None, folder: str) -> Any:
    def attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        part = drawn(batches, kernel, subject, folder, partition)
        if part is not None:
            counts = json.dumps([[*key, times] for key, times in part.counts.items()])
            yield pa.RecordBatch.from_pylist(
                [{"name": part.name, "rows": part.rows, "counts": counts}], schema=_PARTS
            )

    return attempt


def _counts(text: str) -> dict[tuple[str, float], int]:
    return {(who, level): times for who, level, times in json.loads(text)}


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around actions on true locations: neither Spark's errors nor its Python loggers tell them.

    PySpark writes the message of a failed query to the driver's terminal, whatever Spark's
    log level is.
    """
    from pyspark.logger import PySparkLogger

    def silent(_: logging.LogRecord) -> bool:
        return False

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(silent)
    try:
        with withheld("Spark"):
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(silent)


def refuse_patterns(address: str) -> None:
    """Spark reads these characters as a pattern, so it could not read the output back."""
    found = [character for character in "*?[]{}\\" if character in address]
    if found:
        raise InvalidInput(
            f"the output of a Spark job must have no {' or '.join(found)} in its address, which"
            " Spark would read as a pattern: choose another name"
        )
