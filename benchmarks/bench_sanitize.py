"""Sanitising a large Parquet file: memory stays flat, time stays near a plain copy's."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import Bars, in_child

ROWS = 10_000_000
PEAK_MB = 600

COPY = """
from pyarrow import parquet
def job():
    with parquet.ParquetFile({source!r}) as file:
        with parquet.ParquetWriter({target!r}, file.schema_arrow) as sink:
            for batch in file.iter_batches(batch_size=131072):
                sink.write_batch(batch)
"""
SAMPLE = """
import numpy as np, whereish as wh
mechanism = wh.GlobeLaplace("ln(4)/200 m")
mechanism.report([[0.0, 0.0]])
generator = np.random.default_rng()
places = np.column_stack([generator.uniform(-180, 180, 131072), generator.uniform(-80, 80, 131072)])
def job():
    for _ in range({rows} // 131072 + 1):
        mechanism.report(places)
"""
SANITIZE = """
import whereish as wh
wh.GlobeLaplace("1/km").report([[0.0, 0.0]])
def job():
    wh.sanitize({source!r}, {target!r}, lon="lon", lat="lat", epsilon="ln(4)/200 m",
                keep=["id", "time"])
"""


def write(path: Path, rows: int) -> None:
    generator = np.random.default_rng()
    schema = pa.schema(
        {"id": pa.int64(), "lon": pa.float64(), "lat": pa.float64(), "time": pa.int64()}
    )
    with parquet.ParquetWriter(path, schema) as sink:
        for low in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - low)
            columns = [
                np.arange(low, low + count),
                generator.uniform(-180, 180, count),
                generator.uniform(-80, 80, count),
                generator.integers(0, 10**9, count),
            ]
            sink.write_batch(pa.record_batch(columns, schema=schema))


def main() -> list[str]:
    bars = Bars(f"sanitise {ROWS:,} rows, Parquet to Parquet")
    with tempfile.TemporaryDirectory() as folder:
        source, small, target = (str(Path(folder) / f"{name}.parquet") for name in "abc")
        write(Path(source), ROWS)
        write(Path(small), ROWS // 10)
        copy = in_child(COPY.format(source=source, target=target))
        sample = in_child(SAMPLE.format(rows=ROWS))
        Path(target).unlink()
        ours = in_child(SANITIZE.format(source=source, target=target))
        Path(target).unlink()
        tenth = in_child(SANITIZE.format(source=small, target=target))
    bars.note("plain pyarrow copy / sampler alone", f"{copy['cpu']:.2f} s / {sample['cpu']:.2f} s")
    bars.at_most("CPU time against copy + sampler", ours["cpu"] / (copy["cpu"] + sample["cpu"]), 2)
    bars.at_most("peak memory", ours["peak_mb"], PEAK_MB, "MB")
    bars.at_most("peak memory against a tenth of the rows", ours["peak_mb"] / tenth["peak_mb"], 1.3)
    return bars.failed


if __name__ == "__main__":
    main()
