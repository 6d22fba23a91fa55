"""Random bits: secure ones for the world, reproducible ones for tests.

Bits come as an AES-256-CTR keystream.  :class:`SecureRandomness` keys it from
the operating system and takes a new key in every process (also after ``fork``)
and after every 2^36 bytes.  :class:`SeededRandomness` keys it from a seed; what
it touches is marked reproducible, and publishing refuses marked noise.
There is no default seed and no global generator.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from whereish.errors import InvalidInput

__all__ = ["ForkSafeLock", "Randomness", "SecureRandomness", "SeededRandomness", "secure"]

_LOCKS: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()
_KEY_LIFE = 2**36  # bytes drawn from one key, far below the 2^68 where CTR would repeat


class ForkSafeLock:
    """A lock that a forked child finds open.

    Another thread may hold a lock at the moment of fork; the child does not have that
    thread, so nobody would ever open it there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Forget whoever holds it."""
        self._lock = threading.Lock()


def _renew_locks() -> None:
    for lock in _LOCKS:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


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
        self.drawn = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        if count == 0:
            return np.empty(0, np.uint64)
        out = np.zeros(count, np.uint64)
        self._stream.update_into(out.data.cast("B"), out.data.cast("B"))
        self.drawn += 8 * count
        return out


class SecureRandomness:
    """Words that nobody can predict, from the operating system's entropy.

    Safe to share between threads and across ``fork``.
    """

    reproducible = False

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._process = -1
        self._keystream: _Keystream | None = None

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words."""
        with self._lock:
            stale = self._process != os.getpid()
            if self._keystream is None or stale or self._keystream.drawn >= _KEY_LIFE:
                self._keystream = _Keystream(os.urandom(32))
                self._process = os.getpid()
            return self._keystream.words(count)


class SeededRandomness:
    """Words that follow from a seed: for tests, never for release."""

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
