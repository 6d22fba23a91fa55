"""Jobs on a real HDFS that are killed before every step; part of ``make stress``.

A driver sanitises into ``hdfs://...`` with a ledger and dies (kill -9) before the manifest,
the charge, the rename, the confirmation, or the clearing.  What is visible must be charged
and whole; what was interrupted is finished, or run again where it had not come so far; in
the end each subject is charged once and nothing hidden is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import whereish as wh
from benchmarks import hdfs
from benchmarks.measure import Bars
from benchmarks.stress_spark import SETTINGS
from whereish.engines import hadoop
from whereish.engines.hadoop_files import HadoopPlace
from whereish.publish.ledger import Ledger

ROWS, SUBJECTS = 1_000, 5
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["i"], "subject": "who"}
STEPS = {
    "manifest": (HadoopPlace, "write"),
    "charge": (Ledger, "charge"),
    "rename": (HadoopPlace, "rename"),
    "confirm": (Ledger, "confirm"),
    "clearing": (HadoopPlace, "delete"),
}


def session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def job(spark: Any, address: str, ledger: Ledger) -> Any:
    people = spark.range(0, ROWS, 1, 3).selectExpr(
        "id AS i",
        f"concat('p', CAST(id % {SUBJECTS} AS STRING)) AS who",
        "2.2 + id * 0.0001D AS lon",
        "CAST(48.85 AS DOUBLE) AS lat",
    )
    return wh.spark.sanitize(people, address, ledger=ledger, **PLAN)


def dying(address: str, ledger: str, step: str) -> None:
    """The job of a child process, which dies before `step`."""
    home, name = STEPS[step]

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(home, name, die)
    job(session(), address, wh.open_ledger(ledger))


def charges(ledger: Ledger) -> list[int]:
    return [sum(e.times for e in ledger.statement(f"p{k}").entries) for k in range(SUBJECTS)]


def judged(bars: Bars, spark: Any, address: str, folder: Path, step: str) -> None:
    """Kill before `step`, look, go on, look again."""
    where = folder / f"{step}.db"
    ledger, once = wh.open_ledger(where, cap="1/m"), [ROWS // SUBJECTS] * SUBJECTS
    output = f"{address}/{step}"
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.stress_hdfs", output, str(where), step],
        check=False,
        capture_output=True,
    )
    place = HadoopPlace(spark, output)
    left = place.exists(output)
    wrong = (child.returncode != -signal.SIGKILL) + (left and charges(ledger) != once)
    before = sorted(spark.read.parquet(output).collect()) if left else None
    finished = hadoop.finish(spark, output, ledger)
    if not finished:
        job(spark, output, ledger)
    rows = sorted(spark.read.parquet(output).collect())
    wrong += finished != (step != "manifest")
    wrong += left != (step in ("confirm", "clearing"))
    wrong += before is not None and before != rows
    wrong += [row.i for row in sorted(rows, key=lambda r: r.i)] != list(range(ROWS))
    wrong += charges(ledger) != once
    wrong += place.unfinished() is not None
    bars.at_most(f"killed before the {step}: violations", int(wrong), 0, "")


def main() -> list[str]:
    bars = Bars("Spark outputs on a real HDFS")
    if hdfs.jars() is None:
        bars.note("HDFS", "SKIPPED: its jars are not here, see scripts/hdfs-jars.sh")
        return bars.failed
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "hdfs").mkdir()
        with hdfs.server(Path(name) / "hdfs") as address:
            spark = session()
            for step in STEPS:
                judged(bars, spark, address, Path(name), step)
            spark.stop()
    return bars.failed


if __name__ == "__main__":
    if len(sys.argv) == 4:
        dying(*sys.argv[1:])
    sys.exit(1 if main() else 0)
