"""Jobs on a real HDFS that are killed before every step, or given up; part of ``make stress``.

A driver sanitises into ``hdfs://...`` with a ledger and dies (kill -9) before the manifest,
the charge, the rename, the confirmation, or the clearing.  What is visible must be charged
and whole; what was interrupted is finished, or run again where it had not come so far; in
the end each subject is charged once and nothing hidden is left.

Then another process gives the release up while its driver is alive, held before the charge,
the rename or the confirmation: either nothing is visible and nothing is owed, or the output
is visible and charged.  The one that gives up dies before its refund; and all is tried with
another ledger, which must change nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import whereish as wh
from benchmarks.measure import Bars
from stress import hdfs
from stress.spark import SETTINGS
from whereish.engines.hadoop import write as hadoop
from whereish.engines.hadoop.files import HadoopPlace
from whereish.errors import InvalidInput
from whereish.publish.ledger.ledger import Ledger

ROWS, SUBJECTS = 1_000, 5
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["i"], "subject": "who"}
STEPS = {
    "manifest": (HadoopPlace, "write"),
    "charge": (Ledger, "charge"),
    "rename": (HadoopPlace, "rename"),
    "confirm": (Ledger, "confirm"),
    "clearing": (HadoopPlace, "delete"),
    "refund": (Ledger, "refund"),
}
KILLED = ("manifest", "charge", "rename", "confirm", "clearing")


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


def child(act: str, address: str, ledger: str, step: str) -> None:
    """A process that releases or gives up, and dies or is held before `step`."""
    home, name = STEPS[step]
    original = getattr(home, name)

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hold(*arguments: Any, **options: Any) -> Any:
        Path(f"{ledger}.held").touch()
        _await(Path(f"{ledger}.go").exists)
        return original(*arguments, **options)

    setattr(home, name, hold if act == "hold" else die)
    if act == "abandon":
        hadoop.abandon(session(), address, wh.open_ledger(ledger))
    else:
        job(session(), address, wh.open_ledger(ledger))


def started(act: str, address: str, ledger: Path, step: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "stress.hdfs_jobs", act, address, str(ledger), step],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _await(ready: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if ready():
            return
        time.sleep(0.1)
    raise AssertionError("the other process came no further")


def charges(ledger: Ledger) -> list[int]:
    return [sum(e.times for e in ledger.statement(f"p{k}").entries) for k in range(SUBJECTS)]


def judged(bars: Bars, spark: Any, address: str, folder: Path, step: str) -> None:
    """Kill before `step`, look, go on, look again."""
    where = folder / f"{step}.db"
    ledger, once = wh.open_ledger(where, cap="1/m"), [ROWS // SUBJECTS] * SUBJECTS
    output = f"{address}/{step}"
    code = started("die", output, where, step).wait(timeout=300)
    place = HadoopPlace(spark, output)
    left = place.exists(output)
    wrong = (code != -signal.SIGKILL) + (left and charges(ledger) != once)
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


def states(ledger: Ledger) -> set[str]:
    return {e.state for k in range(SUBJECTS) for e in ledger.statement(f"p{k}").entries}


def refused(end: Callable[..., bool], spark: Any, output: str, ledger: Ledger) -> bool:
    try:
        end(spark, output, ledger)
    except InvalidInput:
        return True
    return False


def given_up(bars: Bars, spark: Any, address: str, folder: Path, step: str) -> None:
    """Give a release up while its driver is held before `step`, then let the driver go on."""
    where = folder / f"held-{step}.db"
    ledger, output = wh.open_ledger(where, cap="1/m"), f"{address}/held-{step}"
    driver = started("hold", output, where, step)
    try:
        _await(Path(f"{where}.held").exists)
        too_late = refused(hadoop.abandon, spark, output, ledger)
    finally:
        Path(f"{where}.go").touch()
    code, place = driver.wait(timeout=300), HadoopPlace(spark, output)
    wrong = (too_late != (step == "confirm")) + ((code == 0) != too_late)
    wrong += place.exists(output) != too_late
    wrong += charges(ledger) != [too_late * ROWS // SUBJECTS] * SUBJECTS
    wrong += states(ledger) != {"released" if too_late else "refunded"}
    wrong += place.unfinished() is not None
    bars.at_most(f"given up beside a driver before its {step}: violations", int(wrong), 0, "")


def given_up_and_killed(bars: Bars, spark: Any, address: str, folder: Path, end: str) -> None:
    """Who gives up dies before the refund; another ledger changes nothing; then go on."""
    where = folder / f"twice-{end}.db"
    ledger, output = wh.open_ledger(where, cap="1/m"), f"{address}/twice-{end}"
    other = wh.open_ledger(folder / f"other-{end}.db", cap="1/m")
    wrong = started("die", output, where, "rename").wait(timeout=300) != -signal.SIGKILL
    wrong += not refused(hadoop.abandon, spark, output, other)
    wrong += not refused(hadoop.finish, spark, output, other)
    wrong += started("abandon", output, where, "refund").wait(timeout=300) != -signal.SIGKILL
    wrong += states(ledger) != {"pending"}
    wrong += not refused(hadoop.abandon, spark, output, other)
    wrong += not refused(hadoop.finish, spark, output, other)
    if end == "abandon":
        wrong += not hadoop.abandon(spark, output, ledger)
    else:
        wrong += not refused(hadoop.finish, spark, output, ledger)
    place = HadoopPlace(spark, output)
    wrong += states(ledger) != {"refunded"}
    wrong += bool(states(other))
    wrong += place.exists(output) or place.unfinished() is not None
    title = f"killed while giving up, ended by {end}, another ledger before: violations"
    bars.at_most(title, int(wrong), 0, "")


def open_parents(bars: Bars, spark: Any, address: str, folder: Path) -> None:
    """Parents that the job makes are as open as the file system's defaults say."""
    job(spark, f"{address}/new/deep/out", wh.open_ledger(folder / "open.db", cap="1/m"))
    java = spark._jvm.org.apache.hadoop.fs.Path
    files = java(address).getFileSystem(spark._jsc.hadoopConfiguration())
    files.mkdirs(java(f"{address}/plain"))
    modes = [
        str(files.getFileStatus(java(f"{address}/{name}")).getPermission())
        for name in ("plain", "new", "new/deep")
    ]
    bars.at_most("parents made private", sum(mode != modes[0] for mode in modes), 0, "")


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
            open_parents(bars, spark, address, Path(name))
            for step in KILLED:
                judged(bars, spark, address, Path(name), step)
            for step in ("charge", "rename", "confirm"):
                given_up(bars, spark, address, Path(name), step)
            for end in ("abandon", "finish"):
                given_up_and_killed(bars, spark, address, Path(name), end)
            spark.stop()
    return bars.failed


if __name__ == "__main__":
    if len(sys.argv) == 5:
        child(*sys.argv[1:])
        sys.exit(0)
    sys.exit(1 if main() else 0)
