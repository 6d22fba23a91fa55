"""Threads: as many as the user allows, and none that only wait.

BLAS libraries share even a small factorisation out to every core and let its threads spin
meanwhile: several times the CPU time for no gain, on a loaded machine the tenfold.  So solvers
run it on one thread (:func:`one_blas_thread`) and work on several outputs at once instead
(:func:`in_threads`).  Results do not depend on how many threads there are.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, partial
from itertools import pairwise
from operator import itemgetter
from queue import SimpleQueue
from threading import Thread, local
from typing import Any, Generic, TypeVar

from whereish.errors import InvalidInput
from whereish.randomness import ForkSafeLock

__all__ = [
    "Workers",
    "alone",
    "allowed_threads",
    "checked_threads",
    "in_ranges",
    "in_threads",
    "one_blas_thread",
    "workers",
]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_VARIABLE = "WHEREISH_THREADS"
_WORTH_THREADS, _RANGES = 1e6, 4


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
    with workers(threads=max(1, min(count, len(work)))) as team:
        return team.map(function, work)


def in_ranges(function: Callable[[tuple[int, int]], object], count: int, *, work: float) -> None:
    """Call ``function((begin, end))`` for ranges that make up ``range(count)``.

    In threads where `work`, nanoseconds or so, is more than it takes to wake them; the ranges
    depend on how many there are, so that what is done for one number may not depend on its range.
    """
    threads = allowed_threads() if work >= _WORTH_THREADS else 1
    parts = 1 if threads == 1 else min(count, _RANGES * threads)
    bounds = [count * at // max(parts, 1) for at in range(parts + 1)]
    in_threads(function, list(pairwise(bounds)), threads=threads)


@contextmanager
def alone() -> Iterator[None]:
    """What is done within has no other threads: it is an item of work beside others'."""
    before, _OPEN.is_alone = _OPEN.is_alone, True
    try:
        yield
    finally:
        _OPEN.is_alone = before


@contextmanager
def workers(*, threads: int | None = None) -> Iterator[Workers]:
    """Threads that stay while many functions are mapped; the caller's own is one of them.

    Within another such block of the same thread they are those of that block, as far as it has
    enough: a solver that opens one begins no thread for each of its steps.
    """
    count, outer = 1 if _OPEN.is_alone else checked_threads(threads), _OPEN.team
    if outer.count >= count:
        yield outer.fewer(count)
        return
    team = Workers(count)
    _OPEN.team = team
    try:
        yield team
    finally:
        _OPEN.team = outer
        team.close()


