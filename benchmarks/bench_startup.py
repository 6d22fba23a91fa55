"""Cold and warm starts: CPU time of whole processes, from `python` to the last line.

Cold is an empty folder for compiled code; warm is after `whereish compile`, with a home that
cannot be written and compilation refused, as in a container.  Every command of the command line
is in the list (tests/test_warm_up.py says so); each is tried three times in folders of their
own, and the median counts.  A server is ended when it has answered.  Modules have byte code, as
pip leaves an installed package.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Bars
from whereish.interfaces.cli.setup.compile import compile_modules

TRIES = 3
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
CONFIG = 'state = "state"\n[ledger]\ncap = "1/m"\n[[mechanism]]\nid = "street"\nepsilon = "1/km"\n'
COMMANDS = [
    REPORT,
    "report --at 48.8,2.3 --epsilon 1/km -n 10000",
    "ledger create ledger.sqlite --cap 1/m",
    "sanitize sites.csv -o out.parquet --lon lon --lat lat --epsilon 1/km"
    " --ledger ledger.sqlite --subject prior",
    "ledger statement ledger.sqlite 0.2",
    "ledger finish ledger.sqlite next.parquet",
    "ledger abandon ledger.sqlite next.parquet",
    "build optimal --sites sites.csv --epsilon 1/km -o optimal.npz",
    "audit optimal.npz",
    "report --at 48.8,2.3 --mechanism optimal.npz",
    "plot optimal.npz -o optimal.png",
    "compare --sites sites.csv --epsilon 1/km",
    "build map zones.geojson --default 1/km --cell 1km --region 2.2,48.7,2.4,48.9 -o map.npz",
    "audit map.npz",
    "report --at 48.8,2.3 --mechanism map.npz",
    "plot map.npz -o map.png",
    "export map.npz map.tif",
    "places sites.csv places.db",
    "nearby --at 48.8,2.3 --places places.db --epsilon 1/km",
    "nearby --at 48.8,2.3 --places places.db --mechanism map.npz",
    "trace --accuracy 500m",
    "token add friend --config service.toml",
    "token list --config service.toml",
    "token remove friend --config service.toml",
    "reproduce list",
    "reproduce kp-wealth --quick",
]
"""Commands that end by themselves, in an order in which each finds its files."""

SERVERS = [
    "serve --config service.toml --no-auth --port {port}",
    "workbench --no-browser --port {port}",
    "relay --epsilon 1/km --port {broker}",
]
"""Commands that run until they are ended."""

NOT_HERE = {"compile": "it is what the others come after"}


def cpu_of(*commands: Sequence[str], cwd: Path, text: str = "", **environment: str) -> float:
    """CPU seconds of processes that run together, and of theirs."""
    running = [_started(command, cwd, text, environment) for command in commands]
    return sum(_ended(process) for process in running)


def _started(
    command: Sequence[str], cwd: Path, text: str, environment: dict[str, str]
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,  # a few lines, which no pipe is too small for
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    return process


def _ended(process: subprocess.Popen[str], *, by: signal.Signals | None = None) -> float:
    """Wait for one process; its CPU seconds and those of the children that it waited for."""
    if by is not None:
        process.send_signal(by)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stderr is not None
    with process.stderr as said:
        if process.returncode and (by is None or process.returncode not in (-by, 130)):
            raise AssertionError(f"{process.args}: {said.read()}")
    return usage.ru_utime + usage.ru_stime


def command_line(line: str) -> list[str]:
    return ["-m", "whereish", *line.split()]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(port: int, seconds: float = 60.0) -> None:
    """Wait until a port accepts connections."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"nothing listens on port {port}")


@contextmanager
def _broker() -> Iterator[int | None]:
    """A real MQTT broker, where the machine has one."""
    programme = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if programme is None:
        yield None
        return
    port = _free_port()
    process = subprocess.Popen(
        [programme, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _answers(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def cpu_of_server(line: str, cwd: Path, broker: int | None, **environment: str) -> float | None:
    """CPU seconds of a server from its start over its first answer to its end."""
    port = _free_port()
    if "{broker}" in line and broker is None:
        return None
    name = line.split(maxsplit=1)[0]
    process = _started(
        command_line(line.format(port=port, broker=broker)), cwd, "", dict(environment)
    )
    try:
        if name == "relay":
            time.sleep(5)
        else:
            _answers(port)
        if name == "serve":
            ask = f"report --at 48.8,2.3 --server http://127.0.0.1:{port} --subject me"
            cpu_of(command_line(ask), cwd=cwd, **environment)
    except BaseException:
        process.kill()
        raise
    return _ended(process, by=signal.SIGINT)


def first_folder(here: Path) -> Path:
    """A new folder with the files that the commands read."""
    here.mkdir()
    (here / "sites.csv").write_text(SITES)
    (here / "zones.geojson").write_text(ZONES)
    (here / "service.toml").write_text(CONFIG)
    return here


def _first_uses(bars: Bars, here: Path, ready: dict[str, str]) -> None:
    """Every command, with the median of its tries."""
    folders = [first_folder(here / str(number)) for number in range(TRIES)]
    for line in COMMANDS:
        text = TRACE if line.startswith("trace") else ""
        spent = [cpu_of(command_line(line), cwd=cwd, text=text, **ready) for cwd in folders]
        bars.at_most(f"first {' '.join(line.split()[:5])}"[:58], statistics.median(spent), 2, "s")
    with _broker() as broker:
        for line in SERVERS:
            found = [cpu_of_server(line, cwd, broker, **ready) for cwd in folders]
            name = f"first {line.split()[0]}"
            if None in found:
                bars.note(name, "SKIPPED: no mosquitto on this machine")
            else:
                bars.at_most(name, statistics.median(filter(None, found)), 2, "s")


def main() -> list[str]:
    bars = Bars("cold and warm starts (CPU time of processes)")
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)

        def cold(*commands: Sequence[str]) -> float:
            with tempfile.TemporaryDirectory() as empty:
                return cpu_of(*commands, cwd=here, WHEREISH_CACHE=empty)

        first = statistics.median(cold(command_line(REPORT)) for _ in range(TRIES))
        bars.at_most("report, nothing compiled", first, 1.5, "s")
        pairs = [(cold(["-c", MANY]), cold(*[["-c", MANY]] * 6)) for _ in range(TRIES)]
        one = statistics.median(pair[0] for pair in pairs)
        bars.note("100,000 reports, nothing compiled", f"{one:10.2f} s")
        together = statistics.median(six / one for one, six in pairs)
        bars.at_most("six such processes at once, times one", together, 2, "x")
        whole = cpu_of(command_line("compile"), cwd=here, WHEREISH_CACHE=f"{name}/cache")
        bars.note("whereish compile", f"{whole:10.2f} s")
        ready = {"WHEREISH_CACHE": f"{name}/cache", "WHEREISH_COMPILE": "refuse", "HOME": "/proc"}
        again = [cpu_of(command_line(REPORT), cwd=here, **ready) for _ in range(5)]
        bars.at_most("report, after whereish compile", statistics.median(again), 0.5, "s")
        _first_uses(bars, here, ready)
    return bars.failed


if __name__ == "__main__":
    main()
