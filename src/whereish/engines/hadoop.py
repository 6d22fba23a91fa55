"""Spark outputs on a Hadoop file system, which only Spark itself can write.

The argument is that of :mod:`whereish.engines.attempts`, with Spark's own commit in the
place of ours: its output commit coordinator lets one attempt per partition commit, and
the files of the others are deleted with the job's `_temporary` folder (commit algorithm
1 is asked for, in which nothing moves before the whole job commits).  That each
partition has exactly one file is checked before the hidden folder gets its name.

The file system's rename must be atomic (HDFS: yes; object stores: no).  A driver that
dies between charge and rename leaves the charge standing.
"""

from __future__ import annotations

import collections
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from whereish.engines.spark import told
from whereish.errors import InvalidInput, NotWritten
from whereish.publish.kernel import BatchSanitizer
from whereish.publish.ledger import Ledger, charges_of
from whereish.publish.locations import LonLat
from whereish.randomness import secure

__all__ = ["to_address"]

_PART = re.compile(r"part-(\d+)-")


def to_address(
    frame: Any,
    address: str,
    kernel: BatchSanitizer,
    subject: str | None,
    ledger: Ledger | None,
) -> Any:
    """Sanitise `frame` into a new folder at `address`; a frame that reads it.

    Subjects are counted by a job of their own; the rows must not change in between,
    which is checked.
    """
    session = frame.sparkSession
    java = getattr(session, "_jvm", None)
    if java is None:
        raise InvalidInput(
            "an output on a Hadoop file system needs a session that is not remote (Spark Connect)"
        )
    path = java.org.apache.hadoop.fs.Path
    parent, _, name = address.rstrip("/").rpartition("/")
    hidden = f"{parent}/.{name}.{uuid.uuid4().hex}.whereish"
    files = path(address).getFileSystem(session._jsc.hadoopConfiguration())
    if files.exists(path(address)):
        raise InvalidInput(f"the output {name} exists already: choose another name")
    counts = {} if subject is None else _counts(frame, kernel, subject)
    release = None
    try:
        _write(frame, hidden, kernel)
        names = [status.getPath().getName() for status in files.listStatus(path(hidden))]
        _rows(frame, hidden, names, kernel, counts)
        if ledger is not None:
            release = ledger.charge(charges_of(counts), pending=True)
        if not files.rename(path(hidden), path(address)):
            raise NotWritten(f"the output {name} cannot be given its name; nothing was released")
    except BaseException:
        # The bytes are destroyed before the refund: what is refunded never left.
        if files.delete(path(hidden), True) and release is not None and ledger is not None:
            ledger.refund(release)
        raise
    if release is not None and ledger is not None:
        ledger.confirm(release)
    return session.read.parquet(address)


def _write(frame: Any, address: str, kernel: BatchSanitizer) -> None:
    """One job: every attempt draws its own noise, one per partition is committed."""
    from pyspark.errors import PySparkException

    reports = frame.select(*kernel.columns).mapInArrow(_attempt(kernel), _schema(frame, kernel))
    try:
        reports.write.option("mapreduce.fileoutputcommitter.algorithm.version", "1").parquet(
            address
        )
    except (PySparkException, RuntimeError) as error:
        raise told(error) from None


def _attempt(kernel: BatchSanitizer) -> Any:
    def reports(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rng = secure()
        for batch in batches:
            try:
                yield kernel(batch, kernel.schema(batch.schema), rng)
            except pa.ArrowException:
                # Arrow's message may quote a value.
                raise InvalidInput("a column holds values of an unexpected type") from None

    return reports


def _schema(frame: Any, kernel: BatchSanitizer) -> Any:
    from pyspark.sql import types

    said = {"whereish": json.dumps(kernel.statement(reproducible=False))}
    fields = []
    for at in kernel.outputs:
        kind = types.DoubleType() if isinstance(at, LonLat) else types.BinaryType()
        fields += [types.StructField(name, kind, True, said) for name in at.columns]
    fields += [types.StructField(name, frame.schema[name].dataType) for name in kernel.keep]
    for name in kernel.coarsen:
        given = frame.schema[name].dataType
        timely = isinstance(given, types.TimestampType | types.TimestampNTZType | types.DateType)
        fields.append(types.StructField(name, given if timely else types.TimestampType()))
    return types.StructType(fields)


def _counts(frame: Any, kernel: BatchSanitizer, subject: str) -> dict[tuple[str, float], int]:
    """Reports by subject and level, as :class:`~whereish.publish.subjects.Tally` counts them."""
    from pyspark.sql import functions

    own = kernel.level_column
    level = functions.lit(kernel.epsilon().per_m) if own is None else functions.col(own)
    grouped = frame.groupBy(
        functions.col(subject).cast("string").alias("who"), level.cast("double").alias("level")
    ).count()
    counts = {}
    for who, eps, rows in grouped.collect():
        if who is None:
            raise InvalidInput(
                f"column {subject!r} must name a subject in every row; {rows} are missing: a row"
                " that nobody is charged for cannot be released"
            )
        if eps is None or not 0 < eps <= kernel.epsilon().per_m:
            raise InvalidInput(
                f"column {own!r} must hold levels per metre, greater than 0 and at most epsilon"
            )
        counts[who, eps] = rows * len(kernel.locations)
    return counts


def _rows(
    frame: Any,
    address: str,
    names: list[str],
    kernel: BatchSanitizer,
    counts: dict[tuple[str, float], int],
) -> int:
    """The staged rows, once it is sure that each partition and each charge is there once."""
    parts = collections.Counter(m[1] for n in names if (m := _PART.match(n)))
    if any(times > 1 for times in parts.values()):
        raise InvalidInput(
            "a partition was committed twice, so its rows might have two reports; nothing was"
            " released: run again, with spark.sql.files.maxRecordsPerFile unset"
        )
    rows = int(frame.sparkSession.read.parquet(address).count()) if parts else 0
    if rows == 0:
        raise InvalidInput("the frame has no rows, so nothing is released")
    if counts and sum(counts.values()) != rows * len(kernel.locations):
        raise InvalidInput(
            "the frame's rows changed between counting subjects and drawing reports; nothing was"
            " released: persist it, or write it down, first"
        )
    return rows
