"""The ledger's tables in an SQLite file: the default, for one host.

Write-ahead log, synchronous = FULL: a charge that has returned survives a power cut.
Every transaction opens its own connection, so that threads and forks share nothing; only
:meth:`SqliteDatabase.held` keeps one, for a thread that writes all the time.

The file names the subjects, so it is made for its owner alone, and SQLite gives its journals
the same mode.  One that is there already is closed to others; what its group may do stays.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from whereish.errors import InvalidInput, LedgerUnavailable
from whereish.publish.ledger.ledger import TABLES

__all__ = ["SqliteDatabase"]

_PATIENCE_S = 120


class SqliteDatabase:
    """One SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.parent.is_dir():
            raise InvalidInput(f"the folder of the ledger {path.name} does not exist")
        _close_to_others(path)
        with self._connected() as connection:
            # Not within a transaction: SQLite changes the journal only outside.
            connection.execute("PRAGMA journal_mode = WAL")
        with self.transaction(writing=True) as run:
            for table in TABLES:
                run.rows(table)

    @contextlib.contextmanager
    def transaction(self, *, writing: bool) -> Iterator[_Run]:
        """`BEGIN IMMEDIATE` takes the write lock at once, so a check cannot grow stale."""
        with self._connected() as connection, _transaction(connection, writing=writing) as run:
            yield run

    @contextlib.contextmanager
    def held(self) -> Iterator[_Held]:
        """The same file over one connection: the last to close one rewrites the journal."""
        held = _Held(self)
        try:
            yield held
        finally:
            held.close()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: sqlite3.Error) -> LedgerUnavailable:
        return LedgerUnavailable(f"the ledger {self._path.name} cannot be used ({error})")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, *, writing: bool) -> Iterator[_Run]:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        yield _Run(connection)
        connection.execute("COMMIT")
    finally:
        # Closing rolls back what was not committed.
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


class _Held:
    """Transactions over one connection, which is opened anew after an error."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._open = contextlib.ExitStack()
        self._connection: sqlite3.Connection | None = None

    @contextlib.contextmanager
    def transaction(self, *, writing: bool) -> Iterator[_Run]:
        if self._connection is None:
            self._connection = self._open.enter_context(self._database._connected())
        try:
            with _transaction(self._connection, writing=writing) as run:
                yield run
        except sqlite3.Error as error:
            self.close()
            raise self._database._unavailable(error) from None

    @contextlib.contextmanager
    def held(self) -> Iterator[_Held]:
        yield self

    def close(self) -> None:
        self._connection = None
        self._open.close()


def _close_to_others(path: Path) -> None:
    """Make the file, for its owner alone; or take from all others what they may do with it.

    A new file gets its name when it is closed: closing a file drops every lock that this
    process has on it, those of other connections too.
    """
    path = Path(os.path.realpath(path))
    if not path.exists():
        try:
            descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            os.close(descriptor)
            try:
                os.link(fresh, path)
            except FileExistsError:
                pass  # another was faster
            except OSError:  # a file system without hard links
                path.touch(0o600)
            finally:
                Path(fresh).unlink()
        except OSError as error:
            raise LedgerUnavailable(
                f"the ledger {path.name} cannot be made ({error.strerror})"
            ) from None
    for ending in ("", "-wal", "-shm", "-journal"):
        beside = path.with_name(path.name + ending)
        # Another user's file is that user's to close; SQLite says if it cannot be used.
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE(beside.stat().st_mode)
            if mode & 0o007:
                beside.chmod(mode & ~0o007)


class _Run:
    """Statements on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def lock(self, subjects: Sequence[str]) -> None:
        """`BEGIN IMMEDIATE` has locked them all."""
