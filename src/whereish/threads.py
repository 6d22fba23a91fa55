"""Threads: as many as the user allows, and none that only wait.

BLAS libraries share even a small factorisation out to every core and let its threads spin
meanwhile: several times the CPU time for no gain, on a loaded machine the tenfold.  So solvers
run it on one thread (:func:`one_blas_thread`) and work on several outputs at once instead
(:func:`in_threads`).  Results do not depend on how many threads there are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, Generic, TypeVar

from whereish.errors import InvalidInput
from whereish.randomness import ForkSafeLock

__all__ = ["allowed_threads", "checked_threads", "in_threads", "one_blas_thread", "workers"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_VARIABLE = "WHEREISH_THREADS"


def allowed_threads() -> int:
    """``WHEREISH_THREADS`` where it is set, else the cores that this process may use."""
    asked = os.environ.get(_VARIABLE)
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InvalidInput(f"{_VARIABLE} must be a whole number >= 1; got {asked!r}")
    return int(asked)


def checked_threads(threads: int | None) -> int:
    """A number of threads that was asked for; None is all that are allowed."""
    if threads is None:
        return allowed_threads()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidInput(f"threads must be a whole number >= 1, or None; got {threads!r}")
    return threads


def in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int | None = None
) -> list[_Result]:
    """``list(map(function, items))``, in that many threads (None: all that are allowed).

    It pays where `function` works without the interpreter's lock, as kernels and NumPy do.
    """
    work, count = list(items), checked_threads(threads)
    if min(count, len(work)) <= 1:
        return [function(item) for item in work]
    with ThreadPoolExecutor(min(count, len(work))) as pool:
        return list(pool.map(function, work))


@contextmanager
def workers(items: Sequence[_Item], *, threads: int | None = None) -> Iterator[Workers[_Item]]:
    """Threads that stay while many functions are mapped over the same `items`.

    Each thread has a fixed share of them, so that a call costs two or three messages, not one for
    every item: for thousands of calls of less than a millisecond each.
    """
    count = min(checked_threads(threads), len(items))
    if count <= 1:
        yield Workers([list(items)], None)
        return
    bounds = [len(items) * at // count for at in range(count + 1)]
    shares = [list(items[begin:end]) for begin, end in pairwise(bounds)]
    with ThreadPoolExecutor(count) as pool:
        yield Workers(shares, pool)


class Workers(Generic[_Item]):
    """What :func:`workers` gives: ``map`` over its items, in their order."""

    def __init__(self, shares: list[list[_Item]], pool: ThreadPoolExecutor | None) -> None:
        self._shares, self._pool = shares, pool

    def map(self, function: Callable[[_Item], _Result]) -> list[_Result]:
        """The results for all items, in their order."""

        def share(items: list[_Item]) -> list[_Result]:
            return [function(item) for item in items]

        each = (
            map(share, self._shares) if self._pool is None else self._pool.map(share, self._shares)
        )
        return [result for part in each for result in part]


class _Limit:
    """How many callers want BLAS on one thread, and how many threads each library had before."""

    def __init__(self) -> None:
        self.lock, self.users = ForkSafeLock(), 0
        self.before: dict[str, tuple[Any, int]] = {}

    def enter(self, *, scipy: bool) -> None:
        libraries = _libraries(with_scipy=scipy or "scipy.linalg" in sys.modules)
        with self.lock:
            self.users += 1
            for library in libraries:
                if library.filepath not in self.before:
                    self.before[library.filepath] = (library, library.get_num_threads())
                    library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                for library, threads in self.before.values():
                    library.set_num_threads(threads)
                self.before = {}


_LIMIT = _Limit()


@contextmanager
def one_blas_thread(*, scipy: bool = True) -> Iterator[None]:
    """Around a solver (also as a decorator): BLAS and LAPACK on one thread, in all threads.

    SciPy has a BLAS of its own, whose threads spin for a twentieth of a second when it is loaded;
    a solver that uses NumPy's only says so, and does not load it.
    """
    _LIMIT.enter(scipy=scipy)
    try:
        yield
    finally:
        _LIMIT.leave()


@cache
def _libraries(*, with_scipy: bool) -> list[Any]:
    """The BLAS libraries of this process, with SciPy's or as long as that is not loaded."""
    if with_scipy:
        import scipy.linalg  # noqa: F401  (loads its BLAS, which the controller must see)
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
