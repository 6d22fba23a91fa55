"""Group commit: the charges of many requests in one transaction.

A durable commit waits for the disk, some milliseconds, whatever it holds.  One thread with one
connection commits all that queued during the last commit, and each order is answered only when
its commit has ended.

What leaves is drawn first and comes with its order: charge, answer and idempotency are one
commit.  An order is known by its release.  One that was charged before gets the answer that was
kept, and is not charged again; what was drawn for it the second time is dropped unseen.  A charge
is `pending` until its answer was handed over, so that after a crash the charges which may never
have been answered show as such.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Generic, TypeVar

from whereish.errors import BudgetExceeded, InvalidInput, LedgerUnavailable, WhereishError
from whereish.publish.ledger.ledger import (
    CHUNK,
    INSERT_ENTRY,
    PENDING,
    RELEASED,
    Charge,
    Database,
    Ledger,
    Transaction,
    gathered,
)

__all__ = [
    "ChargeQueue",
    "Order",
    "ReleaseReused",
    "Settled",
    "immediate",
    "kept_answers",
    "settle",
]

_MOST: Final = 1000  # orders in one transaction: no request waits for more than these
_IDLE_S: Final = 0.25  # how long answers that were handed over stay pending in a quiet ledger

Waiter = TypeVar("Waiter")


class ReleaseReused(InvalidInput):
    """A release is known for another order, or its answer is no longer kept."""


@dataclass(frozen=True)
class Order:
    """Charges that must be durable before `answer` may leave.

    Parameters
    ----------
    charges
        Who pays for what, all or nothing; none where an earlier order has paid.
    release
        The order's name: a second one of the same name is the same order again.
    fingerprint
        What was asked, in a form that tells nothing to a reader of the ledger: a keyed hash.
        The same name with another fingerprint is refused.
    answer
        What leaves, and is kept for repetitions; empty for orders that are never repeated.
    """

    charges: tuple[Charge, ...]
    release: str
    fingerprint: str = ""
    answer: str = ""

    def __post_init__(self) -> None:
        if self.charges:
            object.__setattr__(self, "charges", tuple(gathered(self.charges)))


@dataclass(frozen=True)
class Settled:
    """What may leave: this order's answer, or the first one's where it is a repetition."""

    release: str
    answer: str
    repeated: bool = False


class ChargeQueue(Generic[Waiter]):
    """Orders of many threads or tasks, settled together by one.

    Parameters
    ----------
    ledger
        Where they are charged.
    deliver
        Called by the writing thread with the waiters of one transaction and what became of
        each: a :class:`Settled`, or the error that it must raise.
    keep_s
        How long answers are kept for repetitions, at least.
    """

    def __init__(
        self,
        ledger: Ledger,
        deliver: Callable[[Sequence[tuple[Waiter, Settled | WhereishError]]], object],
        *,
        keep_s: float | None = None,
    ) -> None:
        self._ledger, self._deliver, self._keep_s = ledger, deliver, keep_s
        self._orders: collections.deque[tuple[Order, Waiter]] = collections.deque()
        self._left: collections.deque[str] = collections.deque()
        self._wake = threading.Condition()
        self._closing = False
        self._purge_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="whereish-ledger", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Orders that no transaction has taken yet."""
        return len(self._orders)

    def submit(self, order: Order, waiter: Waiter) -> None:
        """Queue an order; its waiter is told when it is durable."""
        with self._wake:
            if self._closing:
                raise LedgerUnavailable("the ledger is closing; ask again in a moment")
            self._orders.append((order, waiter))
            self._wake.notify()

    def answered(self, release: str) -> None:
        """Note that an answer was handed over: written with one of the next transactions."""
        self._left.append(release)

    def close(self) -> None:
        """Settle all that was submitted, then end."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        with self._ledger._database.held() as database:
            while True:
                with self._wake:
                    while not (self._orders or self._closing or self._left):
                        self._wake.wait(_IDLE_S)
                    if not self._orders and not self._closing:
                        self._wake.wait(_IDLE_S)
                    if self._closing and not self._orders and not self._left:
                        return
                    count = min(len(self._orders), _MOST)
                    taken = [self._orders.popleft() for _ in range(count)]
                left = [self._left.popleft() for _ in range(min(len(self._left), 4 * _MOST))]
                outcomes = self._settle(database, [order for order, _ in taken], left)
                waiters = (waiter for _, waiter in taken)
                if taken:
                    self._deliver(list(zip(waiters, outcomes, strict=True)))

    def _settle(
        self, database: Database, orders: Sequence[Order], left: Sequence[str]
    ) -> Sequence[Settled | WhereishError]:
        try:
            with database.transaction(writing=True) as run:
                outcomes = settle(self._ledger, run, orders)
                _confirm(run, left)
                self._purge(run)
            return outcomes
        except Exception as error:
            # Of the database's own errors the words may hold what was to be written.
            known = isinstance(error, LedgerUnavailable)
            why = str(error) if known else f"the ledger cannot be used ({type(error).__name__})"
        # A new error, whose traceback does not hold on to the connection.
        if not self._closing:
            self._left.extend(left)  # the next transaction tries again
        return [LedgerUnavailable(why)] * len(orders)

    def _purge(self, run: Transaction) -> None:
        now = self._ledger._clock()
        if self._keep_s is not None and now >= self._purge_at:
            run.rows("DELETE FROM whereish_answers WHERE at < ?", [now - self._keep_s])
            self._purge_at = now + self._keep_s / 24


def kept_answers(ledger: Ledger, releases: Sequence[str]) -> dict[str, str]:
    """The answers that are kept of these releases."""
    with ledger._database.transaction(writing=False) as run:
        return {name: answer for name, (_, answer) in _kept(run, releases).items()}


def immediate(
    settled: Sequence[tuple[Future[Settled], Settled | WhereishError]],
) -> None:
    """Deliver to futures of threads."""
    for future, outcome in settled:
        if isinstance(outcome, Settled):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)


def settle(
    ledger: Ledger, run: Transaction, orders: Sequence[Order]
) -> list[Settled | WhereishError]:
    """What becomes of each order, within a transaction that must be committed first.

    Subjects are locked in the order of their names, then releases are claimed in the order of
    theirs: two transactions that share some of either wait for each other, never in a circle.
    """
    if not orders:
        return []
    first: dict[str, Order] = {}
    for order in orders:
        first.setdefault(order.release, order)
    run.lock(sorted({charge.subject for order in first.values() for charge in order.charges}))
    now = ledger._clock()
    claimed = _claim(run, sorted(first), now)
    kept = _kept(run, [name for name in sorted(first) if name not in claimed])
    outcomes = _charge(ledger, run, [o for name, o in first.items() if name in claimed], now)
    return [_outcome(order, first[order.release], outcomes, kept) for order in orders]


def _claim(run: Transaction, releases: Sequence[str], now: float) -> set[str]:
    """Write the releases that nobody has charged before; a rival's commit is waited for."""
    claimed: set[str] = set()
    for chunk in _chunks(releases):
        places = ", ".join(["(?, ?, ?)"] * len(chunk))
        found = run.rows(
            f"INSERT INTO whereish_releases (release, at, state) VALUES {places}"
            " ON CONFLICT DO NOTHING RETURNING release",
            [value for name in chunk for value in (name, now, PENDING)],
        )
        claimed.update(name for (name,) in found)
    return claimed


