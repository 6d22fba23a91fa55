"""What the benchmarks share: CPU time, peak memory of a child process, and a table with bars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

_SHARED = Path(__file__).parents[2] / "shared"
DATA = Path(os.environ.get("WHEREISH_DATA", _SHARED / "data"))
"""Real data, which is not ours to ship."""
PROTOTYPES = Path(os.environ.get("WHEREISH_PROTOTYPES", _SHARED / "prototypes"))
"""The research prototypes that ours is measured against."""

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cpu_seconds(job: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU time of a few runs: the machine is shared, and noise only adds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        job()
        best = min(best, time.process_time() - start)
    return best


def cpu_ratio(theirs: Callable[[], object], ours: Callable[[], object], repeats: int = 4) -> float:
    """Their CPU time over ours, run in turn so that both meet the same neighbours."""
    pairs = [(cpu_seconds(theirs, 1), cpu_seconds(ours, 1)) for _ in range(repeats)]
    return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)


def in_child(code: str, **environment: str) -> dict[str, float]:
    """CPU and wall seconds and peak memory in MB of `job()` of a new process, and its value.

    BLAS has its default threads there, unless `environment` says otherwise.
    """
    wrapper = (
        f"import json, re, time\n{code}\n"
        "start, wall = time.process_time(), time.perf_counter(); found = job()\n"
        "spent, wall = time.process_time() - start, time.perf_counter() - wall\n"
        "status = open('/proc/self/status').read()\n"  # ru_maxrss would count the parent's memory
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 1024\n"
        "print(json.dumps({'cpu': spent, 'wall': wall, 'peak_mb': peak, **(found or {})}))\n"
    )
    inherited = {key: value for key, value in os.environ.items() if key not in _BLAS_THREADS}
    done = subprocess.run(
        [sys.executable, "-c", wrapper],
        check=True,
        stdout=subprocess.PIPE,  # what it tells on the way goes to its standard error, and ours
        text=True,
        env=inherited | environment,
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


@dataclass
class Bars:
    """Figures with the bar that each must meet."""

    title: str
    failed: list[str] = field(default_factory=list)
    skipped: ClassVar[list[str]] = []
    """All that was noted as SKIPPED in this process, so that a verdict can say so."""

    def __post_init__(self) -> None:
        print(f"\n== {self.title}")

    def note(self, name: str, figure: str) -> None:
        print(f"  {name:<58} {figure}")
        if figure.startswith("SKIPPED"):
            self.skipped.append(name)

    def at_least(self, name: str, value: float, bar: float, unit: str = "x") -> None:
        self._judge(name, value, bar, unit, value >= bar, ">=")

    def at_most(self, name: str, value: float, bar: float, unit: str = "x") -> None:
        self._judge(name, value, bar, unit, value <= bar, "<=")

    def _judge(self, name: str, value: float, bar: float, unit: str, met: bool, sign: str) -> None:
        verdict = "PASS" if met else "FAIL"
        self.note(name, f"{value:10.3g} {unit:<3} (bar {sign} {bar:g} {unit})  {verdict}")
        if not met:
            self.failed.append(name)
