"""Faults on purpose: races for a budget, kill -9, and a full disk.

The tests run a few of each; ``make stress`` runs the full numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import whereish as wh
from whereish.errors import BudgetExceeded, NotFinished, WhereishError

EPS = "ln(4)/200 m"
WEAK = "0.1/km"  # so that the largest cap that a ledger takes lasts for hundreds of releases
SUBJECTS, ROWS = 7, 40_000


# Races


@contextlib.contextmanager
def workers(count: int = 8) -> Iterator[Pool]:
    """Processes that will race; each has the package loaded before it starts."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        pool.map(_loaded, range(4 * count), chunksize=1)
        yield pool


def _loaded(_: int) -> None:
    wh.open_ledger  # noqa: B018
    time.sleep(0.05)


def race(pool: Pool, address: str, subject: str, *, tries: int = 50, count: int = 8) -> int:
    """How many of count * tries charges are granted."""
    return sum(pool.starmap(_spend, [(address, subject, tries)] * count, chunksize=1))


def _spend(address: str, subject: str, tries: int) -> int:
    from whereish.publish.ledger.ledger import Charge

    ledger = wh.open_ledger(address)
    epsilon, granted = wh.Epsilon.of(EPS), 0
    for _ in range(tries):
        with contextlib.suppress(BudgetExceeded):
            ledger.charge([Charge(subject, epsilon)])
            granted += 1
    return granted


# Crashes


def write_people(path: Path, rows: int = ROWS) -> None:
    generator = np.random.default_rng(5)
    columns = {
        "who": [f"p{i % SUBJECTS}" for i in range(rows)],
        "lon": generator.uniform(2.2, 2.5, rows),
        "lat": generator.uniform(48.8, 48.9, rows),
    }
    parquet.write_table(pa.table(columns), path)


def job(source: Path, output: Path, ledger: Path) -> None:
    """The job that is to be interrupted."""
    wh.sanitize(
        source,
        output,
        lon="lon",
        lat="lat",
        epsilon=WEAK,
        ledger=wh.open_ledger(ledger),
        subject="who",
    )


def times_charged(ledger: Path) -> int:
    """Reports charged to the first subject."""
    entries = wh.open_ledger(ledger).statement("p0").entries
    return sum(entry.times for entry in entries)


def visible(output: Path) -> str | None:
    """The hash of a visible output, which must then be whole; None where there is none."""
    if not output.exists():
        return None
    table = parquet.read_table(output)
    assert len(table) == ROWS, "a visible output is not whole"
    assert b"whereish" in table.schema.metadata
    return hashlib.sha256(output.read_bytes()).hexdigest()