def _kept(run: Transaction, releases: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Fingerprint and answer of orders that were settled before."""
    kept: dict[str, tuple[str, str]] = {}
    for chunk in _chunks(releases):
        marks = ", ".join("?" * len(chunk))
        found = run.rows(
            f"SELECT release, fingerprint, answer FROM whereish_answers WHERE release IN ({marks})",
            chunk,
        )
        kept.update({release: (fingerprint, answer) for release, fingerprint, answer in found})
    return kept


def _charge(
    ledger: Ledger, run: Transaction, orders: Sequence[Order], now: float
) -> dict[str, Settled | WhereishError]:
    """Check and charge one after the other, as if each had a transaction of its own."""
    outcomes: dict[str, Settled | WhereishError] = {}
    lines: list[tuple[Any, ...]] = []
    answers: list[tuple[Any, ...]] = []
    refused: list[str] = []
    subjects = [charge.subject for order in orders for charge in order.charges]
    spent = ledger._spent(run, subjects, now)
    for order in orders:
        more: dict[str, Fraction] = {}
        for charge in order.charges:
            level = Fraction(charge.epsilon.per_m) * charge.times
            more[charge.subject] = more.get(charge.subject, Fraction(0)) + level
        total = {who: spent.get(who, Fraction(0)) + level for who, level in more.items()}
        lacking = sum(not ledger.budget.holds(level) for level in total.values())
        if lacking:
            refused.append(order.release)
            outcomes[order.release] = ledger.refusal(lacking, len(total))
            continue
        spent.update(total)
        lines += [(order.release, c.subject, now, c.epsilon.per_m, c.times) for c in order.charges]
        if order.answer:
            answers.append((order.release, now, order.fingerprint, order.answer))
        outcomes[order.release] = Settled(order.release, order.answer)
    for chunk in _chunks(refused):
        marks = ", ".join("?" * len(chunk))
        run.rows(f"DELETE FROM whereish_releases WHERE release IN ({marks})", chunk)
    run.many(INSERT_ENTRY, lines)
    run.many(
        "INSERT INTO whereish_answers (release, at, fingerprint, answer) VALUES (?, ?, ?, ?)",
        answers,
    )
    return outcomes


def _outcome(
    order: Order,
    first: Order,
    outcomes: dict[str, Settled | WhereishError],
    kept: dict[str, tuple[str, str]],
) -> Settled | WhereishError:
    """Of one order, which may repeat another of this transaction or of an earlier one."""
    settled = outcomes.get(order.release)
    if settled is not None and order is first:
        return settled
    if isinstance(settled, BudgetExceeded):
        return settled
    if settled is not None:
        known = (first.fingerprint, first.answer) if first.answer else None
    else:
        known = kept.get(order.release)
    if known is None:
        return ReleaseReused("this release is known already, and its answer is not kept")
    fingerprint, answer = known
    if fingerprint != order.fingerprint:
        return ReleaseReused("this release is known already, for another order")
    return Settled(order.release, answer, repeated=True)


def _confirm(run: Transaction, releases: Sequence[str]) -> None:
    # One by one in the order of their names, so that two transactions cannot wait in a circle.
    run.many(
        "UPDATE whereish_releases SET state = ? WHERE state = ? AND release = ?",
        [(RELEASED, PENDING, release) for release in sorted(set(releases))],
    )


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[low : low + CHUNK] for low in range(0, len(names), CHUNK))
