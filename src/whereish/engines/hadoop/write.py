"""Spark outputs on a Hadoop file system, which only Spark itself can write.

The argument is that of :mod:`whereish.engines.attempts`, with Spark's own commit in the
place of ours: its output commit coordinator lets one attempt per partition commit, and
the files of the others are deleted with the job's `_temporary` folder (commit algorithm
1 is asked for, in which nothing moves before the whole job commits).  That each
partition has exactly one file is checked before the reports get their name.

With a ledger the reports are drawn together with whom they are about.  These files, drawn
once, are then read twice, and nothing is drawn anew: to count the subjects, and to write
the output without them.  From there on the steps are those of
:mod:`whereish.engines.hadoop.release`.
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from whereish.engines.attempts import Job
from whereish.engines.engine import read_released
from whereish.engines.hadoop.files import HadoopPlace
from whereish.engines.hadoop.release import (
    abandon,
    confirm_and_clear,
    finish,
    refuse_unfinished,
    release_staged,
    write_manifest,
)
from whereish.engines.spark_session import hide_spark_errors, refuse_patterns
from whereish.errors import InvalidInput, NotFinished, NotWritten
from whereish.publish.release.counts import Counts
from whereish.publish.rows.bad_rows import numbered_from
from whereish.publish.rows.locations import LonLat
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.randomness import secure

__all__ = ["abandon", "finish", "release_to_address"]

_PART = re.compile(r"part-(\d+)-")
_WHO, _LEVEL = "_whereish_subject", "_whereish_level"


def release_to_address(job: Job, address: str) -> Any:
    """Run the job once into a new folder at `address`; a frame that reads it."""
    refuse_patterns(address)
    session, ledger = job.frame.sparkSession, job.ledger
    place = HadoopPlace(session, address)
    refuse_unfinished(place)
    place.refuse_foreign()
    release = uuid.uuid4().hex
    hidden, staged = place.make_hidden(release), place.staged(release)
    counts: Counts = {}
    try:
        with hide_spark_errors():
            _write(_reports(job), f"{hidden}/drawn")
            _check_once(session, f"{hidden}/drawn", place.names(f"{hidden}/drawn"))
            if ledger is not None:
                counts = _stage(session, hidden, staged, len(job.kernel.locations))
        if ledger is None:
            staged = f"{hidden}/drawn"
        place.sign(staged, release)
        if ledger is not None:
            write_manifest(place, release, counts, ledger)
        elif not place.rename(staged, release):
            raise NotWritten("the staged reports were removed, so nothing was released: run again")
    except NotFinished:
        raise
    except BaseException:
        with contextlib.suppress(NotWritten):  # the first failure is the one to report
            place.delete(hidden)
        raise
    if ledger is None:
        confirm_and_clear(place, None, release)
    else:
        release_staged(place, release, counts, ledger)
    with read_released(place.name, job):
        return session.read.parquet(address)


def _stage(session: Any, hidden: str, staged: str, locations: int) -> Counts:
    """Write the drawn reports without their subjects; how often each subject is in them."""
    drawn = session.read.parquet(f"{hidden}/drawn")
    _write(drawn.drop(_WHO, _LEVEL), staged)
    groups = drawn.groupBy(_WHO, _LEVEL).count().collect()
    return {(who, level): times * locations for who, level, times in groups}


def _reports(job: Job) -> Any:
    """A lazy frame of reports: each time it is computed it draws anew."""
    schema = _schema(job.frame, job.kernel, charged=job.subject is not None)
    return job.frame.select(*job.columns).mapInArrow(_attempt(job.kernel, job.subject), schema)


def _write(frame: Any, address: str) -> None:
    """One job: of the attempts at each partition one is committed."""
    frame.write.option("mapreduce.fileoutputcommitter.algorithm.version", "1").parquet(address)


def _attempt(kernel: BatchSanitizer, subject: str | None = None) -> Any:
    """Every attempt draws its own noise."""

    def reports(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rng = secure()
        tally = None if subject is None else Tally(kernel, subject)
        rows = 0
        for batch in batches:
            try:
                with numbered_from(rows, "of a partition"):
                    drawn = kernel(batch, kernel.schema(batch.schema), rng)
                    if tally is not None:
                        charged = dict(zip((_WHO, _LEVEL), tally.charged(batch), strict=True))
                        columns = dict(zip(drawn.schema.names, drawn.columns, strict=True))
                        drawn = pa.RecordBatch.from_pydict({**columns, **charged})
                yield drawn
                rows += len(drawn)
            except pa.ArrowException:
                # Arrow's message may quote a value.
                raise InvalidInput("a column holds values of an unexpected type") from None

    return reports


def _schema(frame: Any, kernel: BatchSanitizer, *, charged: bool = False) -> Any:
    from pyspark.sql import types

    stated = {"whereish": json.dumps(kernel.statement(reproducible=False))}
    fields = []
    for at in kernel.outputs:
        kind = types.DoubleType() if isinstance(at, LonLat) else types.BinaryType()
        fields += [types.StructField(name, kind, True, stated) for name in at.columns]
    fields += [types.StructField(name, frame.schema[name].dataType) for name in kernel.keep]
    for name in kernel.coarsen:
        given = frame.schema[name].dataType
        timely = isinstance(given, types.TimestampType | types.TimestampNTZType | types.DateType)
        fields.append(types.StructField(name, given if timely else types.TimestampType()))
    if charged:
        fields.append(types.StructField(_WHO, types.StringType()))
        fields.append(types.StructField(_LEVEL, types.DoubleType()))
    return types.StructType(fields)


def _check_once(session: Any, address: str, names: list[str]) -> None:
    """Each partition is there once, and not all are empty."""
    parts = collections.Counter(m[1] for n in names if (m := _PART.match(n)))
    if any(times > 1 for times in parts.values()):
        raise InvalidInput(
            "a partition was committed twice, so its rows might have two reports; nothing was"
            " released: run again, with spark.sql.files.maxRecordsPerFile unset"
        )
    if not parts or not session.read.parquet(address).count():
        raise InvalidInput("the frame has no rows, so nothing is released")
