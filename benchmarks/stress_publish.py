"""The full numbers of races, kills and full disks: ``make stress``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import whereish as wh
from benchmarks.faults import EPS, can_mount, race, workers
from benchmarks.measure import Bars

REPEATS, KILLS, DISK_STEPS = 100, 300, 150


def child(*arguments: str) -> object:
    """A fault of :mod:`benchmarks.faults` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        what, *numbers = arguments
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.faults", what, folder, *numbers],
            check=True,
            capture_output=True,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def races(bars: Bars, name: str, address: str) -> None:
    wh.open_ledger(address, cap=wh.Epsilon.of(EPS) * 200)
    with workers() as pool:
        granted = [race(pool, address, f"subject {k}") for k in range(REPEATS)]
    wrong = sum(count != 200 for count in granted)
    bars.at_most(f"{name}: races of 8 for 200 that gave another number, of {REPEATS}", wrong, 0, "")


def main() -> list[str]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import postgres

    bars = Bars("publishing under faults")
    with tempfile.TemporaryDirectory() as folder:
        races(bars, "SQLite", str(Path(folder) / "ledger.db"))
    if postgres.binaries() is None:
        bars.note("PostgreSQL", "not installed")
    else:
        with postgres.server() as address:
            races(bars, "PostgreSQL", address)
    bars.note("kill -9 before every sync, rename, charge: steps", str(child("steps")))
    bars.note("kill -9 at random moments", str(child("kills", str(KILLS), "1")))
    if can_mount():
        for where in ("0", "1"):
            said = str(child("disk", str(DISK_STEPS), where))
            bars.note(f"full disk, ledger {'on it too' if where == '1' else 'elsewhere'}", said)
    else:
        bars.note("full disk", "not root: no small file system can be mounted")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
