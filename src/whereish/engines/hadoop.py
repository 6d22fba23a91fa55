"""Spark outputs on a Hadoop file system, which only Spark itself can write.

The argument is that of :mod:`whereish.engines.attempts`, with Spark's own commit in the
place of ours: its output commit coordinator lets one attempt per partition commit, and
the files of the others are deleted with the job's `_temporary` folder (commit algorithm
1 is asked for, in which nothing moves before the whole job commits).  That each
partition has exactly one file is checked before the hidden folder gets its name.

The file system's rename must be atomic (HDFS: yes; object stores: no).
"""

from __future__ import annotations

import collections
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from whereish.engines.attempts import read_back
from whereish.engines.spark import told
from whereish.errors import InvalidInput, NotWritten
from whereish.publish.kernel import BatchSanitizer
from whereish.publish.ledger import Ledger
from whereish.publish.locations import LonLat
from whereish.randomness import secure

__all__ = ["to_address"]

_PART = re.compile(r"part-(\d+)-")


def to_address(frame: Any, address: str, kernel: BatchSanitizer, ledger: Ledger | None) -> Any:
    """Sanitise `frame` into a new folder at `address`; a frame that reads it.

    No ledger: subjects would be counted by one run of the frame and released by another,
    and the two may differ.
    """
    if ledger is not None:
        raise InvalidInput(
            "with a ledger the output must be a folder on a disk that the driver and all workers"
            " share, and not an address such as hdfs://: write it there, then copy it"
        )
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
    _refuse_foreign(files.exists(path(address)), name)
    try:
        _write(frame, hidden, kernel)
        names = [status.getPath().getName() for status in files.listStatus(path(hidden))]
        _check_once(frame, hidden, names)
        # Once more: a rename onto a folder would move ours into it.
        _refuse_foreign(files.exists(path(address)), name)
        if not files.rename(path(hidden), path(address)):
            raise NotWritten(f"the output {name} cannot be given its name; nothing was released")
    except BaseException:
        files.delete(path(hidden), True)
        raise
    return read_back(address, session.read.parquet)


def _refuse_foreign(there: bool, name: str) -> None:
    if there:
        raise InvalidInput(
            f"the output {name} exists already, so nothing is released: choose another name"
        )


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


def _check_once(frame: Any, address: str, names: list[str]) -> None:
    """Each partition is there once, and not all are empty."""
    parts = collections.Counter(m[1] for n in names if (m := _PART.match(n)))
    if any(times > 1 for times in parts.values()):
        raise InvalidInput(
            "a partition was committed twice, so its rows might have two reports; nothing was"
            " released: run again, with spark.sql.files.maxRecordsPerFile unset"
        )
    if not parts or not frame.sparkSession.read.parquet(address).count():
        raise InvalidInput("the frame has no rows, so nothing is released")
