"""Sanitising Spark data frames: drawn once (:mod:`whereish.engines.attempts`), then read.

Rows reach the kernel as Arrow batches (`mapInArrow`), and the task writes its reports
itself; what it yields to Spark is the name of its file and who is in it.  So reports do
not travel through the Java machine, and subjects are counted in the same pass that
draws them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from whereish.engines.attempts import Part, drawn, materialised, read_back, wanted_columns
from whereish.errors import InvalidInput, MissingExtra, WhereishError
from whereish.publish.kernel import BatchSanitizer
from whereish.publish.ledger import Ledger
from whereish.publish.plan import Plan, planned
from whereish.publish.tables import check_columns

__all__ = ["sanitize"]

_SCHEME = re.compile(r"(\w[\w+.-]*)://")
_OURS = re.compile(r"whereish\.errors\.(\w+): (.+)")
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
        share; or an address such as "hdfs://..." (:mod:`whereish.engines.hadoop`).
    ledger, subject
        As in :func:`whereish.sanitize`.
    **plan
        See :class:`~whereish.publish.plan.Plan`.

    Returns
    -------
    A Spark data frame that reads `output`.
    """
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        raise MissingExtra("pyspark", "spark") from None
    kernel = planned(plan)
    wanted = wanted_columns(kernel, subject, ledger)
    check_columns("frame", frame.columns, wanted)
    address = str(output)
    if _SCHEME.match(address) and not address.startswith("file://"):
        from whereish.engines.hadoop import to_address

        return to_address(frame, address, kernel, ledger, subject)
    path = Path(address.removeprefix("file://")).absolute()

    def attempt_all(folder: str) -> list[Part]:
        attempts = frame.select(*wanted).mapInArrow(
            _attempt(kernel, subject, folder), "name string, rows bigint, counts string"
        )
        try:
            rows = attempts.collect()
        except PySparkException as error:
            raise told(error) from None
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


def told(error: Exception) -> WhereishError:
    """Our own sentence from a failed task; any other message may quote a location."""
    from whereish import errors

    found = _OURS.search(str(error))
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, WhereishError):
        return InvalidInput(found[2].strip())
    return InvalidInput(
        f"the Spark job failed ({type(error).__name__}); its message is withheld, since it may"
        " quote a location: see the executors' logs"
    )
