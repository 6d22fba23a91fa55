"""Threads that work through many short calls without the interpreter in between.

A call of `threads.Workers.map` takes some fifty microseconds to say: the others are woken, and all
of them wait for the interpreter's lock before and after each item.  A Newton step has a dozen of
such calls, of some hundred microseconds each.  So a whole section of them is one kernel, which all
threads are in at the same time: one *leads*, and where items are to be shared it calls them out
(`first_item`, `item_after`, `wait_for_all`); the others take some (`next_item`, `finish`).

As with `Workers.map`, the leader waits for those who have taken something and for nobody else: a
thread that the machine does not run holds up nothing.  It begins at the one end, the others at the
other, so that what a thread has in its cache is there at the next call.  Who finds nothing to do
looks again for some microseconds, then sleeps until the next call.  Which thread takes an item
changes nothing: items write to memory of their own, and sums over them are made by the leader, in
their order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from whereish.arrays import IntArray
from whereish.compiled import kernel, lazy_intrinsic
from whereish.threads import Workers

__all__ = ["Crew", "finish", "first_item", "in_crew", "item_after", "next_item", "wait_for_all"]

_Result = TypeVar("_Result")
_HOME = "whereish.compiled.atomics"
acquire: Callable[[int, int], None] = lazy_intrinsic(_HOME, "acquire")
release: Callable[[int, int], None] = lazy_intrinsic(_HOME, "release")
load_word: Callable[[IntArray, int], int] = lazy_intrinsic(_HOME, "load_word")
store_word: Callable[[IntArray, int, int], None] = lazy_intrinsic(_HOME, "store_word")
swap_word: Callable[[IntArray, int, int], int] = lazy_intrinsic(_HOME, "swap_word")
add_word: Callable[[IntArray, int, int], int] = lazy_intrinsic(_HOME, "add_word")
set_if: Callable[[IntArray, int, int, int], bool] = lazy_intrinsic(_HOME, "set_if")

_LINE = 16
"""Words between two that threads change: they share no line of a cache."""
_CALL, _DONE, _BROKEN, _ASLEEP = (line * _LINE for line in range(4))
"""What is called out; how many of its items are done; whether the others left; who sleeps."""
_LOW, _KIND, _NUMBER, _OVER = 16, 32, 40, 62
"""Bits of a call from which on its first item left, its kind, its number, and the end are written;
below them all, one more than its last item left."""
_FIELD, _KINDS = 0xFFFF, 0xFF
_LOOKS = 20_000
"""Some twenty microseconds: what waking up takes."""


class Crew(NamedTuple):
    """What threads of a section share, as the kernels read it.

    Attributes
    ----------
    words : the call, and how far it is.
    locks : addresses of a lock for every thread, the leader's first, on which it sleeps.
    acquire, release : addresses of the functions that take a lock and let it go.
    """

    words: IntArray
    locks: IntArray
    acquire: int
    release: int


class _Locks:
    """As many locks, taken, as there are threads; freed when nobody knows them any more."""

    def __init__(self, count: int) -> None:
        make, take = _python("PyThread_allocate_lock"), _python("PyThread_acquire_lock")
        self.addresses = np.array([make() for _ in range(count)], np.int64)
        if not self.addresses.all():
            raise MemoryError("the system gives no more locks")
        for one in self.addresses:
            take(int(one), 1)

    def __del__(self) -> None:
        for one in self.addresses:
            _python("PyThread_free_lock")(int(one))


@cache
def _python(name: str) -> Callable[..., int]:
    signatures: dict[str, list[Any]] = {
        "PyThread_allocate_lock": [ctypes.c_void_p],
        "PyThread_acquire_lock": [ctypes.c_int, ctypes.c_void_p, ctypes.c_int],
        "PyThread_free_lock": [None, ctypes.c_void_p],
    }
    return ctypes.CFUNCTYPE(*signatures[name])(_address(name))


@cache
def _address(name: str) -> int:
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


def in_crew(team: Workers, section: Callable[[Crew, int], _Result]) -> _Result:
    """What ``section(crew, 0)`` gives here, beside ``section(crew, at)`` in the other threads.

    The section is a kernel in which who is 0 leads, and the others follow until that is over; an
    error of one of them is raised here.
    """
    locks = _Locks(team.count if team.count > 1 else 0)
    words = np.zeros(_ASLEEP + _LINE * team.count, np.int64)
    functions = _address("PyThread_acquire_lock"), _address("PyThread_release_lock")
    crew = Crew(words, locks.addresses, *functions)
    errors: list[BaseException] = []

    def follow(at: int, _keep: _Locks = locks) -> None:
        try:
            section(crew, at)
        except BaseException as error:
            errors.append(error)
            dismiss(crew)

    team.beside(follow)
    try:
        found = section(crew, 0)
    finally:
        dismiss(crew)
    if errors:
        raise errors[0]
    return found


@kernel
def call_out(crew: Crew, kind: int, count: int) -> None:
    """Let everybody take items 0 to count - 1 of some kind; those of the last call are done."""
    words = crew.words
    number = (load_word(words, _CALL) >> _NUMBER) + 1
    store_word(words, _DONE, 0)
    store_word(words, _CALL, (number << _NUMBER) | (kind << _KIND) | count)
    wake_others(crew)


@kernel
def wake_others(crew: Crew) -> None:
    """Wake those who sleep, but the leader."""
    for at in range(1, crew.locks.size):
        if swap_word(crew.words, _ASLEEP + _LINE * at, 0) == 1:
            release(crew.release, crew.locks[at])


@kernel
def first_item(crew: Crew, kind: int, count: int) -> int:
    """Call out items, and take the first for the leader; -1 if there is none."""
    if crew.locks.size == 0:
        return 0 if count else -1
    call_out(crew, kind, count)
    return own_item(crew)


@kernel
def item_after(crew: Crew, item: int, count: int) -> int:
    """The leader's next item after one that it has done, or -1."""
    if crew.locks.size == 0:
        return item + 1 if item + 1 < count else -1
    finish(crew)
    return own_item(crew)


