"""The service under load from a second process, both on the same cores.

Reports and a constant are asked for in turn, a quarter of a second each, so that whatever else
the machine does falls on both; throughput and CPU are compared slice by slice.
``python -m benchmarks.bench_service 5`` runs 5 seconds of each instead of 60.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Bars

CONNECTIONS, SECONDS, SLICE_S = 32, 60.0, 0.25


def load(*targets: tuple[Any, str], seconds: float, rounds: int = 1) -> list[dict[str, Any]]:
    """What each service did on its path, all in turn and over again, from a second process."""
    asked = [
        {"port": one.port, "token": one.token, "path": path, "process": one.process.pid}
        for one, path in targets
    ]
    said = {
        "targets": asked,
        "seconds": seconds,
        "rounds": rounds,
        "connections": CONNECTIONS,
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.http_load"],
        input=json.dumps(said),
        timeout=60 + 2 * seconds * rounds * len(targets),
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def ratios(over: dict[str, Any], under: dict[str, Any], name: str) -> list[float]:
    """Of one figure, slice by slice: each has its neighbour's noise, least first."""
    pairs = zip(over["slices"], under["slices"], strict=True)
    return sorted(a[name] / b[name] for a, b in pairs)


def told(found: dict[str, Any]) -> str:
    return (
        f"{found['per_s']:8.0f}/s  p50 {found['p50_ms']:.1f} ms  p99 {found['p99_ms']:.1f} ms"
        f"  server CPU {found['cpu_us']:.0f} us  errors {found['errors']}"
    )


def spread(values: list[float]) -> str:
    return f"least {values[0]:.3f}, tenth {values[len(values) // 10]:.3f}, {len(values)} slices"


def main(seconds: float = SECONDS) -> list[str]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import postgres
    import service_process

    bars = Bars(f"the HTTP service, {CONNECTIONS} connections, {seconds:g} s, one worker")
    # Routes are tried in order: the constant has a service of its own, in which its route stands
    # first, as that of reports does in theirs.
    plain: dict[str, Any] = {"rest": "", "log_level": "warning"}
    options = {**plain, "program": ("-m", "benchmarks.service_app")}
    with tempfile.TemporaryDirectory() as folder:
        with (
            service_process.service(Path(folder) / "a", ledger=None, **plain) as service,
            service_process.service(Path(folder) / "o", ledger=None, **options) as other,
        ):
            both = (other, "/constant"), (service, "/v1/report")
            load(*both, seconds=1.0)
            rounds = max(1, round(seconds / 2 / SLICE_S))
            constant, report = load(*both, seconds=SLICE_S, rounds=rounds)
            (bytes_only,) = load((other, "/bytes"), seconds=seconds / 12)
            bars.note("a constant of the same size", told(constant))
            bars.note("the same bytes, no message read or written", told(bytes_only))
            bars.note("a report, no ledger", told(report))
            found = ratios(report, constant, "per_s")
            bars.at_least("reports per constants, throughput, median", median(found), 0.8)
            bars.note("the same, slice by slice", spread(found))
            found = ratios(constant, report, "cpu_us")
            bars.note("constants per reports, server CPU, median", f"{median(found):9.3f} x")
            bars.note("the same, slice by slice", spread(found))
            errors = constant["errors"] + report["errors"]
        with service_process.service(Path(folder) / "b", **plain) as service:
            load((service, "/v1/report"), seconds=1.0)
            (charged,) = load((service, "/v1/report"), seconds=seconds)
            bars.note("a charged report, SQLite", told(charged))
            bars.at_least("durable charges with SQLite", charged["per_s"], 1500, "/s")
            errors += charged["errors"]
        if postgres.binaries() is None:
            bars.note("PostgreSQL", "SKIPPED: not installed")
        else:
            with (
                postgres.server() as address,
                service_process.service(Path(folder) / "c", ledger=address, **plain) as service,
            ):
                load((service, "/v1/report"), seconds=1.0)
                (charged,) = load((service, "/v1/report"), seconds=seconds)
                bars.note("a charged report, PostgreSQL", told(charged))
                errors += charged["errors"]
    bars.at_most("errors in all", errors, 0, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(float, sys.argv[1:])) else 0)
