"""Random bits: secure ones for the world, reproducible ones for tests.

Every call of :class:`SecureRandomness`, and every 2^18 bytes of a long one, hashes a secret
chain and 32 fresh bytes of the operating system: into the words themselves where they are
few, else into the key of an AES-256-CTR keystream.  :class:`SeededRandomness` keys one
stream from a seed; what it touches is marked reproducible, and publishing refuses marked
noise.  There is no default seed and no global generator.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from whereish.errors import InvalidInput

__all__ = [
    "ForkSafeLock",
    "Randomness",
    "SecureRandomness",
    "SeededRandomness",
    "draws_of_bytes",
    "secure",
]

_LOCKS: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()
_SOURCES: weakref.WeakSet[SecureRandomness] = weakref.WeakSet()
_BLOCK = 2**15  # words drawn from one key
_FEW = 4  # words that one hash gives, beside the next chain value
_STATE = struct.Struct("<32s32sqq")  # chain, fresh bytes, two clocks


class ForkSafeLock:
    """A lock that a forked child finds open.

    Another thread may hold a lock at the moment of fork; the child does not have that
    thread, so nobody would ever open it there.
    """

    def __init__(self) -> None:
        self.held = threading.Lock()
        """The lock itself, for what runs often; a fork puts a new one here."""
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self.held.acquire()

    def __exit__(self, *_: object) -> None:
        self.held.release()

    def renew(self) -> None:
        """Forget whoever holds it."""
        self.held = threading.Lock()


def _renew_after_fork() -> None:
    for lock in _LOCKS:
        lock.renew()
    for source in _SOURCES:
        source.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


@runtime_checkable
class Randomness(Protocol):
    """A source of independent, uniform 64-bit words."""

    @property
    def reproducible(self) -> bool:
        """Whether someone else could draw the same words again."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words."""


class _Keystream:
    """AES-256-CTR keystream of one key."""

    def __init__(self, key: bytes) -> None:
        # A key is used for one stream only, so the initial counter may be zero.
        self._stream: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def fill(self, zeros: NDArray[np.uint64]) -> None:
        """Write the next words over `zeros`."""
        if zeros.size:
            self._stream.update_into(zeros.data.cast("B"), zeros.data.cast("B"))

    def words(self, count: int) -> NDArray[np.uint64]:
        out = np.zeros(count, np.uint64)
        self.fill(out)
        return out


class SecureRandomness:
    """Words that nobody can predict, from the operating system's entropy.

    Safe to share between threads, across ``fork``, and across copies of the whole process
    (a virtual machine restored twice from one snapshot).  For every block of at most 2^18
    bytes, BLAKE2b-512 of a secret chain value, 32 fresh bytes of the operating system and its
    clocks gives the next chain value, and 32 bytes that are the key of a keystream or, in a
    call for up to four words, these words.  Two copies of one state part at their next call,
    whatever their process ids are: by the fresh bytes or, where the copy includes the
    kernel's own generator, by the clocks.  No word is kept from one call to the next, since
    both copies would use it.  ``fork`` renews the chain, too, so that a child shares nothing
    with its parent.

    >>> import whereish as wh
    >>> words = wh.SecureRandomness().words(2)
    >>> words.dtype, bool(words[0] != words[1])
    (dtype('uint64'), True)
    """

    reproducible = False

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._chain = os.urandom(32)
        _SOURCES.add(self)

    def renew(self) -> None:
        """Start a new chain, which follows from nothing in memory."""
        self._chain = os.urandom(32)

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words."""
        if 0 < count <= _FEW:
            return np.frombuffer(bytearray(self._fresh()), np.uint64, count)
        out = np.zeros(count, np.uint64)
        for low in range(0, count, _BLOCK):
            _Keystream(self._fresh()).fill(out[low : low + _BLOCK])
        return out

    def _fresh(self) -> bytes:
        """32 bytes that follow from the chain, and from what no copy of it has."""
        with self._lock.held:
            both = _step(self._chain)
            self._chain = both[:32]
        return both[32:]


def _step(chain: bytes) -> bytes:
    """The next chain value, then 32 bytes to use."""
    clocks = time.time_ns(), time.perf_counter_ns()
    return hashlib.blake2b(_STATE.pack(chain, os.urandom(32), *clocks)).digest()


class SeededRandomness:
    """Words that follow from a seed: for tests, never for release.

    >>> import whereish as wh
    >>> noise = wh.PlanarLaplace("0.01/m")
    >>> a, b = (noise.report([[0, 0]], rng=wh.SeededRandomness(7)) for _ in range(2))
    >>> a.coordinates.tolist() == b.coordinates.tolist(), a.reproducible
    (True, True)
    """

    reproducible = True

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise InvalidInput(f"seed must be an integer; got {seed!r}")
        self._keystream = _Keystream(hashlib.sha256(f"whereish test seed {seed}".encode()).digest())

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words of this seed."""
        return self._keystream.words(count)


_PROCESS_WIDE = SecureRandomness()


def secure(rng: Randomness | None = None) -> Randomness:
    """`rng` itself, or the process's secure source for ``None``."""
    if rng is None:
        return _PROCESS_WIDE
    if not isinstance(rng, Randomness):
        raise InvalidInput(
            "rng must be None (secure) or a whereish.SeededRandomness (tests only);"
            f" got {type(rng).__name__}"
        )
    return rng


def draws_of_bytes(source: Randomness, count: int) -> Callable[[], bytes]:
    """A function that draws `count` words, as their bytes, for one thread alone.

    A seeded source gives the words that ``words(count)`` would.  A secure one gives as good ones
    of a chain of their own, which no lock guards.
    """
    if count != _FEW or type(source) is not SecureRandomness:
        return lambda: source.words(count).tobytes()
    own = SecureRandomness()

    def draw() -> bytes:
        both = _step(own._chain)
        own._chain = both[:32]
        return both[32:]

    return draw
