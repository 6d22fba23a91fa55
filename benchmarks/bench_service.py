"""The service under load from a second process, both on the same cores.

``python -m benchmarks.bench_service 5`` runs 5 seconds of each instead of 60.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import Bars

CONNECTIONS, SUBJECTS, SECONDS, ROUNDS = 32, 1000, 60.0, 6


def load(service: Any, path: str, seconds: float) -> dict[str, float]:
    """Throughput and latencies from the client, CPU from the server."""
    before = cpu_s(service.process.pid)
    numbers = (service.port, service.token, path, seconds, CONNECTIONS, SUBJECTS)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.http_load", *map(str, numbers)],
        timeout=60 + 2 * seconds,
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    found: dict[str, float] = json.loads(done.stdout)
    found["cpu_us"] = (cpu_s(service.process.pid) - before) / found["requests"] * 1e6
    return found


def cpu_s(process: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(found: dict[str, float]) -> str:
    return (
        f"{found['per_s']:8.0f}/s  p50 {found['p50_ms']:.1f} ms  p99 {found['p99_ms']:.1f} ms"
        f"  server CPU {found['cpu_us']:.0f} us  errors {found['errors']:.0f}"
    )


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
            load(service, "/v1/report", 1.0)
            load(other, "/constant", 1.0)
            pairs = [
                (load(other, "/constant", seconds / ROUNDS / 2),
                 load(service, "/v1/report", seconds / ROUNDS / 2))
                for _ in range(ROUNDS)
            ]  # fmt: skip
            bytes_only = load(other, "/bytes", seconds / ROUNDS / 2)
            constant = max((pair[0] for pair in pairs), key=lambda found: found["per_s"])
            report = max((pair[1] for pair in pairs), key=lambda found: found["per_s"])
            bars.note("a constant of the same size", told(constant))
            bars.note("the same bytes, no message read or written", told(bytes_only))
            bars.note("a report, no ledger", told(report))
            bars.at_least(
                "reports per constants, throughput", report["per_s"] / constant["per_s"], 0.8
            )
            cpu = [min(pair[side]["cpu_us"] for pair in pairs) for side in (0, 1)]
            bars.note("constants per reports, server CPU", f"{cpu[0] / cpu[1]:10.2f} x")
            errors = sum(found["errors"] for pair in pairs for found in pair)
        with service_process.service(Path(folder) / "b", **plain) as service:
            load(service, "/v1/report", 1.0)
            charged = load(service, "/v1/report", seconds)
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
                load(service, "/v1/report", 1.0)
                charged = load(service, "/v1/report", seconds)
                bars.note("a charged report, PostgreSQL", told(charged))
                errors += charged["errors"]
    bars.at_most("errors in all", errors, 0, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(float, sys.argv[1:])) else 0)
