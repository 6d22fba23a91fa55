"""Spark: whatever is run again, a record has one report."""

from __future__ import annotations

import json
import shutil
import sys

import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish.engines import hadoop
from whereish.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish.ledger import Ledger
from whereish.publish.plan import planned

pytest.importorskip("pyspark")
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "ln(4)/200 m", "keep": ["i"]}
ROWS = 400


@pytest.fixture(scope="module")
def session():
    """Two local cores; a task is tried twice."""
    if shutil.which("java") is None:
        pytest.skip("there is no Java: see scripts/system-packages.sh")
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "512m",
            "spark.log.level": "OFF",
        }
        builder = SparkSession.builder.master("local[2,2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture
def people(session):
    return session.range(0, ROWS, 1, 2).selectExpr(
        "id AS i",
        "id % 4 AS who",
        "2.2 + id * 0.0005D AS lon",
        "CAST(48.85 AS DOUBLE) AS lat",
        "timestamp'2026-01-01 10:11:12' AS time",
        "'a note' AS note",
    )


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
    """The control: what is avoided does happen without materialising."""
    kernel = planned(PLAN)
    lazy = people.select("lon", "lat", "i").mapInArrow(
        hadoop._attempt(kernel), hadoop._schema(people, kernel)
    )
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


def test_a_hadoop_file_system(people, tmp_path):
    """The way of outputs that are no shared path, on Hadoop's local file system."""
    address = f"file://{tmp_path}/out"
    released = hadoop.to_address(people, address, planned(PLAN))
    assert two_reports(released, released) == 0
    assert names(tmp_path) == ["out"]
    with pytest.raises(InvalidInput, match="exists already"):
        hadoop.to_address(people, address, planned(PLAN))


def test_a_hadoop_file_system_with_a_ledger(people, session, tmp_path, monkeypatch):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="0.5/m")
    address, kernel = f"file://{tmp_path}/out", planned({**PLAN, "epsilon": "1/km"})
    job = (people, address, kernel, ledger, "who")

    def gone(*_, **__):
        raise LedgerUnavailable("the ledger cannot be used")

    # Interrupted before the charge, and given up.
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", gone)
        with pytest.raises(LedgerUnavailable, match="nothing was released"):
            hadoop.to_address(*job)
    with pytest.raises(InvalidInput, match="was interrupted"):
        hadoop.to_address(*job)
    assert ledger.statement("0").entries == ()
    assert hadoop.abandon(session, address, ledger)
    assert not hadoop.abandon(session, address, ledger)
    assert not [name for name in names(tmp_path) if "out" in name]
    # A folder appears while the ledger is charged: neither replaced nor moved into.
    charge = Ledger.charge

    def slow(self, *arguments, **options):
        (tmp_path / "out").mkdir()
        return charge(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", slow)
        with pytest.raises(NotWritten, match="nothing was released, and its charge is pending"):
            hadoop.to_address(*job)
    assert names(tmp_path / "out") == []
    assert [e.state for e in ledger.statement("0").entries] == ["pending"]
    (tmp_path / "out").rmdir()
    # Interrupted after the rename, and finished.
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", gone)
        with pytest.raises(NotFinished, match="was released and charged"):
            hadoop.finish(session, address, ledger)
    assert hadoop.finish(session, address, ledger)
    assert not hadoop.finish(session, address, ledger)
    released = session.read.parquet(address)
    assert released.columns == ["lon", "lat", "i"]
    assert "guarantee" in json.loads(released.schema["lon"].metadata["whereish"])
    assert released.count() == ROWS
    assert [(e.times, e.state) for e in ledger.statement("0").entries] == [(ROWS // 4, "released")]
    assert sorted(n for n in names(tmp_path) if "out" in n) == ["out"]


def test_no_budget_on_a_hadoop_file_system(people, tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="99/km")
    kernel = planned({**PLAN, "epsilon": "1/km"})
    with pytest.raises(BudgetExceeded, match="4 of 4"):
        hadoop.to_address(people, f"file://{tmp_path}/out", kernel, ledger, "who")
    assert not [name for name in names(tmp_path) if "out" in name]
    assert ledger.statement("0").entries == ()