def in_fork(action: Callable[[], None]) -> int:
    """Start `action` in a fork that has all modules loaded; its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except WhereishError:
            code = 2
        finally:
            os._exit(code)
    return child


def check(folder: Path, output: Path, ledger: Path, before: int, seen: str | None) -> str | None:
    """The state after a crash: what is visible is whole, unchanged, and charged once."""
    per_release = -(-ROWS // SUBJECTS)
    now = visible(output)
    charged = times_charged(ledger) - before
    assert charged in (0, per_release), f"charged {charged} of {per_release}"
    if now is not None:
        assert charged == per_release, "a release is visible and not charged"
    if seen is not None:
        assert now == seen, "a visible row has two reports"
    return now


def kills(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Kill `count` jobs at random moments; each is run again until it is done."""
    source, ledger = folder / "in.parquet", folder / "ledger.db"
    write_people(source)
    wh.open_ledger(ledger, cap="1000/m")
    job(source, folder / "warm.parquet", ledger)
    start = time.perf_counter()
    for k in range(3):
        job(source, folder / f"timed{k}.parquet", ledger)
    lasts = (time.perf_counter() - start) / 3
    generator = random.Random(seed)
    done = {"kills": 0, "runs": 0, "killed after charge": 0, "outputs": 0}
    while done["kills"] < count:
        output = folder / f"out{done['outputs']}.parquet"
        before, seen, seen_kills = times_charged(ledger), None, 0
        while True:
            child = in_fork(lambda output=output: job(source, output, ledger))
            done["runs"] += 1
            if seen_kills == 0 or generator.random() < 0.3:
                time.sleep(generator.random() * 1.1 * lasts)
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            seen = check(folder, output, ledger, before, seen)
            if not os.WIFSIGNALED(status):
                assert os.WEXITSTATUS(status) in (0, 2), "the job failed in another way"
                break
            done["kills"] += 1
            seen_kills += 1
            done["killed after charge"] += seen is None and times_charged(ledger) > before
        assert seen is not None, "the job ended without its output"
        assert times_charged(ledger) - before == -(-ROWS // SUBJECTS)
        assert not [p for p in folder.iterdir() if p.name.startswith(f".{output.name}")]
        output.unlink()
        done["outputs"] += 1
    return done


def kill_at_every_step(folder: Path) -> int:
    """Kill -9 before the n-th sync, link, rename, charge or confirmation, for every n."""
    source, ledger = folder / "in.parquet", folder / "ledger.db"
    write_people(source)
    wh.open_ledger(ledger, cap="1000/m")
    steps = 0
    while True:
        steps += 1
        output = folder / f"step{steps}.parquet"
        before = times_charged(ledger)
        child = in_fork(lambda n=steps, output=output: _dying_job(n, source, output, ledger))
        _, status = os.waitpid(child, 0)
        seen = check(folder, output, ledger, before, None)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0
            assert seen is not None
            return steps - 1
        if seen is None or (folder / f".{output.name}.whereish").exists():
            job(source, output, ledger)
        assert check(folder, output, ledger, before, seen) is not None
        assert times_charged(ledger) - before == -(-ROWS // SUBJECTS)
        assert not (folder / f".{output.name}.whereish").exists()


def _dying_job(step: int, source: Path, output: Path, ledger: Path) -> None:
    from whereish.publish.ledger.ledger import Ledger
    from whereish.publish.release import staging

    passed = 0

    def dying(function):
        def wrapped(*arguments, **options):
            nonlocal passed
            passed += 1
            if passed == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return wrapped

    staging.os.fsync = dying(os.fsync)
    staging.os.link = dying(os.link)
    Path.replace = dying(Path.replace)
    Path.unlink = dying(Path.unlink)
    Ledger.charge, Ledger.confirm = dying(Ledger.charge), dying(Ledger.confirm)
    job(source, output, ledger)


# A full disk


def can_mount() -> bool:
    """Whether this process may mount a small file system."""
    return os.geteuid() == 0 and shutil.which("mount") is not None and _mounts_work()


def _mounts_work() -> bool:
    probe = Path(tempfile.mkdtemp())
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", probe], check=False, capture_output=True
    )
    if done.returncode == 0:
        subprocess.run(["umount", probe], check=True)
    probe.rmdir()
    return done.returncode == 0


@contextlib.contextmanager
def small_disk(at: Path, size_kb: int) -> Iterator[Path]:
    at.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k,mode=0700", "tmpfs", at], check=True
    )
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)
        at.rmdir()


def full_disks(folder: Path, steps: int, *, ledger_on_it: bool) -> dict[str, int]:
    """Leave a little more room each time, so that every write meets the end of the disk."""
    source = folder / "in.parquet"
    write_people(source)
    outcomes = {"refused": 0, "released": 0, "released, unfinished": 0, "resumed": 0}
    with small_disk(folder / "disk", 4096) as disk:
        ledger = (disk if ledger_on_it else folder) / "ledger.db"
        wh.open_ledger(ledger, cap="1000/m")
        job(source, disk / "whole.parquet", ledger)
        needs = (disk / "whole.parquet").stat().st_size + 128 * 1024
        (disk / "whole.parquet").unlink()
        for step in range(steps):
            before = times_charged(ledger)
            output, ballast = disk / "out.parquet", disk / "ballast"
            free = shutil.disk_usage(disk).free - round(needs * step / (steps - 1))
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(free, 1))
            try:
                job(source, output, ledger)
                outcomes["released"] += 1
                seen = check(disk, output, ledger, before, None)
                assert seen is not None
            except NotFinished:
                outcomes["released, unfinished"] += 1
                seen = visible(output)
                assert seen is not None, "it says released, and it was not"
            except WhereishError:
                outcomes["refused"] += 1
                seen = None
                assert not output.exists(), "it does not say released, and it was"
            ballast.unlink()
            check(disk, output, ledger, before, seen)
            staged = (disk / ".out.parquet.whereish").exists()
            if seen is None or staged:
                job(source, output, ledger)
                outcomes["resumed"] += staged
            assert check(disk, output, ledger, before, seen) is not None
            assert times_charged(ledger) - before == -(-ROWS // SUBJECTS)
            assert not (disk / ".out.parquet.whereish").exists()
            output.unlink()
    return outcomes


def main() -> None:
    """`python -m stress.faults WHAT FOLDER ...`: run one in a process of its own."""
    what, folder, *numbers = sys.argv[1:]
    path = Path(folder)
    if what == "kills":
        result: object = kills(path, *map(int, numbers))
    elif what == "steps":
        result = {"steps": kill_at_every_step(path)}
    else:
        result = full_disks(path, int(numbers[0]), ledger_on_it=numbers[1] == "1")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
