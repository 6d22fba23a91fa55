"""The ledger: what has been released about whom, and how much may still be.

A budget is a metric budget: a cap on the sum of the levels (per metre) of all releases
about one subject within a time window.  n reports at eps keep n * eps together, so
entries are counted as `times` x `epsilon`; sums are exact rationals, never doubles
that drift.  The cap itself is read with one part in 10^12 to spare, so that n charges
of cap/n fit whatever the last bit of cap/n is.

A refund adds the negative of what was charged, and is possible only while a release is
pending: charged, and not yet confirmed to have left.  Lines are never changed, save that
a pending charge which is repeated is dated anew.

Check and charge are one transaction: `BEGIN IMMEDIATE` in SQLite, locked rows of the
subjects in PostgreSQL.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Protocol

from whereish.errors import BudgetExceeded, InvalidInput
from whereish.results import JsonResult
from whereish.units import Epsilon, at_least_one

__all__ = ["Budget", "Charge", "Database", "Entry", "Ledger", "Statement"]

PENDING: Final = "pending"
RELEASED: Final = "released"
REFUNDED: Final = "refunded"

_SPARE = Fraction(1, 10**12)
CHUNK = 500


@lru_cache(maxsize=64)
def _with_spare(cap_per_m: float) -> Fraction:
    return Fraction(cap_per_m) * (1 + _SPARE)


@dataclass(frozen=True)
class Budget(JsonResult):
    """At most `cap` per subject, within every `window_s` seconds (None: for ever)."""

    cap: Epsilon
    window_s: float | None = None

    def __post_init__(self) -> None:
        if self.window_s is not None and not self.window_s > 0:
            raise InvalidInput(f"a budget's window must last > 0 seconds; got {self.window_s:g}")

    def holds(self, spent: Fraction) -> bool:
        """Whether a sum of levels stays within the cap."""
        return spent <= _with_spare(self.cap.per_m)

    def __str__(self) -> str:
        span = "" if self.window_s is None else f" in any {self.window_s:g} s"
        return f"{self.cap} per subject{span}"


@dataclass(frozen=True)
class Charge(JsonResult):
    """`times` reports at `epsilon` about one subject."""

    subject: str
    epsilon: Epsilon
    times: int = 1

    def __post_init__(self) -> None:
        count = at_least_one(self.times, name="times", meaning="how many reports are charged")
        object.__setattr__(self, "times", count)


@dataclass(frozen=True)
class Entry(JsonResult):
    """A line of the ledger; `times` is negative for a refund."""

    release: str
    at: float
    epsilon: Epsilon
    times: int
    state: str


@dataclass(frozen=True)
class Statement:
    """All about one subject: the lines, and what they come to within the window, per metre."""

    subject: str
    budget: Budget
    entries: tuple[Entry, ...] = field(repr=False)
    spent_per_m: float
    left_per_m: float

    def to_json(self) -> dict[str, Any]:
        """A plain description."""
        return {
            "subject": self.subject,
            "cap_per_m": self.budget.cap.per_m,
            "window_s": self.budget.window_s,
            "spent_per_m": self.spent_per_m,
            "left_per_m": self.left_per_m,
            "entries": [
                {
                    "release": entry.release,
                    "at": entry.at,
                    "epsilon_per_m": entry.epsilon.per_m,
                    "times": entry.times,
                    "state": entry.state,
                }
                for entry in self.entries
            ],
        }


class Transaction(Protocol):
    """Statements of one transaction; parameters are question marks."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def lock(self, subjects: Sequence[str]) -> None:
        """Keep all other charges of these subjects out until the transaction ends."""


class Database(Protocol):
    """Where the ledger's tables are."""

    def transaction(self, *, writing: bool) -> AbstractContextManager[Transaction]:
        """All or nothing; durable when the block has ended."""

    def held(self) -> AbstractContextManager[Database]:
        """The same over one connection, kept open for the thread that asks."""


