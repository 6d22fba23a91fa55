"""Load on HTTP services from a second process: keep-alive connections, latencies, errors.

``python -m benchmarks.http_load`` reads from standard input what to ask, as JSON: ``targets``,
each with ``port``, ``token``, ``path`` and ``process``, are asked in turn for ``seconds`` at a
time, ``rounds`` times, over ``connections``.  It prints JSON: what each target did.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

SUBJECTS = 1000


class Line(asyncio.Protocol):
    """One connection that asks again as soon as it was answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.got = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def ask(self) -> None:
        self.began = time.perf_counter()
        self.transport.write(self.load.request())

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, found, body = self.got.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length: ") + 16
        size = int(head[at : head.find(b"\r", at) if b"\r" in head[at:] else None])
        if len(body) < size:
            return
        self.got = b""
        now = time.perf_counter()
        self.load.seconds.append(now - self.began)
        self.load.errors += not head.startswith(b"HTTP/1.1 200")
        if now < self.load.end:
            self.ask()
        else:
            self.load.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.load.under_way:
            self.load.errors += 1
            self.load.finish()


class Load:
    """One target, asked by several connections until a moment has come."""

    def __init__(self, port: int, token: str, path: str, process: int) -> None:
        self.port, self.process = port, process
        self.under_way = self.errors = 0
        self.seconds: list[float] = []
        self.slices: list[dict[str, float]] = []
        bodies = [
            json.dumps({"lon": 2.33316, "lat": 48.85412, "subject": f"subject-{i}"}).encode()
            for i in range(SUBJECTS)
        ]
        self.requests = [
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
            for body in bodies
        ]

    def request(self) -> bytes:
        return random.choice(self.requests)

    def finish(self) -> None:
        """One connection has its last answer."""
        self.under_way -= 1
        if not self.under_way:
            self.done.set_result(None)

    async def run(self, seconds: float, connections: int) -> None:
        """One slice: throughput and latencies here, CPU there, once every connection stands."""
        loop = asyncio.get_running_loop()
        self.done = loop.create_future()
        opened = [
            await loop.create_connection(lambda: Line(self), "127.0.0.1", self.port)
            for _ in range(connections)
        ]
        before = len(self.seconds)
        began, cpu = time.perf_counter(), cpu_s(self.process)
        self.under_way, self.end = connections, began + seconds
        for _, line in opened:
            line.ask()
        await self.done
        spent, cpu = time.perf_counter() - began, cpu_s(self.process) - cpu
        answers = len(self.seconds) - before
        self.slices.append({"per_s": answers / spent, "cpu_us": 1e6 * cpu / answers})
        for transport, _ in opened:
            transport.close()

    def summary(self) -> dict[str, Any]:
        """Medians over slices, and latencies of all answers."""
        times = sorted(self.seconds)
        return {
            **{name: median(one[name] for one in self.slices) for name in ("per_s", "cpu_us")},
            "p50_ms": 1e3 * times[len(times) // 2],
            "p99_ms": 1e3 * times[int(0.99 * len(times))],
            "answers": len(times),
            "errors": self.errors,
            "slices": self.slices,
        }


def cpu_s(process: int) -> float:
    """CPU seconds that the threads of a process have had so far."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def ask(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Every target in turn, so many times over."""
    loads = [Load(**target) for target in said["targets"]]
    for _ in range(said["rounds"]):
        for load in loads:
            await load.run(said["seconds"], said["connections"])
    return [load.summary() for load in loads]


if __name__ == "__main__":
    print(json.dumps(uvloop.run(ask(json.load(sys.stdin)))))
