"""Spark outputs on a Hadoop file system, which only Spark itself can write.

The argument is that of :mod:`whereish.engines.attempts`, with Spark's own commit in the
place of ours: its output commit coordinator lets one attempt per partition commit, and
the files of the others are deleted with the job's `_temporary` folder (commit algorithm
1 is asked for, in which nothing moves before the whole job commits).  That each
partition has exactly one file is checked before the reports get their name.

With a ledger the reports are drawn together with whom they are about.  These files, drawn
once, are then read twice, and nothing is drawn anew: to count the subjects, and to write
the output without them.  From there on the steps are those of
:mod:`whereish.publish.staging`: manifest, charge, rename, confirm.

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
from whereish.engines.hadoop_files import HadoopPlace
from whereish.engines.spark import told
from whereish.errors import BudgetExceeded, InvalidInput, LedgerUnavailable, NotFinished
from whereish.publish.kernel import BatchSanitizer
from whereish.publish.ledger import PENDING, RELEASED, Ledger, charges_of
from whereish.publish.locations import LonLat
from whereish.publish.subjects import Tally
from whereish.randomness import secure

__all__ = ["abandon", "finish", "to_address"]

_PART = re.compile(r"part-(\d+)-")
_WHO, _LEVEL = "_whereish_subject", "_whereish_level"
_GO_ON = (
    "whereish.engines.hadoop.finish(session, output, ledger) finishes it, or"
    " abandon(session, output, ledger) gives it up"
)

Counts = dict[tuple[str, float], int]


def to_address(
    frame: Any,
    address: str,
    kernel: BatchSanitizer,
    ledger: Ledger | None = None,
    subject: str | None = None,
) -> Any:
    """Sanitise `frame` into a new folder at `address`; a frame that reads it."""
    place = HadoopPlace(frame.sparkSession, address)
    place.refuse_foreign()
    if place.unfinished() is not None:
        raise InvalidInput(f"an earlier job for the output {place.name} was interrupted: {_GO_ON}")
    release = uuid.uuid4().hex
    hidden = place.make_hidden(release)
    try:
        _write(_drawn(frame, kernel, subject), f"{hidden}/drawn")
        _check_once(frame.sparkSession, f"{hidden}/drawn", place.names(f"{hidden}/drawn"))
        if ledger is None:
            place.rename(f"{hidden}/drawn")
        else:
            counts = _staged(frame.sparkSession, hidden, len(kernel.locations))
            lines = [[*key, times] for key, times in counts.items()]
            place.write(f"{hidden}/manifest.json", json.dumps(lines))
    except NotFinished:
        raise
    except BaseException:
        place.delete(hidden)
        raise
    if ledger is None:
        _clear(place, hidden, None, release)
    else:
        _release(place, release, counts, ledger)
    return read_back(address, frame.sparkSession.read.parquet)


def finish(session: Any, output: str, ledger: Ledger) -> bool:
    """Finish an interrupted release at the address `output`; False if there is none."""
    place = HadoopPlace(session, output)
    release = place.unfinished()
    if release is None:
        return False
    _release(place, release, _manifest(place, release), ledger)
    return True


def abandon(session: Any, output: str, ledger: Ledger) -> bool:
    """Give up an unfinished release at the address `output`, and refund it; False if none.

    The staged reports are destroyed first: what is refunded never leaves.
    """
    place = HadoopPlace(session, output)
    release = place.unfinished()
    if release is None:
        return False
    hidden = place.hidden(release)
    if not place.exists(f"{hidden}/staged"):
        raise InvalidInput(f"this release has left already, so it cannot be refunded: {_GO_ON}")
    place.delete(f"{hidden}/staged")
    if ledger.state(release) == PENDING:
        ledger.refund(release)
    place.delete(hidden)
    return True


def _release(place: HadoopPlace, release: str, counts: Counts, ledger: Ledger) -> None:
    """Charge, rename, confirm: also for what an earlier run had staged."""
    hidden = place.hidden(release)
    if place.exists(f"{hidden}/staged"):
        place.refuse_foreign()
        try:
            ledger.charge(charges_of(counts), release=release, pending=True)
        except BudgetExceeded:
            place.delete(hidden)
            raise
        except LedgerUnavailable as error:
            raise LedgerUnavailable(f"{error}; nothing was released: {_GO_ON}") from None
        place.rename(f"{hidden}/staged", pending=f", and its charge is pending: {_GO_ON}")
    elif ledger.state(release) not in (PENDING, RELEASED):
        place.delete(hidden)
        raise InvalidInput("an earlier run was given up; run again to start anew")
    _clear(place, hidden, ledger, release)


def _clear(place: HadoopPlace, hidden: str, ledger: Ledger | None, release: str) -> None:
    """What comes after the release; its failure does not undo that."""
    try:
        if ledger is not None:
            ledger.confirm(release)
        place.delete(hidden)
    except (LedgerUnavailable, OSError) as error:
        charged, mend = ("", "") if ledger is None else (" and charged", f": {_GO_ON}")
        raise NotFinished(
            f"the output {place.name} was released{charged}, but what comes after failed"
            f" ({error}){mend}"
        ) from None


def _manifest(place: HadoopPlace, release: str) -> Counts:
    lines = json.loads(place.read(f"{place.hidden(release)}/manifest.json"))
    return {(who, level): times for who, level, times in lines}


def _staged(session: Any, hidden: str, locations: int) -> Counts:
    """Write the drawn reports without their subjects; how often each subject is in them."""
    drawn = session.read.parquet(f"{hidden}/drawn")
    _write(drawn.drop(_WHO, _LEVEL), f"{hidden}/staged")
    groups = drawn.groupBy(_WHO, _LEVEL).count().collect()
    return {(who, level): times * locations for who, level, times in groups}


def _drawn(frame: Any, kernel: BatchSanitizer, subject: str | None) -> Any:
    extra = () if subject is None else (subject,)
    columns = dict.fromkeys((*kernel.columns, *extra))
    schema = _schema(frame, kernel, charged=subject is not None)
    return frame.select(*columns).mapInArrow(_attempt(kernel, subject), schema)


def _write(frame: Any, address: str) -> None:
    """One job: of the attempts at each partition one is committed."""
    from pyspark.errors import PySparkException

    try:
        frame.write.option("mapreduce.fileoutputcommitter.algorithm.version", "1").parquet(address)
    except (PySparkException, RuntimeError) as error:
        raise told(error) from None


def _attempt(kernel: BatchSanitizer, subject: str | None = None) -> Any:
    """Every attempt draws its own noise."""

    def reports(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rng = secure()
        tally = None if subject is None else Tally(kernel, subject)
        for batch in batches:
            try:
                drawn = kernel(batch, kernel.schema(batch.schema), rng)
                if tally is not None:
                    charged = dict(zip((_WHO, _LEVEL), tally.charged(batch), strict=True))
                    columns = dict(zip(drawn.schema.names, drawn.columns, strict=True))
                    drawn = pa.RecordBatch.from_pydict({**columns, **charged})
                yield drawn
            except pa.ArrowException:
                # Arrow's message may quote a value.
                raise InvalidInput("a column holds values of an unexpected type") from None

    return reports


def _schema(frame: Any, kernel: BatchSanitizer, *, charged: bool = False) -> Any:
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
