"""All that publishing and audits must survive, by one command: ``make stress``.

The statistical audit in full numbers, sessions of traces against their total, races for a budget,
kill -9, full disks, damaged files, Spark and Dask that run tasks again, and GDAL's reading of a
large output.  ``python -m stress 0.1`` runs a tenth of the numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import whereish as wh
from benchmarks.measure import Bars
from stress import audit, damage, hdfs_jobs, image, publish, service, spark, trace_total
from stress.ogrinfo import POINT, layer, ogrinfo, ogrinfo_lacks

ROWS = 100_000


def engines() -> list[str]:
    """Forced retries, repeated actions and cache eviction: the tests of both engines."""
    bars = Bars("Spark and Dask that compute again: tests/engines")
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/engines"],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    summary = done.stdout.strip().rpartition("\n")[2]
    bars.note("pytest", summary)
    bars.at_most("runs of the tests that failed", int(done.returncode != 0), 0, "")
    bars.at_most("tests or files of tests that were skipped", skipped(summary), 0, "")
    return bars.failed


def skipped(summary: str) -> int:
    """The skips in the last line of pytest."""
    found = re.search(r"(\d+) skipped", summary)
    return int(found[1]) if found else 0


def readers(rows: int) -> list[str]:
    """A large output as GDAL reads it."""
    bars = Bars(f"ogrinfo on a GeoParquet output of {rows:,} rows")
    if lacks := ogrinfo_lacks():
        bars.note("ogrinfo", f"SKIPPED: {lacks}")
        return bars.failed
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "in.geoparquet", Path(folder) / "out.geoparquet"
        damage.write(source, rows)
        wh.sanitize(source, output, epsilon=damage.EPS, keep=["who"])
        kind, count, system = layer(ogrinfo("-al", "-so", output))
        points = len(POINT.findall(ogrinfo("-al", output)))
    bars.note("geometry, coordinate system", f"{kind}, {system}")
    wrong = (kind != "Point") + (system != "EPSG:4326")
    bars.at_most("geometry type and coordinate system that differ", wrong, 0, "")
    bars.at_most("rows missing or added, in the summary", abs(count - rows), 0, "")
    bars.at_most("rows missing or added, read one by one", abs(points - rows), 0, "")
    return bars.failed


def main(share: float = 1.0) -> int:
    failed = [
        *publish.main(share),
        *service.main(share),
        *image.main(),
        *audit.main(share),
        *trace_total.main(share),
        *damage.main(max(1, round(share * damage.EACH))),
        *readers(max(1, round(share * ROWS))),
        *engines(),
        *spark.main(),
        *hdfs_jobs.main(),
    ]
    print(f"\n{verdict(failed, Bars.skipped)}")
    return 1 if failed else 0


def verdict(failed: list[str], left_out: list[str]) -> str:
    """The last words: what was missed, and what was not even tried."""
    but = f"not tried: {', '.join(left_out)}"
    if failed:
        missed = "bars missed:\n  " + "\n  ".join(failed)
        return f"{missed}\n{but}" if left_out else missed
    return f"all bars met, but {but}" if left_out else "all bars met"


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
