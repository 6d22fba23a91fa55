"""Load on an HTTP service from a second process: keep-alive connections, latencies, errors.

``python -m benchmarks.http_load PORT TOKEN PATH SECONDS CONNECTIONS SUBJECTS`` prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Any

import uvloop


class Line(asyncio.Protocol):
    """One connection that asks again as soon as it was answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.got = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

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
        self.load.seconds.append(time.perf_counter() - self.began)
        self.load.errors += not head.startswith(b"HTTP/1.1 200")
        if time.perf_counter() < self.load.end:
            self.ask()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.load.open -= 1
        self.load.lost += time.perf_counter() < self.load.end
        if not self.load.open:
            self.load.done.set_result(None)


class Load:
    def __init__(self, token: str, path: str, subjects: int) -> None:
        self.seconds: list[float] = []
        self.errors = self.lost = self.open = 0
        self.end = 0.0
        bodies = [
            json.dumps({"lon": 2.33316, "lat": 48.85412, "subject": f"subject-{i}"}).encode()
            for i in range(subjects)
        ]
        self.requests = [
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
            for body in bodies
        ]

    def request(self) -> bytes:
        return random.choice(self.requests)

    async def run(self, port: int, seconds: float, connections: int) -> None:
        loop = asyncio.get_running_loop()
        self.done = loop.create_future()
        self.end = time.perf_counter() + seconds
        self.open = connections
        for _ in range(connections):
            await loop.create_connection(lambda: Line(self), "127.0.0.1", port)
        await self.done


def main() -> None:
    port, token, path, seconds, connections, subjects = sys.argv[1:]
    load = Load(token, path, int(subjects))
    began = time.perf_counter()
    uvloop.run(load.run(int(port), float(seconds), int(connections)))
    spent = time.perf_counter() - began
    times = sorted(load.seconds)
    print(
        json.dumps(
            {
                "per_s": len(times) / spent,
                "p50_ms": 1e3 * times[len(times) // 2],
                "p99_ms": 1e3 * times[int(0.99 * len(times))],
                "errors": load.errors + load.lost,
                "requests": len(times),
            }
        )
    )


if __name__ == "__main__":
    main()
