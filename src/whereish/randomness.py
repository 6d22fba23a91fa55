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
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from whereish.errors import InvalidInput

__all__ = ["Randomness", "SecureRandomness", "SeededRandomness", "secure"]

_KEY_LIFE = 2**36  # bytes drawn from one key, far below the 2^68 where CTR would repeat


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
        self._lock = threading.Lock()
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


def _after_fork() -> None:
    # A lock held by another thread at the moment of fork would never be released in the child.
    _PROCESS_WIDE._lock = threading.Lock()
    _PROCESS_WIDE._keystream = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
