"""An output's place on a Hadoop file system, through Spark's own Java machine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from whereish.errors import InvalidInput, NotFinished, NotWritten

__all__ = ["HadoopPlace"]

_HIDDEN = re.compile(r"\.([0-9a-f]{32})\.whereish")


class HadoopPlace:
    """The address of an output, and the hidden folders of its releases beside it.

    A hidden folder is open to its owner only; what is renamed out of it is as open as the
    file system's defaults say.
    """

    def __init__(self, session: Any, address: str) -> None:
        java = getattr(session, "_jvm", None)
        if java is None:
            raise InvalidInput(
                "an output on a Hadoop file system needs a session that is not remote"
                " (Spark Connect)"
            )
        self._fs, self._gateway = java.org.apache.hadoop.fs, session._sc._gateway
        self.address = address.rstrip("/")
        self._parent, _, self.name = self.address.rpartition("/")
        if self._path(self.address).getParent() is None or not self.name:
            raise InvalidInput("the output must be a new folder, and not a whole file system")
        settings = session._jsc.hadoopConfiguration()
        with self._told():
            self._files = self._path(self.address).getFileSystem(settings)
            uri = self._path(self.address).toUri()
            self._context = self._fs.FileContext.getFileContext(uri, settings)

    def hidden(self, release: str) -> str:
        """The hidden folder of a release."""
        return f"{self._parent}/.{self.name}.{release}.whereish"

    def make_hidden(self, release: str) -> str:
        """Make that folder."""
        hidden = self.hidden(release)
        with self._told():
            owner = self._fs.permission.FsPermission("700")
            self._files.mkdirs(self._path(hidden), owner)
        return hidden

    def unfinished(self) -> str | None:
        """A release that came as far as its manifest, and was not cleared away."""
        prefix = f".{self.name}"
        for name in self.names(f"{self._parent}/"):
            found = _HIDDEN.fullmatch(name.removeprefix(prefix))
            noted = found and self.exists(f"{self.hidden(found[1])}/manifest.json")
            if found and noted and name.startswith(prefix):
                return found[1]
        return None

    def exists(self, path: str) -> bool:
        with self._told():
            return bool(self._files.exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        """What is in a folder; nothing, if there is none."""
        if not self.exists(folder):
            return []
        with self._told():
            found = self._files.listStatus(self._path(folder))
            return [status.getPath().getName() for status in found]

    def delete(self, path: str) -> None:
        with self._told():
            self._files.delete(self._path(path), True)

    def write(self, path: str, text: str) -> None:
        """A small file, on disk and whole under its name when this returns."""
        with self._told():
            partial = self._path(f"{path}.part")
            stream = self._files.create(partial, True)
            stream.write(bytearray(text.encode()))
            stream.hsync()
            stream.close()
            self._rename(f"{path}.part", path)

    def read(self, path: str) -> str:
        """The text of a small file."""
        with self._told():
            stream = self._files.open(self._path(path))
            raw = stream.readAllBytes()
            stream.close()
        return bytes(raw).decode()

    def refuse_foreign(self) -> None:
        """Nothing stands under the output's name."""
        if self.exists(self.address):
            raise InvalidInput(
                f"the output {self.name} exists already, so nothing is released: choose another"
                " name, or remove it"
            )

    def rename(self, staged: str, *, pending: str = "") -> None:
        """Give the staged folder its name, at once; never onto or into what is there."""
        try:
            self._rename(staged, self.address)
        except _failures() as error:
            try:
                left = not self.exists(staged)
            except NotWritten:
                raise NotFinished(
                    f"the output {self.name} may have been released: the file system does not"
                    f" answer ({_kind(error)}){pending}"
                ) from None
            if left:
                return
            raise NotWritten(
                f"the output {self.name} cannot be given its name ({_kind(error)}); nothing was"
                f" released{pending}"
            ) from None

    def _rename(self, source: str, target: str) -> None:
        # Not FileSystem.rename, which moves into a folder that exists.
        none = self._gateway.new_array(self._fs.Options.Rename, 0)
        self._context.rename(self._path(source), self._path(target), none)

    def _path(self, text: str) -> Any:
        return self._fs.Path(text)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except _failures() as error:
            raise NotWritten(
                f"the file system of the output {self.name} cannot be used ({_kind(error)})"
            ) from None


def _failures() -> tuple[type[Exception], ...]:
    """What a call of the Java machine raises; Spark dresses up a few kinds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def _kind(error: Any) -> str:
    """The Java exception's class; its message may be long."""
    thrown = getattr(error, "java_exception", None)
    return type(error).__name__ if thrown is None else str(thrown.getClass().getSimpleName())
