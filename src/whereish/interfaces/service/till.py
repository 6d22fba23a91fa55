"""Charges of a worker: names of orders, and waiting for their commit without blocking."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import uuid
from collections.abc import Sequence

from whereish.errors import BudgetExceeded, LedgerUnavailable, WhereishError
from whereish.interfaces.http.problems import Problem
from whereish.publish.ledger.group import ChargeQueue, Order, ReleaseReused, Settled
from whereish.publish.ledger.ledger import Charge, Ledger
from whereish.units import Epsilon

__all__ = ["Names", "Till"]

_HANDED_OVER_S = 0.1  # an answer has left the process for sure


class Names:
    """Names and fingerprints of orders: keyed hashes, since places could be searched for."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def release(self, token: str, key: str | None) -> str:
        """The order of this token's idempotency key; a new one without a key."""
        if key is None:
            return uuid.uuid4().hex
        return f"key:{self._hash(b'key', token.encode(), key.encode())}"

    def fingerprint(self, route: str, body: bytes) -> str:
        """What was asked for, for comparison only."""
        return self._hash(b"body", route.encode(), body)

    def _hash(self, *parts: bytes) -> str:
        code = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big"))
            code.update(part)
        return code.hexdigest()


class Till:
    """One worker's way to the ledger: group commits by a thread of its own."""

    def __init__(self, ledger: Ledger, *, keep_s: float) -> None:
        self.ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._queue: ChargeQueue[asyncio.Future[Settled]] = ChargeQueue(
            ledger, self._deliver, keep_s=keep_s
        )
        self._young: list[str] = []
        self._old: list[str] = []
        self._timer = self._loop.call_later(_HANDED_OVER_S, self._age)

    async def charge(
        self,
        subject: str,
        epsilon: Epsilon,
        times: int,
        *,
        release: str,
        fingerprint: str,
        answer: str,
    ) -> Settled:
        """Charge, and come back when that is durable: only then may the answer leave."""
        return await self.settle(
            Order((Charge(subject, epsilon, times),), release, fingerprint, answer)
        )

    async def settle(self, order: Order) -> Settled:
        """The order's outcome, as a problem where it is refused."""
        waiter: asyncio.Future[Settled] = self._loop.create_future()
        try:
            self._queue.submit(order, waiter)
            return await waiter
        except BudgetExceeded:
            raise Problem("budget-exceeded", "nothing was charged or released") from None
        except ReleaseReused:
            raise Problem("key-reused", "a new request needs a new key") from None
        except LedgerUnavailable:
            raise Problem("unavailable", "ask again with the same key", retry_after_s=1) from None

    def answered(self, release: str) -> None:
        """Note, in a moment, that this answer was handed over."""
        self._young.append(release)

    async def close(self) -> None:
        """Finish all that was submitted."""
        self._timer.cancel()
        for release in (*self._old, *self._young):
            self._queue.answered(release)
        await asyncio.to_thread(self._queue.close)

    def _age(self) -> None:
        for release in self._old:
            self._queue.answered(release)
        self._old, self._young = self._young, []
        self._timer = self._loop.call_later(_HANDED_OVER_S, self._age)

    def _deliver(
        self, settled: Sequence[tuple[asyncio.Future[Settled], Settled | WhereishError]]
    ) -> None:
        self._loop.call_soon_threadsafe(_resolve, settled)


def _resolve(
    settled: Sequence[tuple[asyncio.Future[Settled], Settled | WhereishError]],
) -> None:
    for waiter, outcome in settled:
        if waiter.done():
            continue  # who asked has gone
        if isinstance(outcome, Settled):
            waiter.set_result(outcome)
        else:
            waiter.set_exception(outcome)
