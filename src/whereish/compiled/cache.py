"""Where machine code is kept between processes, and how several share one compilation.

Machine code is read from the folders of :mod:`whereish.compiled.folders`, and written to the
first that can be written.  So code compiled when an image was built serves a user whose home is
read-only.  Where no folder can be written, each process compiles for itself what it does not
find.  Machine code is trusted like the package: whoever may write to the folder decides what runs.

Processes that start together would all compile the same.  A lock on the folder lets one of
them compile; the others wait, then read.  The lock is the operating system's, which frees it
when its holder dies.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
    _CacheLocator,
)
from numba.core.compiler_lock import global_compiler_lock

from whereish.compiled.digest import digest
from whereish.compiled.folders import folders, writable_folder

__all__ = ["NotCompiled", "cached_dispatcher"]

_KEPT = 4  # versions of one kernel that stay in a folder
_LOCK = ".lock"
_RULES = {"nogil": True, "fastmath": False, "error_model": "numpy"}


class NotCompiled(Exception):
    """A kernel would have to be compiled, and WHEREISH_COMPILE=refuse forbids it."""


def _import_without_blas() -> None:
    """numba's array functions without `scipy.linalg`, a seventh of the time to load a kernel.

    They import it to know whether np.cov has a BLAS; what calls a BLAS imports it when it does.
    """
    from numba.np import linalg

    look = getattr(linalg, "ensure_blas", None)
    if look is None or "numba.np.arraymath" in sys.modules:
        return
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look


_import_without_blas()


def cached_dispatcher(function: Callable[..., object]) -> Any:
    """numba's dispatcher of a function, with our rules and our cache."""
    dispatcher = numba.njit(**_RULES)(function)
    dispatcher._cache = _SharedCache(function) if folders() else _NoCache(function)
    plain = dispatcher.compile

    def compile_once(types: Any) -> Any:
        with _compiling():
            return plain(types)

    dispatcher.compile = compile_once
    return dispatcher


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Names by what a kernel computes, wherever its source is and whatever its date."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file = file  # numba's warnings name it
        self._digest = digest(function, repr(_RULES))

    def get_cache_path(self) -> str:
        return str(writable_folder() or folders()[0])

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _Files(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Index(IndexDataCacheFile):  # type: ignore[misc]
    """The index of one kernel's machine code, which names the types of its arguments.

    A type that has moved since, in another version of the package, leaves nothing to be read.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (ImportError, AttributeError):
            return {}


class _SharedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function; what is missing is compiled by one process at a time."""

    _impl_class = _Files

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        base, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = _Index(self._cache_path, base, stamp)  # where it is written
        self._readable = [_Index(str(place), base, stamp) for place in folders()]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None and _take_lock():
            found = super().load_overload(sig, target_context)  # another may have been faster
        if found is None:
            _refuse_if_asked(self._py_func, sig)
        return found

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        for files in self._readable:
            data = files.load(key)
            if data is not None:
                found = self._impl.rebuild(target_context, data)
                return None if _is_generator(found) else found
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if writable_folder() is not None and not _is_generator(data):
            super()._save_overload(sig, data)
            self._forget_old_versions()

    def _forget_old_versions(self) -> None:
        kernel, _, version = self._impl.filename_base.rpartition("-")
        place = Path(self.cache_path)
        found = sorted(place.glob(f"{kernel}-*.nbi"), key=lambda path: -path.stat().st_mtime)
        for old in found[_KEPT:]:
            if version not in old.name:
                for file in place.glob(f"{old.stem}.*"):
                    file.unlink(missing_ok=True)


def _is_generator(compiled: Any) -> bool:
    """Whether it yields: numba cannot go on with one that was read, and callers have its code."""
    return isinstance(compiled.signature.return_type, numba.types.Generator)


class _NoCache(NullCache):  # type: ignore[misc]
    """Where there is no folder, each process compiles for itself."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _refuse_if_asked(self._function, sig)


def _refuse_if_asked(function: Callable[..., object], types: Any) -> None:
    if os.environ.get("WHEREISH_COMPILE") == "refuse":
        raise NotCompiled(f"{function.__module__}.{function.__qualname__} for {types}")


class _Compilation:
    """What this process compiles at the moment; numba's own lock guards it."""

    depth = 0
    held: ExitStack | None = None


@contextmanager
def _compiling() -> Iterator[None]:
    """Nested compilations are one: the lock on the folder is given back after the outermost."""
    with global_compiler_lock:
        _Compilation.depth += 1
        try:
            yield
        finally:
            _Compilation.depth -= 1
            if not _Compilation.depth and _Compilation.held is not None:
                _Compilation.held.close()
                _Compilation.held = None


def _take_lock() -> bool:
    """Hold the folder's lock until the outermost compilation ends; whether it was just taken."""
    place = writable_folder()
    if _Compilation.held is not None or place is None:
        return False
    _Compilation.held = ExitStack()
    _Compilation.held.enter_context(_locked(place / _LOCK))
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; waiting for it takes no time of the processor."""
    if sys.platform == "win32":
        from filelock import FileLock

        with FileLock(path):
            yield
        return
    import fcntl

    with path.open("w") as file:
        with suppress(OSError):  # a file system without locks: each process compiles
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
