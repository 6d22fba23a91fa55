"""Spark: whatever is run again, a record has one report."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish.engines.attempts import Job
from whereish.engines.hadoop import write as hadoop
from whereish.errors import BudgetExceeded, InvalidInput
from whereish.publish.rows.plan import build_sanitizer

pytest.importorskip("pyspark")
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

PLAN = {"lon": "lon", "lat": "lat", "epsilon": "ln(4)/200 m", "keep": ["i"]}
ROWS = 400


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def two_reports(*frames) -> int:
    """Records with more than one report over all these actions."""
    seen: dict[int, set] = {}
    for frame in frames:
        for row in frame.collect():
            seen.setdefault(row.i, set()).add((row.lon, row.lat))
    assert len(seen) == ROWS
    return sum(len(reports) > 1 for reports in seen.values())


def failing_first(batches):
    """An upstream step whose first attempt fails after all its rows have gone on."""
    from pyspark import TaskContext

    yield from batches
    if TaskContext.get().attemptNumber() < 1:
        raise RuntimeError("an executor was lost")


def test_retries_repeated_actions_and_cache_eviction(people, tmp_path):
    flaky = people.mapInArrow(failing_first, people.schema)
    ledger = wh.open_ledger(tmp_path / "l.db", cap=wh.Epsilon.of(PLAN["epsilon"]) * 100)
    released = wh.spark.sanitize(
        flaky,
        tmp_path / "out",
        coarsen={"time": "1 h"},
        ledger=ledger,
        subject="who",
        **PLAN,
    )
    assert released.columns == ["lon", "lat", "i", "time"]
    first = released.collect()
    cached = released.cache()
    cached.count()
    evicted = cached.unpersist(blocking=True)
    assert two_reports(released, cached, evicted, released.filter("i >= 0")) == 0
    assert len(first) == ROWS
    assert {str(row.time) for row in first} == {"2026-01-01 10:00:00"}
    apart = [abs(row.lat - 48.85) for row in first]
    assert max(apart) < 0.1
    assert sum(distance < 1e-6 for distance in apart) < 10
    assert [entry.times for entry in ledger.statement("3").entries] == [100]
    for part in (tmp_path / "out").iterdir():
        assert "guarantee" in json.loads(pq.read_schema(part).metadata[b"whereish"])
    with pytest.raises(BudgetExceeded):
        wh.spark.sanitize(people, tmp_path / "b", ledger=ledger, subject="who", **PLAN)
    with pytest.raises(InvalidInput, match="exists already"):
        wh.spark.sanitize(people, tmp_path / "out", **PLAN)
    assert names(tmp_path) == ["l.db", "out"]


def test_a_lazy_release_would_have_had_two_reports(people):
    """The control: what is avoided does happen where reports are not written once."""
    lazy = hadoop._reports(Job(people, build_sanitizer(PLAN)))
    assert two_reports(lazy, lazy) > 0.9 * ROWS


def test_what_is_refused(people, tmp_path):
    out, people = tmp_path / "out", people.coalesce(1)
    with pytest.raises(InvalidInput, match="swapped") as caught:
        wh.spark.sanitize(people.withColumn("lat", people.lat + 45), out, **PLAN)
    assert "93.8" not in str(caught.value)
    with pytest.raises(InvalidInput, match="no column 'x'"):
        wh.spark.sanitize(people, out, lon="x", lat="lat", epsilon="1/km")
    with pytest.raises(InvalidInput, match="no rows"):
        wh.spark.sanitize(people.filter("i < 0"), out, **PLAN)
    assert names(tmp_path) == []


@pytest.mark.parametrize("given", ["'48.8512x'", "concat('48.8512x', repeat('-', id))"])
@pytest.mark.parametrize("logger", ["SQLQueryContextLogger", "DataFrameQueryContextLogger"])
def test_no_location_on_the_drivers_terminal(session, tmp_path, capfd, monkeypatch, given, logger):
    """A cast fails: neither the error nor PySpark's own loggers quote the value."""
    for handler in PySparkLogger.getLogger(logger).handlers:
        if type(handler) is logging.StreamHandler:  # which keeps the stream of its birth
            monkeypatch.setattr(handler, "stream", sys.stderr)
    bad = session.range(0, 3).selectExpr("id AS i", "2.35D AS lon", f"{given} AS given")
    if logger.startswith("SQL"):
        cast = bad.selectExpr("i", "lon", "CAST(given AS DOUBLE) AS lat")
    else:
        cast = bad.withColumn("lat", bad.given.cast("double"))
    with pytest.raises(InvalidInput, match="withheld") as caught:
        wh.spark.sanitize(cast, tmp_path / "out", **PLAN)
    with pytest.raises(InvalidInput, match="withheld") as also:
        hadoop.release_to_address(Job(cast, build_sanitizer(PLAN)), f"file://{tmp_path}/out")
    told = capfd.readouterr()
    assert "48" not in str(caught.value) + str(also.value) + told.out + told.err
    assert names(tmp_path) == []
    with pytest.raises(PySparkException, match=r"48\.8512x"):
        cast.collect()
    assert "48.8512x" in capfd.readouterr().err  # the control: PySpark is let speak again


def test_addresses_that_spark_would_read_as_patterns(people, tmp_path):
    for name in ("a*", "a?", "a[b]", "{a,b}"):
        with pytest.raises(InvalidInput, match="read as a pattern"):
            wh.spark.sanitize(people, tmp_path / name, **PLAN)
        with pytest.raises(InvalidInput, match="read as a pattern"):
            wh.spark.sanitize(people, f"hdfs://nowhere:1/{name}", **PLAN)
    assert names(tmp_path) == []


def test_executors_of_another_version_are_refused_before_data_is_read(
    people, tmp_path, monkeypatch
):
    monkeypatch.setattr("whereish.__version__", "9.9")
    with pytest.raises(InvalidInput, match=r"the executors have whereish .* and the driver 9\.9"):
        wh.spark.sanitize(people, tmp_path / "out", lon="lon", lat="lat", epsilon="1/km")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def bare_python(tmp_path):
    """A Python for executors that has Spark's own packages, but not whereish."""
    homes = (Path(entry).resolve() for entry in sys.path if entry)
    kept = [str(home) for home in homes if home.is_dir() and not (home / "whereish").is_dir()]
    script = tmp_path / "python"
    # Without `site`, no file of an editable installation adds our sources again.
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{os.pathsep.join(kept)}" exec "{sys.executable}" -S "$@"\n'
    )
    script.chmod(0o755)
    return script


def test_executors_without_whereish_are_refused_before_data_is_read(
    session, people, bare_python, tmp_path, monkeypatch
):
    assert wh.spark.sanitize(people, tmp_path / "with", **PLAN).count() == ROWS
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(bare_python))
    with pytest.raises(
        InvalidInput,
        match=r"the module 'whereish' cannot be imported on the executors \(Python 3\.\d+\.\d+\):"
        " install whereish there",
    ):
        wh.spark.sanitize(people, tmp_path / "without", **PLAN)
    assert names(tmp_path) == ["python", "with"]


def test_executors_whose_python_is_missing_are_refused_in_a_sentence(
    session, people, tmp_path, monkeypatch
):
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(tmp_path / "no-such-python"))
    with pytest.raises(InvalidInput, match="the executors cannot run a task that holds no data"):
        wh.spark.sanitize(people, tmp_path / "out", **PLAN)
    assert names(tmp_path) == []
