"""How much one token may ask for, and one worker may have under way."""

from __future__ import annotations

import time
from collections.abc import Callable

from whereish.interfaces.service.problems import Problem

__all__ = ["Rates"]


class Rates:
    """A bucket for each token: `burst` requests at once, `rate_per_s` after that.

    Buckets are a worker's own; several workers together let through so many times more.
    """

    def __init__(
        self, rate_per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate_per_s, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token: str) -> None:
        """Take one request, or say when there is one again."""
        now = self._clock()
        left, since = self._buckets.get(token, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            self._buckets[token] = left, now
            raise Problem("too-many-requests", retry_after_s=(1 - left) / self._rate)
        self._buckets[token] = left - 1, now
