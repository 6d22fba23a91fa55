"""An output's place on a Hadoop file system, through Spark's own Java machine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from whereish.errors import InvalidInput, NotFinished, NotWritten
from whereish.publish.release.messages import not_renamed

__all__ = ["HadoopPlace"]

_HIDDEN = re.compile(r"\.([0-9a-f]{32})\.whereish")
_ATOMIC = ("hdfs", "viewfs", "file")


class HadoopPlace:
    """The address of an output, and the hidden folders of its releases beside it.

    A hidden folder is open to its owner only; what is renamed out of it is as open as the
    file system's defaults say.  A release's reports are signed with a file of its id, whose
    name readers skip (it begins with "_"), so what stands under the output's name can be
    told to be this release's, or not.

    A staged folder leaves its hidden folder's `staged` by one of two renames: to the
    output, or to the hidden folder's `trash`.  Both are atomic, so one of them wins.
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
        _require_atomic(self.address.partition(":")[0])
        self._parent, _, self.name = self.address.rpartition("/")
        if self._path(self.address).getParent() is None or not self.name:
            raise InvalidInput("the output must be a new folder, and not a whole file system")
        settings = session._jsc.hadoopConfiguration()
        with self._hide_java_errors():
            self._files = self._path(self.address).getFileSystem(settings)
            uri = self._path(self.address).toUri()
            self._context = self._fs.FileContext.getFileContext(uri, settings)

    def hidden(self, release: str) -> str:
        """The hidden folder of a release."""
        return f"{self._parent}/.{self.name}.{release}.whereish"

    def staged(self, release: str) -> str:
        """Where its reports wait for their name."""
        return f"{self.hidden(release)}/staged"

    def trash(self, release: str) -> str:
        """Where its reports went if it was given up."""
        return f"{self.hidden(release)}/trash"

    def make_hidden(self, release: str) -> str:
        """Make the hidden folder; a missing parent is made as open as the defaults say."""
        hidden = self.hidden(release)
        with self._hide_java_errors():
            parent = self._path(self.address).getParent()
            self._files.mkdirs(parent)
            # A view's mount may lead elsewhere.
            _require_atomic(str(self._files.resolvePath(parent).toUri().getScheme()))
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
        with self._hide_java_errors():
            return bool(self._files.exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        """What is in a folder; nothing, if there is none."""
        try:
            with self._hide_java_errors():
                found = self._files.listStatus(self._path(folder))
                return [status.getPath().getName() for status in found]
        except NotWritten:
            if self.exists(folder):
                raise
            return []

    def delete(self, path: str) -> None:
        """Remove a file or a folder, which may be gone already."""
        with self._hide_java_errors():
            deleted = self._files.delete(self._path(path), True)
        if not deleted and self.exists(path):
            raise NotWritten(f"a hidden folder of the output {self.name} cannot be removed")

    def write(self, path: str, text: str) -> None:
        """A small file, on disk and whole under its name when this returns."""
        with self._hide_java_errors():
            partial = self._path(f"{path}.part")
            stream = self._files.create(partial, True)
            stream.write(bytearray(text.encode()))
            stream.hsync()
            stream.close()
            self._rename(f"{path}.part", path)

    def read(self, path: str) -> str:
        """The text of a small file."""
        with self._hide_java_errors():
            stream = self._files.open(self._path(path))
            raw = stream.readAllBytes()
            stream.close()
        return bytes(raw).decode()

    def sign(self, folder: str, release: str) -> None:
        """Mark reports as this release's."""
        self.write(f"{folder}/{_signature(release)}", release)

    def stands(self, release: str) -> bool:
        """Whether what stands under the output's name is this release."""
        return self.exists(f"{self.address}/{_signature(release)}")

    def refuse_foreign(self) -> None:
        """Nothing stands under the output's name."""
        if self.exists(self.address):
            raise InvalidInput(
                f"the output {self.name} exists already, so nothing is released: choose another"
                " name, or remove it"
            )

    def rename(self, folder: str, release: str, *, pending: str = "") -> bool:
        """Give a signed folder the output's name, at once; never onto or into what is there.

        False if the folder has gone another way: it is neither where it was, nor there.
        """
        try:
            self._rename(folder, self.address)
        except _failures() as error:
            try:
                if self.stands(release):  # the answer was lost, or another has finished it
                    return True
                gone = not self.exists(folder)
            except NotWritten:
                raise NotFinished(
                    f"the output {self.name} may have been released: the file system does not"
                    f" answer ({_kind(error)}){pending}"
                ) from None
            if gone:
                return False
            raise not_renamed(self.name, _kind(error), pending) from None
        return True

    def discard(self, release: str) -> bool:
        """Destroy staged reports; False if they have left already.

        They are moved first, at once, to where nothing is ever released from.  The empty
        trash stays, as the note of it, until the hidden folder is removed.
        """
        staged, trash = self.staged(release), self.trash(release)
        try:
            self._rename(staged, trash)
        except _failures() as error:
            if not self.exists(trash):
                if self.exists(staged):
                    raise NotWritten(
                        f"the staged reports of the output {self.name} cannot be destroyed"
                        f" ({_kind(error)}), so nothing has changed"
                    ) from None
                return False
        for name in self.names(trash):
            self.delete(f"{trash}/{name}")
        return True

    def _rename(self, source: str, target: str) -> None:
        # Not FileSystem.rename, which moves into a folder that exists.
        none = self._gateway.new_array(self._fs.Options.Rename, 0)
        self._context.rename(self._path(source), self._path(target), none)

    def _path(self, text: str) -> Any:
        return self._fs.Path(text)

    @contextlib.contextmanager
    def _hide_java_errors(self) -> Iterator[None]:
        try:
            yield
        except _failures() as error:
            raise NotWritten(
                f"the file system of the output {self.name} cannot be used ({_kind(error)})"
            ) from None


def _signature(release: str) -> str:
    return f"_whereish-{release}"


def _require_atomic(scheme: str) -> None:
    """Object stores copy file by file, so a release could be seen, or given up, in part."""
    if scheme not in _ATOMIC:
        raise InvalidInput(
            f"the file system of the output must rename a folder at once, as {', '.join(_ATOMIC)}"
            f" do; got {scheme}: release to one of these, and copy the output from there"
        )


def _failures() -> tuple[type[Exception], ...]:
    """What a call of the Java machine raises; Spark dresses up a few kinds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def _kind(error: Any) -> str:
    """The Java exception's class; its message may be long."""
    thrown = getattr(error, "java_exception", None)
    return type(error).__name__ if thrown is None else str(thrown.getClass().getSimpleName())
