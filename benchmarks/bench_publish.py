"""Publishing beyond one file: Spark against its own copy, points as GeoParquet, the ledger."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import geopandas as gpd
import numpy as np

import whereish as wh
from benchmarks.bench_sanitize import write
from benchmarks.measure import Bars, cpu_seconds
from whereish.publish.ledger.ledger import Charge

ROWS = 10_000_000
EPS = "ln(4)/200 m"

SPARK = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
import whereish as wh
from pyspark.sql import SparkSession
from benchmarks.bench_publish import session_cpu
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.driver.memory", "2g").config("spark.log.level", "OFF").getOrCreate()
plan = dict(lon="lon", lat="lat", epsilon="ln(4)/200 m", keep=["id", "time"])
folder, rows = {folder!r}, {rows}
small, large = (session.read.parquet(f"file://{{folder}}/{{n}}.parquet") for n in "ba")
spent = dict(copy=[], ours=[])
for turn in range({turns} + 1):
    frame = large if turn else small  # the first turn starts workers and compiles
    before = session_cpu()
    frame.write.parquet(f"file://{{folder}}/copy{{turn}}")
    middle = session_cpu()
    released = wh.spark.sanitize(frame, f"{{folder}}/ours{{turn}}", **plan)
    after = session_cpu()
    if turn:
        spent["copy"].append(middle - before)
        spent["ours"].append(after - middle)
report = {{name: min(values) for name, values in spent.items()}}
report["rows"] = released.count()
report["same ids"] = released.selectExpr("sum(id)").first()[0] == rows * (rows - 1) // 2
report["moved"] = released.selectExpr("avg(CAST(lon <> round(lon, 3) AS INT))").first()[0]
session.stop()
print(json.dumps(report))
"""


def session_cpu() -> float:
    """CPU seconds of all processes of this session: Python, the Java machine, its workers."""
    mine, total = os.getsid(0), 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == mine:
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def spark(bars: Bars) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "a.parquet", ROWS)
        write(Path(folder) / "b.parquet", 200_000)
        done = subprocess.run(
            [sys.executable, "-c", SPARK.format(folder=folder, rows=ROWS, turns=2)],
            check=True,
            capture_output=True,
            text=True,
            start_new_session=True,
        )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == ROWS
    assert told["same ids"]
    bars.note("Spark's own copy / sanitised by Spark", f"{told['copy']:.1f} / {told['ours']:.1f} s")
    bars.at_most(f"{ROWS:,} rows: CPU time against its copy", told["ours"] / told["copy"], 2)


def geoparquet(bars: Bars, rows: int = 300_000) -> None:
    generator = np.random.default_rng()
    lon, lat = generator.uniform(-180, 180, rows), generator.uniform(-80, 80, rows)
    frame = gpd.GeoDataFrame(
        {"id": np.arange(rows)}, geometry=gpd.points_from_xy(lon, lat, crs=4326)
    )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.parquet", Path(folder) / "out.parquet"
        frame.to_parquet(source)

        def copy() -> None:
            gpd.read_parquet(source).to_parquet(target)

        def ours() -> None:
            wh.sanitize(source, target, epsilon=EPS, keep=["id"], overwrite=True)

        theirs = cpu_seconds(copy)
        bars.at_most(
            f"{rows:,} points of GeoParquet against GeoPandas' copy", cpu_seconds(ours) / theirs, 1
        )


def ledgers(bars: Bars) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = wh.open_ledger(Path(folder) / "ledger.db", cap="100/m")
        epsilon = wh.Epsilon.of("0.001/km")
        one = cpu_seconds(lambda: [ledger.charge([Charge("a", epsilon)]) for _ in range(300)]) / 300
        charges = [Charge(f"s{i}", epsilon) for i in range(100_000)]
        bulk = cpu_seconds(lambda: ledger.charge(charges), repeats=1)
    bars.note("SQLite: one charge / 100,000 subjects at once", f"{1e3 * one:.2f} ms / {bulk:.1f} s")


def main() -> list[str]:
    bars = Bars("publish: Spark, GeoParquet, ledger")
    geoparquet(bars)
    ledgers(bars)
    if shutil.which("java") is None:
        bars.note("Spark", "there is no Java: see scripts/system-packages.sh")
    else:
        spark(bars)
    return bars.failed


if __name__ == "__main__":
    main()