class Workers:
    """What :func:`workers` gives; the threads beside the caller's end when it is closed.

    For thousands of calls of a millisecond each: a call wakes the others by one message, and waits
    for none that has taken nothing.  They begin with the first call that has something for them.
    """

    def __init__(self, count: int = 1) -> None:
        self._inboxes: list[SimpleQueue[Callable[[], object] | None]] = [
            SimpleQueue() for _ in range(count - 1)
        ]
        self._threads: list[Thread] = []

    @property
    def count(self) -> int:
        """How many there are, the caller's own among them."""
        return len(self._inboxes) + 1

    def fewer(self, count: int) -> Workers:
        """So many of these threads; what closes them is that these are closed."""
        if count == self.count:
            return self
        team = Workers()
        team._inboxes, team._threads = self._inboxes[: count - 1], self._threads
        return team

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """``list(map(function, items))``; each thread begins with the same share of them, always.

        So what a thread has in its cache is there in the next call, too.  Items are dealt in turn:
        where the largest come first, shares are alike, and the smallest are left for the end.
        """
        count = min(self.count, len(items))
        if count <= 1:
            return [function(item) for item in items]
        self._begin(count - 1)
        call = _Call(function, items, count)
        for share, inbox in enumerate(self._inboxes[: count - 1], 1):
            # What the caller has set for itself, as np.errstate, holds in every thread.
            inbox.put(partial(copy_context().run, call.work, share))
        return call.results()

    def later(self, function: Callable[[], _Result]) -> Callable[[], _Result]:
        """A function that gives what `function` does; another thread may do it meanwhile.

        Whoever asks before one has begun does it; there it has no other threads.
        """
        one = _Later(function)
        if self._inboxes:
            self._begin(len(self._inboxes))
            self._inboxes[-1].put(partial(copy_context().run, one.begin))
        return one.result

    def beside(self, work: Callable[[int], None]) -> None:
        """Call ``work(at)`` in each of the other threads, at = 1, 2, ..., and wait for none.

        It is to end soon once the caller has no use for it, and to raise nothing.
        """
        self._begin(len(self._inboxes))
        for at, inbox in enumerate(self._inboxes, 1):
            inbox.put(partial(work, at))

    def _begin(self, count: int) -> None:
        """Let so many threads serve."""
        for inbox in self._inboxes[len(self._threads) : count]:
            self._threads.append(Thread(target=_serve, args=(inbox,), daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """Wait for the threads to end."""
        for inbox, thread in zip(self._inboxes, self._threads, strict=False):
            inbox.put(None)
            thread.join()


class _Open(local):
    """The team whose block this thread is in: to begin with, itself alone.

    While what it does is done beside others' work it has no other.
    """

    def __init__(self) -> None:
        self.team, self.is_alone = Workers(), False


_OPEN = _Open()


def _serve(inbox: SimpleQueue[Callable[[], object] | None]) -> None:
    """Do what comes, until nothing does."""
    while (work := inbox.get()) is not None:
        work()


class _Call(Generic[_Item, _Result]):
    """One function on all items: a share for each thread, which takes of the others' what is left.

    Whoever is done reports how many items it has taken, so that the caller waits for those that
    are in work and for nobody who has not begun.
    """

    def __init__(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], count: int
    ) -> None:
        self._function, self._items = function, items
        self._left = [deque(range(share, len(items), count)) for share in range(count)]
        self._found: dict[int, _Result] = {}
        self._errors: list[tuple[int, BaseException]] = []
        self._taken: SimpleQueue[int] = SimpleQueue()

    def work(self, share: int) -> None:
        """Its own share from the beginning, then the others' from their ends."""
        taken = 0
        for index in self._take(share):
            taken += 1
            if self._errors:
                continue
            try:
                self._found[index] = self._function(self._items[index])
            except BaseException as error:
                self._errors.append((index, error))
        if taken:
            self._taken.put(taken)

    def _take(self, share: int) -> Iterator[int]:
        own = self._left[share]
        with suppress(IndexError):
            while True:
                yield own.popleft()
        for other in self._left[share + 1 :] + self._left[:share]:
            with suppress(IndexError):
                while True:
                    yield other.pop()

    def results(self) -> list[_Result]:
        """What all threads found, the caller's own among them; raises the first item's error."""
        try:
            self.work(0)
            missing = len(self._items)
            while missing:
                missing -= self._taken.get()
        except BaseException as error:  # an interrupt between two items stops the others, too
            self._errors.append((-1, error))
            raise
        if self._errors:
            raise min(self._errors, key=itemgetter(0))[1]
        return [self._found[index] for index in range(len(self._items))]


class _Later(Generic[_Result]):
    """What is done once, by whoever comes first."""

    def __init__(self, function: Callable[[], _Result]) -> None:
        self._left, self._found = deque([function]), SimpleQueue[Callable[[], _Result]]()

    def begin(self) -> None:
        """Do it without other threads, unless somebody has begun; what it raises is kept."""
        with suppress(IndexError):
            function = self._left.pop()
            try:
                with alone():
                    found = function()
                self._found.put(lambda: found)
            except BaseException as error:
                self._found.put(partial(_raise, error))

    def result(self) -> _Result:
        """What it gave, or raises what it raised; to be asked for once."""
        with suppress(IndexError):
            return self._left.pop()()
        return self._found.get()()


def _raise(error: BaseException) -> Any:
    raise error


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
