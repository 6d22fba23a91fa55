"""Jobs that are interrupted, or in which a step fails."""

from __future__ import annotations

import pytest

import whereish as wh
from whereish.errors import (
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish.ledger.ledger import Ledger

PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "subject": "who"}


def interrupted(case, monkeypatch, method: str, home: object = Ledger, **options) -> None:
    """Run until `method` (of the ledger, unless said) is called, and break there."""
    source, output, ledger = case

    def break_here(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(home, method, break_here)
        with pytest.raises(KeyboardInterrupt):
            wh.sanitize(source, output, ledger=ledger, **(PLAN | options))


def full(*_, **__):
    raise OSError(28, "No space left on device")


def gone(*_, **__):
    raise LedgerUnavailable("the ledger l.db cannot be used (disk I/O error)")


def failing(case, monkeypatch, home: object, name: str, failure) -> Exception:
    """The error of a job in which one step fails."""
    source, output, ledger = case
    with monkeypatch.context() as patch:
        patch.setattr(home, name, failure)
        with pytest.raises((NotWritten, NotFinished, LedgerUnavailable)) as caught:
            wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert "\n" not in str(caught.value)
    return caught.value
