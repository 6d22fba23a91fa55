"""The real workbench in a process of its own, for tests, stress and benchmarks."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"


@dataclass
class Workbench:
    """A workbench that runs."""

    process: subprocess.Popen[str]
    port: int
    secret: str
    log: Path
    cookie: str = ""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """What the terminal printed."""
        return f"{self.origin}/#session={self.secret}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str | None] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request as the page would send it; a header of None is left out."""
        given: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": self.cookie or None,
            "Content-Type": "application/json",
            "X-Whereish": "workbench",
            **(headers or {}),
        }
        content = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            if "Content-Length" not in given:
                connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def open(self) -> None:
        """Exchange the secret for the cookie."""
        status, headers, _ = self.ask("POST", "/api/session", {"secret": self.secret})
        assert status == 200
        self.cookie = headers["set-cookie"].partition(";")[0]

    def upload(self, name: str, content: bytes) -> tuple[int, Any]:
        headers: dict[str, str | None] = {
            "X-Filename": name,
            "Content-Type": "application/octet-stream",
        }
        status, _, told = self.ask("POST", "/api/uploads", content, headers=headers)
        return status, json.loads(told)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=60)


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


@contextlib.contextmanager
def workbench(folder: Path, *options: str) -> Iterator[Workbench]:
    """A workbench on a free port; it is stopped at the end, if it still runs."""
    log = folder / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "whereish",
                "workbench",
                "--port",
                "0",
                "--no-browser",
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), "WHEREISH_WORKBENCH_LOG": "info"},
        )
    try:
        assert process.stdout is not None
        printed = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#session=(\S+)", printed)
        assert found, f"it printed {printed!r} and {log.read_text()!r}"
        made = Workbench(process, int(found[1]), found[2], log)
        made.open()
        yield made
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()


def scratch_folders() -> set[Path]:
    """The private folders of all workbenches that run."""
    memory = Path("/dev/shm")
    base = memory if memory.is_dir() else Path(tempfile.gettempdir())
    return set(base.glob("whereish-workbench-*"))
