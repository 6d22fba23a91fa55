"""Uploads: bounded, under names of our own, in a private folder that outlives no server.

The folder is in memory where the system has such a place (/dev/shm), readable by its owner alone.
A guardian process waits at a pipe which only the server holds; however the server ends, kill -9
included, the pipe closes and the guardian removes the folder.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from whereish.errors import InvalidInput
from whereish.interfaces.http.problems import Problem

__all__ = ["Scratch", "Upload", "check_archive"]

SUFFIXES: Final = frozenset(
    {".csv", ".jsonl", ".ndjson", ".parquet", ".geoparquet", ".gpkg", ".geojson", ".json", ".fgb"}
    | {".gpx", ".npz", ".tif", ".tiff", ".asc"}
)
MOST_BYTES: Final = 512 << 20
MOST_UNPACKED: Final = 1 << 30
_MOST_RATIO: Final = 200
_MOST_UPLOADS: Final = 32
_GUARDIAN: Final = (
    "import shutil, sys\nsys.stdin.buffer.read()\nshutil.rmtree(sys.argv[1], ignore_errors=True)\n"
)


@dataclass(frozen=True)
class Upload:
    """A file that was uploaded: its place, and the words of its name for people."""

    id: str
    path: Path
    shown: str
    bytes: int


class Scratch:
    """The private folder and what is in it."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        memory = Path("/dev/shm")
        base = memory if memory.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="whereish-workbench-", dir=base))
        self.most_bytes = most_bytes
        self._uploads: dict[str, Upload] = {}
        # In a session of its own: a signal to the server's group does not reach it.
        self._guardian = subprocess.Popen(
            [sys.executable, "-S", "-c", _GUARDIAN, str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    async def add(self, shown: str, parts: AsyncIterator[bytes]) -> Upload:
        """Write what comes, up to the limit; a refused upload leaves nothing."""
        suffix = Path(shown.replace("\\", "/")).suffix.lower()
        if suffix not in SUFFIXES:
            raise InvalidInput(f"a file must end in one of {', '.join(sorted(SUFFIXES))}")
        name = secrets.token_hex(8)
        path = self.new(suffix)
        size = 0
        try:
            with path.open("xb") as file:
                async for part in parts:
                    size += len(part)
                    if size > self.most_bytes:
                        raise Problem("too-large", f"at most {self.most_bytes >> 20} MB")
                    file.write(part)
            if size == 0:
                raise InvalidInput("the file is empty: choose another one")
            check_archive(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        while len(self._uploads) >= _MOST_UPLOADS:
            self.remove(next(iter(self._uploads)))
        self._uploads[name] = Upload(name, path, Path(shown.replace("\\", "/")).name[:80], size)
        return self._uploads[name]

    def new(self, suffix: str) -> Path:
        """A path for a new file."""
        return self.folder / f"{secrets.token_hex(8)}{suffix}"

    def get(self, name: str) -> Upload:
        """The upload of this name."""
        if name not in self._uploads:
            raise Problem("not-found", "this upload is not here any more: choose the file again")
        return self._uploads[name]

    def remove(self, name: str) -> None:
        """Forget an upload and remove its file."""
        gone = self._uploads.pop(name, None)
        if gone is not None:
            gone.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder and all in it."""
        assert self._guardian.stdin is not None
        self._guardian.stdin.close()
        self._guardian.wait(timeout=30)


def check_archive(path: Path) -> None:
    """Refuse an archive that would fill the memory: too large unpacked, or packed too tightly.

    The sizes that it states are those that a reader of it unpacks at most.
    """
    if path.suffix != ".npz":
        return
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [(one.file_size, one.compress_size) for one in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError):
        raise InvalidInput("this is not a mechanism saved by whereish (.npz)") from None
    unpacked = sum(size for size, _ in sizes)
    if unpacked > MOST_UNPACKED or any(
        size > (1 << 20) and size > _MOST_RATIO * max(packed, 1) for size, packed in sizes
    ):
        raise Problem("too-large", "the archive unpacks to far more than its size")
