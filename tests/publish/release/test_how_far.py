"""What an error says of how far the release had come."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import whereish as wh
from publish.release.jobs import PLAN, failing, full, gone, interrupted
from whereish.errors import (
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release import staging as staging_module
from whereish.publish.release.staging import Staging, finish


def failing_after(output: Path, function):
    """The function until the output is there, and a full disk from then on."""

    def wrapped(*arguments, **options):
        return full() if output.exists() else function(*arguments, **options)

    return wrapped


def test_errors_before_the_rename_say_that_nothing_was_released(case, monkeypatch):
    source, output, ledger = case
    error = failing(case, monkeypatch, Ledger, "charge", gone)
    assert isinstance(error, LedgerUnavailable)
    assert "disk I/O error" in str(error)
    assert "nothing was released, and a charge that had arrived is not made again" in str(error)
    assert not output.exists()
    error = failing(case, monkeypatch, staging_module, "rename_into_place", full)
    assert isinstance(error, NotWritten)
    assert "nothing was released, and its charge is pending" in str(error)
    assert not output.exists()
    assert [e.state for e in ledger.statement("p0").entries] == ["pending"]
    assert wh.sanitize(source, output, ledger=ledger, **PLAN).resumed
    assert [e.state for e in ledger.statement("p0").entries] == ["released"]


@pytest.mark.parametrize("step", ["sync", "confirm", "empty"])
def test_errors_after_the_rename_say_that_it_has_left(case, monkeypatch, step):
    _, output, ledger = case
    home, name = {
        "sync": (os, "fsync"),
        "confirm": (Ledger, "confirm"),
        "empty": (Staging, "empty"),
    }[step]
    failure = gone if step == "confirm" else failing_after(output, getattr(home, name))
    error = failing(case, monkeypatch, home, name, failure)
    assert isinstance(error, NotFinished)
    assert "out.parquet was released and charged, but" in str(error)
    assert "nothing was released" not in str(error)
    drawn = output.read_bytes()
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    assert finish(output, ledger)
    assert not finish(output, ledger)
    assert output.read_bytes() == drawn
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    assert [e.state for e in ledger.statement("p0").entries] == ["released"]
    assert [p.name for p in output.parent.iterdir() if p.name.startswith(".")] == []


def test_a_released_output_that_cannot_be_read_again(case, monkeypatch):
    _, output, ledger = case
    interrupted(case, monkeypatch, "confirm")
    error = failing(case, monkeypatch, staging_module, "digest", full)
    assert isinstance(error, NotFinished)
    assert "was released and charged, but it cannot be read again" in str(error)
    assert finish(output, ledger)


def test_without_a_ledger_too(case, monkeypatch):
    source, output, _ = case
    plan = {"lon": "lon", "lat": "lat", "epsilon": "1/km"}
    with monkeypatch.context() as patch:
        patch.setattr(staging_module, "rename_into_place", full)
        with pytest.raises(NotWritten, match=r"its name \(No space left.*nothing was released$"):
            wh.sanitize(source, output, **plan)
    assert not output.exists()
    monkeypatch.setattr(os, "fsync", failing_after(output, os.fsync))
    with pytest.raises(NotFinished, match="was released, but its folder cannot be synced"):
        wh.sanitize(source, output, **plan)
    assert len(pq.read_table(output)) == 70


def test_a_frame_that_cannot_be_charged(case, monkeypatch):
    source, _, ledger = case
    monkeypatch.setattr(Ledger, "charge", gone)
    with pytest.raises(LedgerUnavailable, match="nothing was released, and whether"):
        wh.sanitize(pq.read_table(source), ledger=ledger, **PLAN)


def test_a_statement_that_did_not_follow(case, monkeypatch):
    source, output, ledger = case
    case = source, output.with_suffix(".csv"), ledger
    replace = Path.replace

    def halting(self, target):
        if self.name == "statement.json":
            raise OSError(errno.EIO, "Input/output error")
        return replace(self, target)

    error = failing(case, monkeypatch, Path, "replace", halting)
    assert isinstance(error, NotFinished)
    assert "its statement out.csv.whereish.json is not there" in str(error)
    assert case[1].exists()
    assert finish(case[1], ledger)
    assert (case[1].with_name("out.csv.whereish.json")).exists()
