"""The service in full numbers: kills under load, one key 1,000 times, timing, memory.

``python -m stress.service 0.05`` runs a twentieth of them, ``python -m stress.service 1 key soak``
these parts (of sqlite, postgres, key, timing, soak); part of ``make stress``.
"""

from __future__ import annotations

import http.client
import math
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import whereish as wh
from benchmarks.measure import Bars
from stress.service_load import WRONG, Load, kill_under_load, repeat_one_key
from whereish.publish.ledger import open_ledger

KILLS, REPEATS, REQUESTS, SOAK_S = 200, 1000, 20_000, 600.0
MOST_RHO = 0.02


def kills(bars: Bars, name: str, folder: Path, address: str, count: int) -> None:
    """kill -9 under load, again and again."""
    import service_process

    total: dict[str, int] = {}
    with service_process.service(folder, ledger=address, rest="", log_level="error") as service:
        for run in range(count):
            # At another moment of a commit each time.
            found = kill_under_load(service, run, address, 0.1 + 0.3 * ((run * 0.618) % 1))
            total = {key: total.get(key, 0) + value for key, value in found.items()}
    for key in ("answered", "charged, not answered"):
        bars.note(f"{name}, {count} kills: {key}", str(total[key]))
    for key in WRONG:
        bars.at_most(f"{name}, {count} kills: {key}", total[key], 0, "")


def one_key(bars: Bars, folder: Path, repeats: int) -> None:
    import service_process

    with service_process.service(folder, rest="", log_level="error") as service:
        answers = repeat_one_key(service, repeats)
        entries = open_ledger(folder / "state" / "ledger.db").statement("repeated").entries
    bars.at_most(f"answers to {repeats} repeats of one key, 8 connections", len(answers), 1, "")
    bars.at_most("charges for them", sum(entry.times for entry in entries), 1, "")


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Rank correlation: a few slow answers do not decide."""
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (x, y)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def timing(bars: Bars, folder: Path, requests: int) -> None:
    """Whether the time of an answer tells how far its report is: Laplace, a padded map."""
    import service_process

    levels = np.full((16, 16), 4e-3)
    levels[5:10, 5:10] = 2e-3
    plane = wh.Plane.around(2.35, 48.85, "20 km")
    zones = wh.PrivacyMap(levels, "300 m", (-2400.0, -2400.0), plane)
    folder.mkdir(parents=True, exist_ok=True)
    wh.EikonalMechanism.build(zones.smoothed("600 m", below=True)).save(folder / "map.npz")
    rest = '[[mechanism]]\nid = "map"\nfile = "map.npz"\n'
    with service_process.service(folder, ledger=None, rest=rest, log_level="error") as service:
        for name in ("street", "map"):
            far, took = _timed(service, name, requests)
            rho, linear = spearman(far, took), float(np.corrcoef(far, took)[0, 1])
            bars.note(f"{name}: median answer", f"{1e3 * np.median(took):.2f} ms")
            noise = 1 / math.sqrt(len(far))
            bars.note(f"{name}: correlation by chance (1 sigma)", f"{noise:.4f}")
            bars.at_most(f"{name}: |rank correlation| of time and distance", abs(rho), MOST_RHO, "")
            bars.at_most(f"{name}: |correlation|", abs(linear), MOST_RHO, "")


def _timed(service: Any, mechanism: str, requests: int) -> tuple[np.ndarray, np.ndarray]:
    import json

    line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    body = {"lon": 2.35, "lat": 48.85, "mechanism": mechanism}
    reports, took = [], []
    for _ in range(requests):
        began = time.perf_counter()
        _, _, answer = service.ask("POST", "/v1/report", body, connection=line)
        took.append(time.perf_counter() - began)
        said = json.loads(answer)
        reports.append((said["lon"], said["lat"]))
    line.close()
    z = np.array(reports)
    return wh.GreatCircle()(z, np.full_like(z, [2.35, 48.85])), np.array(took)


def soak(bars: Bars, folder: Path, seconds: float) -> None:
    """Memory after a tenth of the time and at the end, under load."""
    import service_process

    with service_process.service(folder, rest="", log_level="error") as service:
        load = Load(service, 0)
        load.start()
        time.sleep(seconds / 10)
        early = resident_mb(service.process.pid)
        time.sleep(0.9 * seconds)
        late = resident_mb(service.process.pid)
        load.stop()
        answered, failed = len(load.answers), len(load.sent) - len(load.answers)
    bars.note(f"soak of {seconds:g} s", f"{answered} reports, {early:.1f} MB, then {late:.1f} MB")
    bars.at_most("soak: growth of memory", late / early, 1.05)
    bars.at_most("soak: requests without a report", failed, 0, "")


def resident_mb(process: int) -> float:
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main(share: float = 1.0, *parts: str) -> list[str]:
    """All of it, or the parts that are named, at a share of their numbers."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import postgres

    bars = Bars("the HTTP service under faults")
    count = max(1, round(share * KILLS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def in_postgres() -> None:
            if postgres.binaries() is None:
                bars.note("PostgreSQL", "SKIPPED: not installed")
                return
            with postgres.server() as address:
                kills(bars, "PostgreSQL", folder / "postgres", address, count)

        known: dict[str, Callable[[], None]] = {
            "sqlite": partial(
                kills, bars, "SQLite", folder / "sqlite", str(folder / "ledger.db"), count
            ),
            "postgres": in_postgres,
            "key": partial(one_key, bars, folder / "key", max(16, round(share * REPEATS))),
            "timing": partial(timing, bars, folder / "timing", max(500, round(share * REQUESTS))),
            "soak": partial(soak, bars, folder / "soak", max(10.0, share * SOAK_S)),
        }
        for part in parts or known:
            known[part]()
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(float, sys.argv[1:2]), *sys.argv[2:]) else 0)
