"""Budgets: what has been released about whom, in SQLite or PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from whereish.errors import InvalidInput
from whereish.publish.ledger.ledger import Budget, Database, Ledger
from whereish.units import Epsilon

__all__ = ["open_ledger"]


def open_ledger(
    address: str | Path,
    *,
    cap: Epsilon | str | None = None,
    window_s: float | None = None,
    clock: Callable[[], float] = time.time,
) -> Ledger:
    """The ledger at a path (SQLite) or at "postgresql://..." (the `postgres` extra).

    Raises
    ------
    InvalidInput
        If a new ledger has no cap, or an existing one has another budget.
    LedgerUnavailable
        If the database cannot be read or written.

    Examples
    --------
    >>> import whereish as wh
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = wh.open_ledger(f"{folder}/budget.db", cap="0.02/m")
    ...     [ledger.allows("alice", "0.01/m", times=times) for times in (1, 2, 3)]
    ...
    [True, True, False]
    """
    if cap is None and window_s is not None:
        raise InvalidInput("a window needs a cap: the budget that holds within it")
    budget = None if cap is None else Budget(Epsilon.of(cap), window_s)
    database: Database
    if str(address).startswith(("postgresql://", "postgres://")):
        from whereish.publish.ledger.postgres import PostgresDatabase

        database = PostgresDatabase(str(address))
    else:
        from whereish.publish.ledger.sqlite import SqliteDatabase

        if budget is None and not Path(address).exists():
            raise InvalidInput(
                f"there is no ledger {Path(address).name}; a new one needs a cap: whereish ledger"
                " create ADDRESS --cap '0.05/m', or open_ledger(address, cap='0.05/m')"
            )
        database = SqliteDatabase(Path(address))
    return Ledger(database, budget, clock=clock)
