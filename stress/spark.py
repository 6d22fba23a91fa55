"""Spark that runs tasks again for real: lost executors, and speculation; part of ``make stress``.

*A lost executor*: a task draws all its reports, and then its executor dies, on a small
cluster (``local-cluster``).  The Python worker of the dead executor lives on for a while,
and may still write.

*Speculation*: Spark runs a slow task again beside the original, but never on the same host.
So a master and two workers are started with two loopback addresses for hosts, and one task
sleeps, in the first attempt or in both: once the copy wins, and once the original.  Spark's
event log tells that a speculative copy was launched.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import whereish as wh
from benchmarks.measure import Bars

ROWS, SUBJECTS, PARTS = 2_000, 5, 4
JOB = "sanitise while a task runs twice"
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["i"], "subject": "who"}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
}
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.executor.memory": "512m",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@contextlib.contextmanager
def session_on(master: str, settings: dict[str, str]) -> Iterator[Any]:
    """A session that ends with the block."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    session = builder.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """The address of a master with two workers, whose hosts are two loopback addresses."""
    from pyspark.find_spark_home import _find_spark_home

    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        kind = "master.Master" if name == "master" else "worker.Worker"
        command = [f"{_find_spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        env = {**os.environ, "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
        with log.open("wb") as out:
            started.append(
                subprocess.Popen(
                    [*command, "--port", "0", "--webui-port", "0", *arguments],
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=env,
                )
            )
        return log

    try:
        master = _awaited(start("master", "--host", "127.0.0.1"), r"(spark://127\.0\.0\.1:\d+)")
        for host in ("127.0.0.1", "127.0.0.2"):
            work = folder / f"work-{host}"
            at = ["--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            _awaited(start(f"worker-{host}", *at, master), r"(Successfully registered)")
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=60)


def _awaited(log: Path, pattern: str) -> str:
    for _ in range(600):
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} came no further: {log.read_text(errors='replace')[-500:]}")


def sanitised(
    bars: Bars, session: Any, folder: Path, straggling: Callable[[str], Callable[..., Any]]
) -> None:
    """Sanitise with a ledger while a task runs twice; judge reports, rows and charges."""
    marks = folder / "marks"
    marks.mkdir()
    people = session.range(0, ROWS, 1, PARTS).selectExpr(
        "id AS i",
        f"concat('p', CAST(id % {SUBJECTS} AS STRING)) AS who",
        "2.2 + id * 0.0001D AS lon",
        "CAST(48.85 AS DOUBLE) AS lat",
    )
    slow = people.mapInArrow(straggling(str(marks)), people.schema)
    ledger = wh.open_ledger(folder / "ledger.db", cap="1/m")
    # What the first task of a worker takes longer, importing, must not pass for the usual time.
    unbudgeted = {name: value for name, value in PLAN.items() if name != "subject"}
    wh.spark.sanitize(people, folder / "warm", **unbudgeted)
    session.sparkContext.setJobDescription(JOB)
    released = wh.spark.sanitize(slow, folder / "out", ledger=ledger, **PLAN)
    session.sparkContext.setJobDescription("")
    runs = [released.collect() for _ in range(2)]
    time.sleep(10)  # the slower attempt wakes up, if it still lives, and is too late
    runs.append(session.read.parquet(f"file://{folder}/out").collect())
    seen: dict[int, set[tuple[float, float]]] = {}
    for run in runs:
        for row in run:
            seen.setdefault(row.i, set()).add((row.lon, row.lat))
    files = sorted((folder / "out").iterdir())
    stored = sum(pq.read_metadata(path).num_rows for path in files)
    attempts = len(list(marks.iterdir()))
    charged = [ledger.statement(f"p{k}").entries for k in range(SUBJECTS)]
    wrong = sum([e.times for e in entries] != [ROWS // SUBJECTS] for entries in charged)
    bars.note(f"attempts at {PARTS} partitions / files released", f"{attempts} / {len(files)}")
    bars.at_least("attempts", attempts, PARTS + 1, "")
    bars.at_most("records with two reports", sum(len(r) > 1 for r in seen.values()), 0, "")
    bars.at_most("records missing or added", abs(stored - ROWS) + abs(len(seen) - ROWS), 0, "")
    bars.at_most("subjects not charged exactly once", wrong, 0, "")


def dying(marks: str) -> Callable[..., Any]:
    """The last partition's first attempt kills its executor after its last row."""

    def straggling(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        name = f"{context.partitionId()}-{context.attemptNumber()}"
        (Path(marks) / name).write_text("")
        yield from batches
        if name == "3-0":
            # Worker, its daemon, the executor: the grandparent of this process.
            stat = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
            time.sleep(5)

    return straggling


def sleeping(*seconds: float) -> Callable[[str], Callable[..., Any]]:
    """The last partition's k-th attempt sleeps for the k-th time, with all rows read."""

    def straggling_at(marks: str) -> Callable[..., Any]:
        def straggling(batches):
            from pyspark import TaskContext

            context = TaskContext.get()
            attempt = context.attemptNumber()
            (Path(marks) / f"{context.partitionId()}-{attempt}").write_text("")
            yield from batches
            if context.partitionId() == 3:
                time.sleep(seconds[attempt] if attempt < len(seconds) else 0)

        return straggling

    return straggling_at


def speculative(log: Path) -> dict[str, int]:
    """Speculative copies of the job's tasks in an event log: launched, won, on how many hosts."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    stages = {
        stage
        for event in events
        if event["Event"] == "SparkListenerJobStart"
        and event["Properties"].get("spark.job.description") == JOB
        for stage in event["Stage IDs"]
    }
    tasks = [e for e in events if e.get("Stage ID") in stages and "Task Info" in e]
    starts = [e for e in tasks if e["Event"] == "SparkListenerTaskStart"]
    ends = [e for e in tasks if e["Event"] == "SparkListenerTaskEnd"]
    return {
        "launched": sum(e["Task Info"]["Speculative"] for e in starts),
        "won": sum(
            e["Task Info"]["Speculative"] and e["Task End Reason"]["Reason"] == "Success"
            for e in ends
        ),
        "hosts": len({e["Task Info"]["Host"] for e in starts}),
    }


def lost_executor() -> list[str]:
    bars = Bars("Spark with a lost executor")
    with (
        tempfile.TemporaryDirectory() as folder,
        session_on("local-cluster[2,1,1024]", {}) as session,
    ):
        sanitised(bars, session, Path(folder), dying)
    return bars.failed


def speculation() -> list[str]:
    failed = []
    with tempfile.TemporaryDirectory() as daemons, two_hosts(Path(daemons)) as master:
        for title, seconds, wins in (
            ("the copy wins", (40.0,), 1),
            ("the original wins", (15.0, 60.0), 0),
        ):
            bars = Bars(f"Spark with speculation: {title}")
            with tempfile.TemporaryDirectory() as name:
                folder, logs = Path(name), Path(name) / "events"
                logs.mkdir()
                settings = {**SPECULATING, "spark.eventLog.dir": f"file://{logs}"}
                with session_on(master, settings) as session:
                    sanitised(bars, session, folder, sleeping(*seconds))
                (log,) = logs.iterdir()
                said = speculative(log)
            bars.at_least("hosts", said["hosts"], 2, "")
            bars.at_least("speculative copies launched", said["launched"], 1, "")
            bars.at_most("copies that won, other than expected", abs(said["won"] - wins), 0, "")
            failed += bars.failed
    return failed


def main() -> list[str]:
    if shutil.which("java") is None:
        Bars("Spark that runs tasks again").note("Java", "SKIPPED: not installed")
        return []
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    paths = [str(Path(__file__).parents[1]), str(Path(wh.__file__).parents[1])]
    os.environ["PYTHONPATH"] = ":".join([*paths, os.environ.get("PYTHONPATH", "")])
    return lost_executor() + speculation()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
