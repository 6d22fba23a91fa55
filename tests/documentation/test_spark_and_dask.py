"""The how-to of Spark and Dask runs as it stands, with both engines, in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "spark-and-dask.md").read_text()
BLOCKS = re.findall(r"^```python[^\n]*\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.slow
def test_the_page_runs_with_real_engines(tmp_path):
    pytest.importorskip("pyspark")
    pytest.importorskip("dask.dataframe")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: see scripts/system-packages.sh")
    assert sum("spark.sanitize" in block for block in BLOCKS) == 1
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(BLOCKS)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout.splitlines()
    assert said[0].startswith("dask.")
    assert said[0].endswith("['lon', 'lat', 'hour'] 1000 rows")
    assert said[1:] == [
        "the same reports again: True",
        "BudgetExceeded and nothing was released",
    ]
    assert sorted(path.name for path in tmp_path.glob("*/")) == ["public-dask", "public-spark"]