@kernel
def own_item(crew: Crew) -> int:
    """An item of the call for the leader, or -1."""
    while True:
        call = load_word(crew.words, _CALL)
        low = (call >> _LOW) & _FIELD
        if low >= call & _FIELD:
            return -1
        if set_if(crew.words, _CALL, call, call + (1 << _LOW)):
            return low


@kernel
def next_item(crew: Crew, at: int) -> tuple[int, int]:
    """Kind and number of another thread's next item, as soon as there is one; -1 at the end."""
    words, asleep, looks = crew.words, _ASLEEP + _LINE * at, 0
    while True:
        call = load_word(words, _CALL)
        high = call & _FIELD
        if (call >> _OVER) & 1:
            return -1, -1
        if (call >> _LOW) & _FIELD < high:
            if set_if(words, _CALL, call, call - 1):
                return (call >> _KIND) & _KINDS, high - 1
            continue
        looks += 1
        if looks < _LOOKS:
            continue
        looks = 0
        store_word(words, asleep, 1)
        # Whoever calls out after this sees it; a call before it is seen here.
        if load_word(words, _CALL) == call or swap_word(words, asleep, 0) == 0:
            acquire(crew.acquire, crew.locks[at])


@kernel
def finish(crew: Crew) -> None:
    """Say that an item is done."""
    add_word(crew.words, _DONE, 1)
    if swap_word(crew.words, _ASLEEP, 0) == 1:
        release(crew.release, crew.locks[0])


@kernel
def wait_for_all(crew: Crew, count: int) -> bool:
    """Wait until all items of the call are done; False if a thread failed."""
    words, looks = crew.words, 0
    if crew.locks.size == 0:
        return True
    while load_word(words, _DONE) < count:
        if load_word(words, _BROKEN):
            return False
        looks += 1
        if looks < _LOOKS:
            continue
        looks = 0
        store_word(words, _ASLEEP, 1)
        waits = load_word(words, _DONE) < count and load_word(words, _BROKEN) == 0
        if waits or swap_word(words, _ASLEEP, 0) == 0:
            acquire(crew.acquire, crew.locks[0])
    return True


@kernel
def dismiss(crew: Crew) -> None:
    """End the section for all: it is over, or an item will not be done."""
    store_word(crew.words, _BROKEN, 1)
    store_word(crew.words, _CALL, 1 << _OVER)
    wake_others(crew)
    if crew.locks.size and swap_word(crew.words, _ASLEEP, 0) == 1:
        release(crew.release, crew.locks[0])
