"""The real service in a process of its own, for tests, stress and benchmarks."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BASE = """
state = {state!r}
host = "127.0.0.1"
port = {port}
workers = {workers}
log_level = {log_level!r}
{top}
[limits]
rate_per_s = 1e6
burst = 1000000
concurrency = 4096
{limits}
[[mechanism]]
id = "street"
epsilon = "ln(4)/200 m"
[[mechanism]]
id = "city"
epsilon = "ln(4)/2 km"
{rest}
"""
LEDGER = """
[ledger]
address = {address!r}
cap = {cap!r}
"""
TRACE_TOTAL = 0.11  # per metre: twelve steps cost 0.102 at their worst
TRACE = f"""
[[trace]]
id = "walk"
accuracy = "500 m"
total = "{TRACE_TOTAL}/m"
"""


_CANDIDATES = itertools.count(61 * os.getpid())  # other processes begin elsewhere


def free_port() -> int:
    """A port that nobody takes until a server is started there.

    It is below those that systems give to whoever asks for any, and each is given once.
    """
    for candidate in _CANDIDATES:
        port = 20_000 + candidate % 12_000
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is always another candidate")


@dataclass
class Service:
    """A service that runs, can be killed and started again."""

    folder: Path
    config: Path
    port: int
    token: str = ""
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "whereish", "serve", "--config")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def start(self, *options: str, wait_s: float = 120) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, self.config, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the service ended:\n{self.log.read_text()}")
            with contextlib.suppress(OSError):
                if self.ask("GET", "/healthz")[0] == 200:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError("the service did not come up")
        found = re.findall(r"first token, shown this once: (\S+)", self.log.read_text())
        self.token = found[-1] if found else self.token

    def stop(self) -> None:
        """Gracefully, as a service manager would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)

    def kill(self) -> None:
        """kill -9 for the process and its workers: the session that was started for it."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; a body that is no bytes is sent as JSON."""
        line = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            line.request(method, path, sent, self.headers if headers is None else headers)
            answer = line.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            if connection is None:
                line.close()

    def post(self, path: str, body: Any, key: str | None = None, **options: Any) -> Any:
        """The JSON answer of a POST that must succeed."""
        headers = {**self.headers, **({"Idempotency-Key": key} if key else {})}
        status, _, answer = self.ask("POST", path, body, headers, **options)
        assert status in (200, 201), (status, answer)
        return json.loads(answer)

    def token_for(self, name: str, *scopes: str, subject: str | None = None) -> str:
        """A further token, made by the command line."""
        chosen = [part for scope in scopes for part in ("--scope", scope)]
        whose = ["--subject", subject] if subject else []
        command = [sys.executable, "-m", "whereish", "token", "add", name, *chosen, *whose]
        done = subprocess.run(
            [*command, "--config", self.config],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **self.environment},
        )
        time.sleep(1.1)  # the service looks once a second
        return done.stdout.strip()


@contextlib.contextmanager
def service(
    folder: Path,
    *,
    ledger: str | None = "",
    cap: str = "900/m",
    workers: int = 1,
    log_level: str = "debug",
    top: str = "",
    limits: str = "",
    rest: str = TRACE,
    options: tuple[str, ...] = (),
    program: tuple[str, ...] = ("-m", "whereish", "serve", "--config"),
) -> Iterator[Service]:
    """A service with a ledger in the folder, at `ledger`, or (None) without one."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    kept = "" if ledger is None else LEDGER.format(address=ledger, cap=cap)
    config = folder / "service.toml"
    config.write_text(
        BASE.format(
            state=str(folder / "state"),
            port=port,
            workers=workers,
            log_level=log_level,
            top=top + ("\nuncharged = true" if ledger is None else ""),
            limits=limits,
            rest=kept + (rest if ledger is not None else rest.replace(TRACE, "")),
        )
    )
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {"TMPDIR": str(folder / "tmp")}
    made = Service(folder, config, port, environment=environment, program=program)
    try:
        made.start(*options)
        yield made
    finally:
        if made.process is not None:
            made.kill()
