"""A real PostgreSQL server for the tests, on a Unix socket in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


def binaries() -> Path | None:
    """The folder of initdb and postgres, if they are installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


def _unprivileged() -> dict[str, int]:
    """PostgreSQL refuses root: run it as somebody who owns nothing."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid}


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a new, empty server, which is gone afterwards."""
    where = binaries()
    assert where is not None
    whose = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="whereish-pg-"))
    if whose:
        os.chown(folder, whose["user"], whose["group"])
    data = folder / "data"
    try:
        subprocess.run(
            [where / "initdb", "-D", data, "-U", "whereish", "-A", "trust", "-E", "UTF8"],
            check=True,
            capture_output=True,
            cwd=folder,
            **whose,
        )
        process = subprocess.Popen(
            [where / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            **whose,
        )
        try:
            _await(where, folder)
            yield f"postgresql:///postgres?host={folder}&user=whereish"
        finally:
            process.send_signal(signal.SIGINT)  # at once, whoever is connected
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(where: Path, folder: Path) -> None:
    for _ in range(600):
        ready = subprocess.run(
            [where / "pg_isready", "-q", "-h", folder, "-U", "whereish"], check=False
        )
        if ready.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError("the PostgreSQL server did not come up")
