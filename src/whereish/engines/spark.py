"""Sanitising Spark data frames: written once (:mod:`whereish.engines.attempts`), then read.

Rows reach the kernel as Arrow batches (`mapInArrow`), and the task writes its reports
itself; what it yields to Spark is the name of its file and who is in it.  So reports do
not travel through the Java machine, and subjects are counted in the same pass that
draws them.

>>> import whereish as wh
>>> frame = spark.read.csv("visits.csv", header=True)  # doctest: +SKIP
>>> wh.spark.sanitize(  # doctest: +SKIP
...     frame, "hdfs:///released", lon="lon", lat="lat", epsilon="ln(4)/200 m"
... )
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import whereish
from whereish.engines.attempts import Attempt, Job, Part
from whereish.engines.engine import EngineSanitizer
from whereish.engines.hadoop.write import release_to_address
from whereish.engines.spark_session import NAME, hide_spark_errors, refuse_patterns
from whereish.errors import InvalidInput, import_extra
from whereish.publish.release.counts import counts_from_json, counts_to_json

__all__ = ["sanitize"]

_SCHEME = re.compile(r"(\w[\w+.-]*)://")
_PARTS = pa.schema({"name": pa.string(), "rows": pa.int64(), "counts": pa.string()})


class SparkEngine:
    """One task per partition."""

    name = NAME

    def columns(self, frame: Any) -> Sequence[str]:
        import_extra("pyspark", "spark")
        return list(frame.columns)

    def run(self, frame: Any, columns: Sequence[str], attempt: Attempt) -> Sequence[Part]:
        _check_executors(frame.sparkSession)
        parts = frame.select(*columns).mapInArrow(
            _attempt_partition(attempt), "name string, rows bigint, counts string"
        )
        with hide_spark_errors():
            rows = parts.collect()
        return [Part(row.name, row.rows, counts_from_json(json.loads(row.counts))) for row in rows]

    def read(self, folder: Path, like: Any) -> Any:
        return like.sparkSession.read.parquet(f"file://{folder}")


def _check_executors(session: Any) -> None:
    """Refuse, before any location is read, executors on which whereish cannot be imported.

    The task holds no data, so what it says, and how it fails, can be told.
    """

    def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform

        import pyarrow

        try:
            import whereish

            told = ("", whereish.__version__)
        except ImportError as error:
            told = (str(error.name), "")
        for _ in batches:
            found = [{"missing": told[0], "version": told[1], "python": platform.python_version()}]
            yield pyarrow.RecordBatch.from_pylist(found)

    try:
        answers = session.range(2).mapInArrow(
            versions, "missing string, version string, python string"
        )
        rows = answers.collect()
    except Exception as error:
        reason = re.search(r"(No module named [^\n]*|PYTHON_VERSION_MISMATCH[^\n]*)", str(error))
        said = reason[1] if reason else type(error).__name__
        raise InvalidInput(
            f"the executors cannot run a task that holds no data ({said}): install whereish there,"
            " for the driver's version of Python"
        ) from None
    for row in rows:
        if row.missing:
            raise InvalidInput(
                f"the module {row.missing!r} cannot be imported on the executors (Python"
                f" {row.python}): install whereish there, of the driver's version, or ship an"
                " environment with spark.archives"
            )
        if row.version != whereish.__version__:
            raise InvalidInput(
                f"the executors have whereish {row.version} and the driver"
                f" {whereish.__version__}: install one version on all"
            )


class SparkSanitizer(EngineSanitizer):
    """Releases to local folders, and to Hadoop file systems, which only Spark can write."""

    def release(self, job: Job, output: str) -> Any:
        if _SCHEME.match(output) and not output.startswith("file://"):
            return release_to_address(job, output)
        folder = str(Path(output.removeprefix("file://")).absolute())
        refuse_patterns(folder)
        return super().release(job, folder)


def _attempt_partition(attempt: Attempt) -> Any:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = attempt(batches, 0 if context is None else context.partitionId())
        if part is not None:
            counts = json.dumps(counts_to_json(part.counts))
            yield pa.RecordBatch.from_pylist(
                [{"name": part.name, "rows": part.rows, "counts": counts}], schema=_PARTS
            )

    return task


sanitize = SparkSanitizer(SparkEngine()).sanitize
