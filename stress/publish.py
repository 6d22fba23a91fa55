"""The full numbers of races, kills and full disks; part of ``make stress``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import whereish as wh
from benchmarks.measure import Bars
from stress.faults import EPS, can_mount, race, workers

REPEATS, KILLS, DISK_STEPS = 100, 300, 150


def child(bars: Bars, name: str, *arguments: str) -> dict[str, int]:
    """A fault of :mod:`stress.faults` in a process of its own, which ends at a violation."""
    with tempfile.TemporaryDirectory() as folder:
        what, *numbers = arguments
        done = subprocess.run(
            [sys.executable, "-m", "stress.faults", what, folder, *numbers],
            check=False,
            capture_output=True,
            text=True,
        )
    failed = done.returncode != 0
    if failed:
        bars.note(name, done.stderr.strip().rpartition("\n")[2])
    bars.at_most(f"{name}: violations", int(failed), 0, "")
    counts: dict[str, int] = {} if failed else json.loads(done.stdout.splitlines()[-1])
    for count, times in counts.items():
        bars.note(f"{name}: {count}", str(times))
    return counts


def races(bars: Bars, name: str, address: str, repeats: int) -> None:
    wh.open_ledger(address, cap=wh.Epsilon.of(EPS) * 200)
    with workers() as pool:
        granted = [race(pool, address, f"subject {k}") for k in range(repeats)]
    wrong = sum(count != 200 for count in granted)
    bars.at_most(f"{name}: races of 8 for 200 that gave another number, of {repeats}", wrong, 0, "")


def main(share: float = 1.0) -> list[str]:
    """All of it, or a share of the numbers."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import postgres

    repeats, kills, disk_steps = (
        max(1, round(share * full)) for full in (REPEATS, KILLS, DISK_STEPS)
    )
    bars = Bars("publishing under faults")
    with tempfile.TemporaryDirectory() as folder:
        races(bars, "SQLite", str(Path(folder) / "ledger.db"), repeats)
    if postgres.binaries() is None:
        bars.note("PostgreSQL", "SKIPPED: not installed")
    else:
        with postgres.server() as address:
            races(bars, "PostgreSQL", address, repeats)
    steps = child(bars, "kill -9 before every sync, rename, charge", "steps")
    bars.at_least("steps that were killed before", steps.get("steps", 0), 8, "")
    done = child(bars, "kill -9 at random moments", "kills", str(kills), "1")
    bars.at_least("jobs killed at random moments", done.get("kills", 0), kills, "")
    if not can_mount():
        bars.note("full disk", "SKIPPED: not root, so no small file system can be mounted")
        return bars.failed
    for where, name in (("0", "ledger elsewhere"), ("1", "ledger on it too")):
        outcomes = child(bars, f"full disk, {name}", "disk", str(disk_steps), where)
        levels = sum(
            outcomes.get(end, 0) for end in ("refused", "released", "released, unfinished")
        )
        bars.at_least(f"full disk, {name}: fill levels", levels, disk_steps, "")
        bars.at_least(f"full disk, {name}: jobs that met it", outcomes.get("refused", 0), 1, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(float, sys.argv[1:])) else 0)
