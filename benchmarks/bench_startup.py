"""Cold and warm starts: CPU time of whole processes, from `python` to the last line.

Cold is an empty folder for compiled code; warm is after `whereish compile`, with a home that
cannot be written and compilation refused, as in a container.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Bars

REPORT = "report --at 48.85412,2.33316 --epsilon ln(4)/200m"
MANY = (
    "import numpy as np, whereish as wh; "
    "wh.perturb(np.zeros(100_000), np.zeros(100_000), epsilon='ln(4)/200 m')"
)
SITES = "lon,lat,prior\n2.30,48.80,0.2\n2.31,48.81,0.3\n2.32,48.82,0.5\n"
ZONES = (
    '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"epsilon": '
    '"4/km"}, "geometry": {"type": "Polygon", "coordinates": [[[2.3, 48.75], [2.35, 48.75], '
    "[2.35, 48.8], [2.3, 48.75]]]}}]}"
)
TRACE = "\n".join(f"{48.8 + 1e-4 * i:.4f},2.3" for i in range(20))
COMMANDS = [
    REPORT,
    "report --at 48.8,2.3 --epsilon 1/km -n 10000",
    "sanitize sites.csv -o out.parquet --lon lon --lat lat --epsilon 1/km",
    "build optimal --sites sites.csv --epsilon 1/km -o optimal.npz",
    "audit optimal.npz",
    "report --at 48.8,2.3 --mechanism optimal.npz",
    "compare --sites sites.csv --epsilon 1/km",
    "build map zones.geojson --default 1/km --cell 1km --region 2.2,48.7,2.4,48.9 -o map.npz",
    "audit map.npz",
    "report --at 48.8,2.3 --mechanism map.npz",
    "plot map.npz -o map.png",
    "export map.npz map.tif",
    "ledger create ledger.sqlite --cap 1/km",
    "places sites.csv places.db",
    "nearby --at 48.8,2.3 --places places.db --epsilon 1/km",
    "trace --accuracy 500m",
]


def cpu_of(*commands: Sequence[str], cwd: Path, text: str = "", **environment: str) -> float:
    """CPU seconds of processes that run together."""
    before = os.times()
    running = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for process in running:
        _, errors = process.communicate(text)
        assert process.returncode == 0, errors
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def command_line(line: str) -> list[str]:
    return ["-m", "whereish", *line.split()]


def main() -> list[str]:
    bars = Bars("cold and warm starts (CPU time of processes)")
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "sites.csv").write_text(SITES)
        (here / "zones.geojson").write_text(ZONES)

        def cold(*commands: Sequence[str]) -> float:
            with tempfile.TemporaryDirectory() as empty:
                return cpu_of(*commands, cwd=here, WHEREISH_CACHE=empty)

        bars.at_most("report, nothing compiled", cold(command_line(REPORT)), 1.5, "s")
        one = cold(["-c", MANY])
        bars.note("100,000 reports, nothing compiled", f"{one:10.2f} s")
        six = cold(*[["-c", MANY]] * 6)
        bars.at_most("six such processes at once, times one", six / one, 2, "x")
        whole = cpu_of(command_line("compile"), cwd=here, WHEREISH_CACHE=f"{name}/cache")
        bars.note("whereish compile", f"{whole:10.2f} s")
        ready = {"WHEREISH_CACHE": f"{name}/cache", "WHEREISH_COMPILE": "refuse", "HOME": "/proc"}
        warm = min(cpu_of(command_line(REPORT), cwd=here, **ready) for _ in range(3))
        bars.at_most("report, after whereish compile", warm, 0.5, "s")
        for line in COMMANDS:
            text = TRACE if line.startswith("trace") else ""
            spent = cpu_of(command_line(line), cwd=here, text=text, **ready)
            bars.at_most(f"first {' '.join(line.split()[:3])}", spent, 2, "s")
    return bars.failed


if __name__ == "__main__":
    main()
