"""The ledger's tables in PostgreSQL: for many hosts (the `postgres` extra).

Read committed, with the rows of the charged subjects locked in the order of their
names: two charges of one subject follow each other, those of others run side by side.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whereish.errors import LedgerUnavailable, import_extra
from whereish.publish.ledger.ledger import TABLES

__all__ = ["PostgresDatabase"]

_SETUP = 7_394_201  # an advisory lock: CREATE TABLE IF NOT EXISTS may itself race


class PostgresDatabase:
    """One PostgreSQL database; every thread of every process has its own connection."""

    def __init__(self, address: str) -> None:
        self._psycopg = import_extra("psycopg", "postgres")
        self._address = address
        self._local = threading.local()
        with self.transaction(writing=True) as run:
            run.rows("SELECT pg_advisory_xact_lock(?)", [_SETUP])
            for table in TABLES:
                run.rows(table)
            run.rows("CREATE TABLE IF NOT EXISTS whereish_subjects (subject TEXT PRIMARY KEY)")

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["address"])  # type: ignore[misc]

    @contextlib.contextmanager
    def transaction(self, *, writing: bool) -> Iterator[_Run]:
        """A transaction at read committed, synced, whatever the server's defaults are.

        A snapshot taken before the wait for a lock would not see what the other charged.
        """
        try:
            connection = self._connection()
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.execute("SET LOCAL synchronous_commit = on")
                yield _Run(connection)
        except self._psycopg.Error as error:
            self._forget()
            raise LedgerUnavailable(
                f"the ledger's database cannot be used ({type(error).__name__})"
            ) from None

    @contextlib.contextmanager
    def held(self) -> Iterator[PostgresDatabase]:
        """Itself: every thread's connection is kept open, this one's until the end."""
        try:
            yield self
        finally:
            self._forget()

    def _forget(self) -> None:
        self._local.__dict__.pop("held", None)

    def _connection(self) -> Any:
        held: _Held | None = getattr(self._local, "held", None)
        if held is None or held.process != os.getpid() or held.connection.closed:
            held = _Held(self._psycopg.connect(self._address, autocommit=True))
            self._local.held = held
        return held.connection


_ANOTHERS: list[Any] = []


class _Held:
    """A connection that is closed when nobody needs it any more."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.process = connection, os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
        else:
            # After fork the socket is the parent's too; to close it would end its session.
            _ANOTHERS.append(self.connection)


class _Run:
    """Statements on one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s"), values)
        return list(cursor.fetchall()) if cursor.description is not None else []

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)

    def lock(self, subjects: Sequence[str]) -> None:
        names = list(subjects)
        self._connection.execute(
            "INSERT INTO whereish_subjects SELECT name FROM unnest(%s::text[]) AS t(name)"
            " ORDER BY name ON CONFLICT DO NOTHING",
            [names],
        )
        self._connection.execute(
            "SELECT 1 FROM whereish_subjects WHERE subject = ANY(%s) ORDER BY subject FOR UPDATE",
            [names],
        )