class Ledger:
    """Budgets of subjects, checked and charged in one step.

    Parameters
    ----------
    database
        Where the lines are kept; :func:`open_ledger` chooses by an address.
    budget
        The cap, needed when the ledger is new; an existing ledger keeps its own, and
        refuses another.
    clock
        Seconds since 1970; for tests.
    """

    def __init__(
        self,
        database: Database,
        budget: Budget | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._clock = database, clock
        with database.transaction(writing=True) as run:
            if budget is not None:
                run.many(
                    "INSERT INTO whereish_budget VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    [(1, budget.cap.per_m, budget.window_s)],
                )
            known = run.rows("SELECT cap_per_m, window_s FROM whereish_budget")
            run.many(
                "INSERT INTO whereish_identity VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(1, uuid.uuid4().hex)],
            )
            ((identity,),) = run.rows("SELECT identity FROM whereish_identity")
        if not known:
            raise InvalidInput("a new ledger needs a budget: the cap of each subject")
        kept = Budget(Epsilon.per_metre(known[0][0]), known[0][1])
        if budget is not None and budget != kept:
            raise InvalidInput(f"this ledger's budget is {kept}; it cannot be {budget}")
        self.budget: Final[Budget] = kept
        self.identity: Final[str] = identity
        """Tells this ledger from all others, wherever its database is moved."""

    def allows(self, subject: str, epsilon: Epsilon | str, *, times: int = 1) -> bool:
        """Whether a charge would be accepted now; only :meth:`charge` makes sure of it."""
        wanted = Charge(subject, Epsilon.of(epsilon), times)
        with self._database.transaction(writing=False) as run:
            return not self._lacking(run, [wanted], self._clock())

    def charge(
        self, charges: Iterable[Charge], *, release: str | None = None, pending: bool = False
    ) -> str:
        """Charge all or nothing; returns the release's id.

        A job that resumes may repeat the call with the same release: what is pending is
        not charged again, but dated anew, since it leaves now and must fit into the
        window of now.

        Raises
        ------
        BudgetExceeded
            If any subject has too little left; then nobody is charged.
        InvalidInput
            If the release is known for other charges, or was refunded.
        """
        release = release or uuid.uuid4().hex
        wanted = gathered(charges)
        state = PENDING if pending else RELEASED
        with self._database.transaction(writing=True) as run:
            run.lock(sorted({charge.subject for charge in wanted}))
            now = self._clock()
            known = self._known(run, release, wanted)
            if known == RELEASED:
                return release
            if known == PENDING:
                run.rows("DELETE FROM whereish_entries WHERE release = ?", [release])
                run.rows("DELETE FROM whereish_releases WHERE release = ?", [release])
            lacking = self._lacking(run, wanted, now)
            if lacking:
                raise self.refusal(lacking, len({c.subject for c in wanted}))
            run.many(
                "INSERT INTO whereish_releases (release, at, state) VALUES (?, ?, ?)",
                [(release, now, state)],
            )
            run.many(
                INSERT_ENTRY, ((release, c.subject, now, c.epsilon.per_m, c.times) for c in wanted)
            )
        return release

    def refusal(self, lacking: int, of: int) -> BudgetExceeded:
        """The error for a release that so many subjects cannot pay."""
        return BudgetExceeded(
            f"{lacking} of {of} subjects have too little left of {self.budget}; nothing was"
            " charged or released"
        )

    @staticmethod
    def _known(run: Transaction, release: str, wanted: Sequence[Charge]) -> str | None:
        """The state of a release that was charged before, for these very charges."""
        found = run.rows("SELECT state FROM whereish_releases WHERE release = ?", [release])
        if not found:
            return None
        lines = run.rows(
            "SELECT subject, epsilon_per_m, times FROM whereish_entries WHERE release = ?",
            [release],
        )
        asked = {(c.subject, c.epsilon.per_m, c.times) for c in wanted}
        if found[0][0] == REFUNDED or {(who, eps, int(n)) for who, eps, n in lines} != asked:
            raise InvalidInput(
                f"release {release} is known already, refunded or for other charges: a new release"
                " needs a new id"
            )
        return str(found[0][0])

    def state(self, release: str) -> str | None:
        """pending, released or refunded; None if it was never charged."""
        with self._database.transaction(writing=False) as run:
            found = run.rows("SELECT state FROM whereish_releases WHERE release = ?", [release])
        return str(found[0][0]) if found else None

    def confirm(self, release: str) -> None:
        """Note that a pending release has left: from now on it cannot be refunded."""
        self._move(release, RELEASED, from_states=(PENDING, RELEASED))

    def refund(self, release: str) -> None:
        """Take a pending release back, which the caller has made sure will never leave.

        Raises
        ------
        InvalidInput
            If the release has left, was refunded before, or was never charged.
        """
        with self._database.transaction(writing=True) as run:
            self._change(run, release, REFUNDED, (PENDING,))
            lines = run.rows(
                "SELECT subject, at, epsilon_per_m, times FROM whereish_entries WHERE release = ?",
                [release],
            )
            # At the time of the charge, so that both leave a sliding window together.
            run.many(
                INSERT_ENTRY, [(release, who, at, eps, -times) for who, at, eps, times in lines]
            )

    def statement(self, subject: str) -> Statement:
        """All lines about a subject."""
        with self._database.transaction(writing=False) as run:
            lines = run.rows(
                "SELECT e.release, e.at, e.epsilon_per_m, e.times, r.state"
                " FROM whereish_entries e JOIN whereish_releases r ON r.release = e.release"
                " WHERE e.subject = ? ORDER BY e.at, e.release",
                [subject],
            )
            spent = self._spent(run, [subject], self._clock()).get(subject, Fraction(0))
        entries = tuple(
            Entry(release, float(at), Epsilon.per_metre(eps), int(times), state)
            for release, at, eps, times, state in lines
        )
        left = max(Fraction(self.budget.cap.per_m) - spent, Fraction(0))
        return Statement(subject, self.budget, entries, float(spent), float(left))

    def _lacking(self, run: Transaction, wanted: Sequence[Charge], now: float) -> int:
        """How many subjects would exceed the cap."""
        total = self._spent(run, [charge.subject for charge in wanted], now)
        for charge in wanted:
            more = Fraction(charge.epsilon.per_m) * charge.times
            total[charge.subject] = total.get(charge.subject, Fraction(0)) + more
        return sum(not self.budget.holds(spent) for spent in total.values())

    def _spent(self, run: Transaction, subjects: Sequence[str], now: float) -> dict[str, Fraction]:
        since = now - self.budget.window_s if self.budget.window_s is not None else None
        names = sorted(set(subjects))
        spent: dict[str, Fraction] = {}
        for low in range(0, len(names), CHUNK):
            chunk = names[low : low + CHUNK]
            sql = (
                "SELECT subject, epsilon_per_m, SUM(times) FROM whereish_entries"
                f" WHERE subject IN ({', '.join('?' * len(chunk))})"
            )
            values: list[Any] = list(chunk)
            if since is not None:
                sql, values = sql + " AND at > ?", [*values, since]
            for who, eps, times in run.rows(sql + " GROUP BY subject, epsilon_per_m", values):
                spent[who] = spent.get(who, Fraction(0)) + Fraction(eps) * Fraction(times)
        return spent

    def _move(self, release: str, to: str, *, from_states: tuple[str, ...]) -> None:
        with self._database.transaction(writing=True) as run:
            self._change(run, release, to, from_states)

    @staticmethod
    def _change(run: Transaction, release: str, to: str, from_states: tuple[str, ...]) -> None:
        marks = ", ".join("?" * len(from_states))
        changed = run.rows(
            f"UPDATE whereish_releases SET state = ? WHERE release = ? AND state IN ({marks})"
            " RETURNING release",
            [to, release, *from_states],
        )
        if not changed:
            found = run.rows("SELECT state FROM whereish_releases WHERE release = ?", [release])
            now = f"is already {found[0][0]}" if found else "was never charged"
            raise InvalidInput(
                f"release {release} must be {' or '.join(from_states)} to become {to}: it {now}"
            )


INSERT_ENTRY = (
    "INSERT INTO whereish_entries (release, subject, at, epsilon_per_m, times)"
    " VALUES (?, ?, ?, ?, ?)"
)

TABLES = (
    "CREATE TABLE IF NOT EXISTS whereish_budget (id INTEGER PRIMARY KEY CHECK (id = 1),"
    " cap_per_m DOUBLE PRECISION NOT NULL, window_s DOUBLE PRECISION)",
    "CREATE TABLE IF NOT EXISTS whereish_identity (id INTEGER PRIMARY KEY CHECK (id = 1),"
    " identity TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS whereish_releases (release TEXT PRIMARY KEY,"
    " at DOUBLE PRECISION NOT NULL, state TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS whereish_entries (release TEXT NOT NULL, subject TEXT NOT NULL,"
    " at DOUBLE PRECISION NOT NULL, epsilon_per_m DOUBLE PRECISION NOT NULL,"
    " times BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS whereish_entries_of"
    " ON whereish_entries (subject, at, epsilon_per_m, times)",
    "CREATE INDEX IF NOT EXISTS whereish_entries_in ON whereish_entries (release)",
    "CREATE TABLE IF NOT EXISTS whereish_answers (release TEXT PRIMARY KEY,"
    " at DOUBLE PRECISION NOT NULL, fingerprint TEXT NOT NULL, answer TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS whereish_answers_at ON whereish_answers (at)",
)


def gathered(charges: Iterable[Charge]) -> list[Charge]:
    """One charge for each subject and level."""
    times: dict[tuple[str, Epsilon], int] = {}
    for charge in charges:
        key = charge.subject, charge.epsilon
        times[key] = times.get(key, 0) + charge.times
    if not times:
        raise InvalidInput("a release must charge at least one subject; got none")
    return [Charge(subject, epsilon, count) for (subject, epsilon), count in times.items()]


def charges_of(times: Mapping[tuple[str, float], int]) -> list[Charge]:
    """Charges from counts by subject and level per metre."""
    return [Charge(who, Epsilon.per_metre(eps), count) for (who, eps), count in times.items()]
