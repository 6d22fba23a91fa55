"""Lost executors for real: a task draws all its reports, and then its executor dies.

Starts a small cluster (``local-cluster``) on this machine; part of ``make stress``.  The
Python worker of a dead executor lives on for a while and may still write: it is the
late attempt of a speculative pair, which Spark itself runs only across several hosts.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import whereish as wh
from benchmarks.measure import Bars

ROWS = 2_000
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "ln(4)/200 m", "keep": ["i"]}


def main() -> list[str]:
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    paths = [str(Path(__file__).parents[1]), str(Path(wh.__file__).parents[1])]
    os.environ["PYTHONPATH"] = ":".join([*paths, os.environ.get("PYTHONPATH", "")])
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    bars = Bars("Spark with a lost executor")
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks"
        marks.mkdir()

        def straggling(batches, marks=str(marks)):
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

        people = session.range(0, ROWS, 1, 4).selectExpr(
            "id AS i", "2.2 + id * 0.0001D AS lon", "CAST(48.85 AS DOUBLE) AS lat"
        )
        slow = people.mapInArrow(straggling, people.schema)
        released = wh.spark.sanitize(slow, f"{folder}/out", **PLAN)
        runs = [released.collect() for _ in range(2)]
        time.sleep(10)  # the orphaned attempt wakes up, if it still lives, and is too late
        runs.append(session.read.parquet(f"file://{folder}/out").collect())
        seen: dict[int, set[tuple[float, float]]] = {}
        for run in runs:
            for row in run:
                seen.setdefault(row.i, set()).add((row.lon, row.lat))
        files = sorted((Path(folder) / "out").iterdir())
        stored = sum(pq.read_metadata(path).num_rows for path in files)
        attempts = len(list(marks.iterdir()))
    session.stop()
    bars.note("attempts at 4 partitions / files released", f"{attempts} / {len(files)}")
    bars.at_least("attempts", attempts, 5, "")
    bars.at_most("records with two reports", sum(len(r) > 1 for r in seen.values()), 0, "")
    bars.at_most("records missing or added", abs(stored - ROWS) + abs(len(seen) - ROWS), 0, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
