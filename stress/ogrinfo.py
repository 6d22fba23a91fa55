"""GDAL's own words about a file: the system's ``ogrinfo``, with a Parquet driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

POINT = re.compile(r"POINT \((\S+) (\S+)\)")


def ogrinfo(*arguments: str | Path) -> str:
    """What it prints; the driver is that of ``scripts/ogrinfo-parquet.sh``, where it was run."""
    done = _run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ogrinfo_lacks() -> str | None:
    """Why there is no ogrinfo that reads Parquet; None if there is."""
    mend = "see scripts/ogrinfo-parquet.sh"
    if shutil.which("ogrinfo") is None:
        return f"no ogrinfo is installed: {mend}"
    done = _run("--formats")
    if done.returncode != 0:
        return f"ogrinfo does not run: {done.stderr.strip()[:200]}"
    return None if " Parquet " in done.stdout else f"ogrinfo has no Parquet driver: {mend}"


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    folder = os.environ.get("WHEREISH_OGRINFO")
    # Only for the program: another GDAL, such as pyogrio's, cannot load the driver.  Only where
    # it was built: the path hides the drivers that the program has by itself.
    built = folder is not None and Path(folder, "drivers", "ogr_Parquet.so").exists()
    drivers = {"GDAL_DRIVER_PATH": f"{folder}/drivers"} if built else {}
    return subprocess.run(
        ["ogrinfo", *arguments],
        env={**os.environ, **drivers},
        check=False,
        capture_output=True,
        text=True,
    )


def layer(said: str) -> tuple[str, int, str]:
    """Geometry type, row count and coordinate system from ``ogrinfo -al -so``."""
    kind = re.search(r"^Geometry: (.+)$", said, re.MULTILINE)
    count = re.search(r"^Feature Count: (\d+)$", said, re.MULTILINE)
    system = re.search(r'^    ID\["(\w+)",(\w+)\]\]$', said, re.MULTILINE)
    assert kind is not None, said
    assert count is not None, said
    assert system is not None, said
    return kind[1], int(count[1]), f"{system[1]}:{system[2]}"
