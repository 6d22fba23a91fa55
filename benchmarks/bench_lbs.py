"""Location services: a store of five million places, private queries, and what averaging finds."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import whereish as wh
from benchmarks.measure import DATA, Bars, cpu_seconds

PLACES = 5_000_000
QUERIES = 2_000
LEVEL = "ln(4)/200 m"
HOME = (2.33316, 48.85412)


def invented(count: int) -> pa.Table:
    """Places in 2,000 towns all over the Earth."""
    draw = np.random.default_rng(1)
    towns = np.column_stack([draw.uniform(-180, 180, 2000), draw.uniform(-60, 70, 2000)])
    where = towns[draw.integers(0, 2000, count)] + draw.normal(0, 0.05, (count, 2))
    names = pa.array(np.char.add("place ", draw.integers(0, 100_000, count).astype(str)))
    return pa.table({"lon": (where[:, 0] + 180) % 360 - 180, "lat": where[:, 1], "name": names})


def median_us(source: wh.PlaceStore | wh.MemorySource, places: np.ndarray) -> tuple[float, float]:
    """Median and 99th percentile of one query's CPU time, and how many it finds."""
    spent = []
    for lon, lat in places.tolist():
        start = time.process_time_ns()
        source.around(lon, lat, 300.0)
        spent.append((time.process_time_ns() - start) / 1e3)
    return statistics.median(spent), float(np.quantile(spent, 0.99))


def stores(bars: Bars) -> None:
    table = invented(PLACES)
    rows = np.random.default_rng(2).integers(0, PLACES, QUERIES)
    where = np.column_stack([table["lon"].to_numpy()[rows], table["lat"].to_numpy()[rows]])
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "places.parquet", Path(folder) / "places.db"
        pq.write_table(table, source)
        del table
        built = cpu_seconds(lambda: wh.PlaceStore.build(path, source, keep=["name"]), 1)
        bars.at_most(f"{PLACES:,} places from Parquet into a store", built, 30, "s")
        bars.note("its size", f"{path.stat().st_size / 1e6:10.0f} MB")
        store = wh.PlaceStore(path)
        median, most = median_us(store, where)
        bars.at_most("places within 300 m, median", median, 300, "us")
        bars.note("places within 300 m, 99th percentile", f"{most:10.0f} us")
        counts = [len(store.around(*place, 300.0)) for place in where[:200].tolist()]
        bars.note("places found, median", f"{statistics.median(counts):10.0f}")
        store.close()


def memory(bars: Bars) -> None:
    table = invented(PLACES // 10)
    source = wh.MemorySource(table)
    where = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])[:QUERIES]
    median, most = median_us(source, where)
    bars.note("in memory, 500,000 places, median", f"{median:10.0f} us")
    bars.note("in memory, 99th percentile", f"{most:10.0f} us")


def paris(bars: Bars) -> None:
    path = DATA / "paris_restaurants_sirene_2019.parquet"
    if not path.exists():
        bars.note("Paris restaurants", "SKIPPED: not at WHEREISH_DATA")
        return
    source = wh.MemorySource(path, keep=["category"])
    draw, inside, fetched, rng = np.random.default_rng(3), 0, [], wh.SeededRandomness(3)
    places = draw.uniform([2.26, 48.82], [2.41, 48.895], (10_000, 2))
    start = time.process_time()
    for place in places.tolist():
        found = wh.nearby(tuple(place), "300 m", source=source, epsilon=LEVEL, rng=rng)
        inside += found.covered
        fetched.append(found.fetched)
    spent = (time.process_time() - start) / len(places) * 1e6
    bars.note("one private query in Paris", f"{spent:10.0f} us")
    bars.note("asked around a report", f"{found.radius.m:10.1f} m for 300 m at 0.95")
    bars.at_least("areas of interest inside, of 10,000", inside / 1e4, 0.95 - 4.9 * 0.00218, "")
    bars.at_most("areas of interest inside, of 10,000", inside / 1e4, 0.9595, "")
    bars.note("restaurants fetched, mean", f"{np.mean(fetched):10.0f}")


def averaging(bars: Bars) -> None:
    """How many fresh reports place a home within 50 m, in half and in nine of ten cases."""
    noise, trials, most = wh.GlobeLaplace(LEVEL), 1000, 512
    reports = noise.report(np.tile(HOME, (trials * most, 1)), rng=wh.SeededRandomness(4))
    drawn = reports.coordinates.reshape(trials, most, 2)
    means = np.cumsum(drawn, axis=1) / np.arange(1, most + 1)[:, None]
    away = np.hypot((means[..., 0] - HOME[0]) * 73_200, (means[..., 1] - HOME[1]) * 111_200)
    found = (away < 50).mean(axis=0)
    for share in (0.5, 0.9, 0.99):
        k = int(np.argmax(found >= share)) + 1
        bars.note(f"fresh reports that place {share:.0%} of homes within 50 m", f"{k:10d}")
    bars.note("with a pin, after any number", f"{found[0]:10.3f} (what its one report tells)")


def main() -> list[str]:
    bars = Bars("location services (CPU time)")
    stores(bars)
    memory(bars)
    paris(bars)
    averaging(bars)
    return bars.failed


if __name__ == "__main__":
    main()
