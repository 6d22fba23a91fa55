"""Sanitising Spark data frames: drawn once, then read from what was drawn.

Spark re-runs tasks: after a failure, speculatively, when a cached block is evicted, and
on every action on a lazy frame.  If the reports themselves were lazy, each run would
draw new noise, and two runs together would tell more than was promised.  So nothing
lazy is handed out:

* every *attempt* at a task draws fresh noise (`mapInArrow` over the kernel) into files
  of its own, under a hidden name, where no reader looks;
* Spark's output commit coordinator lets one attempt per partition commit, and the
  files of the others are deleted with the job's `_temporary` folder (commit algorithm
  1 is asked for, in which nothing moves before the whole job commits).  That each
  partition has exactly one file is checked here before anything becomes visible;
* the folder is then renamed to `output` in one step (charging a ledger before), and
  the frame that is returned reads those files, whatever is done with it.

So a record has one report that anybody can see.  The alternative, noise keyed by (job
secret, record id) with a pseudorandom function, needs a unique id in every row, which
most data lacks, and repeats the noise where ids repeat; materialising needs none, and
holds for every mechanism.
"""

from __future__ import annotations

import collections
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from whereish.errors import InvalidInput, MissingExtra, NotWritten, WhereishError
from whereish.publish.kernel import BatchSanitizer, Plan, planned
from whereish.publish.ledger import Ledger, charges_of
from whereish.publish.locations import LonLat
from whereish.publish.staging import staging
from whereish.publish.tables import check_columns
from whereish.randomness import secure

__all__ = ["sanitize"]

_SCHEME = re.compile(r"(\w[\w+.-]*)://")
_PART = re.compile(r"part-(\d+)-")
_OURS = re.compile(r"whereish\.errors\.(\w+): (.+)")


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
        A Spark data frame; it is computed now, once (and once more to count subjects,
        with a `ledger`: its rows must not change in between, which is checked).
    output
        A folder that does not exist yet: a path that driver and executors share, or an
        address of a Hadoop file system whose rename is atomic ("hdfs://...").
    ledger, subject
        As in :func:`whereish.sanitize`.  Without a shared path, a driver that dies
        between charge and rename leaves the charge standing.
    **plan
        See :class:`~whereish.publish.kernel.Plan`.

    Returns
    -------
    A Spark data frame that reads `output`; the statement is in the metadata of its
    location columns, and in ``_whereish.json`` beside the files.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtra("pyspark", "spark") from None
    if (ledger is None) != (subject is None):
        raise InvalidInput(
            "ledger and subject belong together: the column of whom to charge, and where"
        )
    kernel = planned(plan)
    wanted = list(dict.fromkeys((*kernel.columns, *(() if subject is None else (subject,)))))
    check_columns("frame", frame.columns, wanted)
    counts = {} if subject is None else _counts(frame, kernel, subject)
    address = str(output)
    if _SCHEME.match(address) and not address.startswith("file://"):
        return _to_hadoop(frame, address, kernel, counts, ledger)
    return _to_shared_path(frame, Path(address.removeprefix("file://")), kernel, counts, ledger)


def _to_shared_path(
    frame: Any,
    output: Path,
    kernel: BatchSanitizer,
    counts: dict[tuple[str, float], int],
    ledger: Ledger | None,
) -> Any:
    output = output.absolute()
    try:
        with staging(output) as place:
            if place.unfinished() is not None or output.exists():
                raise InvalidInput(f"the output {output.name} exists already: choose another name")
            place.empty()
            _write(frame, f"file://{place.staged}", kernel)
            names = [path.name for path in place.staged.iterdir()]
            rows = _rows(frame, f"file://{place.staged}", names, kernel, counts)
            (place.staged / "_whereish.json").write_text(
                json.dumps(kernel.statement(reproducible=False) | {"rows": rows}, indent=2)
            )
            place.commit(uuid.uuid4().hex, rows, counts, ledger)
    except OSError as error:
        raise NotWritten(
            f"the output {output.name} cannot be written"
            f" ({error.strerror or type(error).__name__}); nothing was released"
        ) from None
    return frame.sparkSession.read.parquet(f"file://{output}")


def _to_hadoop(
    frame: Any,
    address: str,
    kernel: BatchSanitizer,
    counts: dict[tuple[str, float], int],
    ledger: Ledger | None,
) -> Any:
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
        raise _told(error) from None


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


def _told(error: Exception) -> WhereishError:
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
