"""One Spark session for all tests of the engines."""

from __future__ import annotations

import shutil
import sys

import pytest

SPARK_ROWS = 400


@pytest.fixture(scope="package")
def session():
    """Two local cores; a task is tried twice."""
    pytest.importorskip("pyspark")
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
    return session.range(0, SPARK_ROWS, 1, 2).selectExpr(
        "id AS i",
        "id % 4 AS who",
        "2.2 + id * 0.0005D AS lon",
        "CAST(48.85 AS DOUBLE) AS lat",
        "timestamp'2026-01-01 10:11:12' AS time",
        "'a note' AS note",
    )
