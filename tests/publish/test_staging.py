"""Crash safety: what is visible is whole, charged once, and never drawn twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import whereish as wh
from benchmarks import faults
from whereish.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish import staging as staging_module
from whereish.publish.ledger import Ledger
from whereish.publish.staging import Staging, abandon, finish, staging

ROOT = Path(__file__).parents[2]


def fault(*arguments: str):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_killed_before_every_step(tmp_path):
    assert fault("steps", str(tmp_path))["steps"] >= 8


def test_killed_at_random_moments(tmp_path):
    assert fault("kills", str(tmp_path), "15", "3")["kills"] >= 15


@pytest.mark.parametrize("ledger_on_it", ["0", "1"])
def test_a_full_disk_at_each_write(tmp_path, ledger_on_it):
    if not faults.can_mount():
        pytest.skip("not root, so no small file system can be mounted")
    outcomes = fault("disk", str(tmp_path), "12", ledger_on_it)
    assert outcomes["refused"] >= 6
    assert outcomes["released"] >= 1


@pytest.fixture
def case(tmp_path):
    """A source, an output and a ledger."""
    faults.write_people(tmp_path / "in.parquet", 70)
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap="1/m")
    return tmp_path / "in.parquet", tmp_path / "out.parquet", ledger


PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "subject": "who"}


def interrupted(case, monkeypatch, method: str) -> None:
    """Run until the ledger's `method` is called, and break there."""
    source, output, ledger = case

    def break_here(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, method, break_here)
        with pytest.raises(KeyboardInterrupt):
            wh.sanitize(source, output, ledger=ledger, **PLAN)


def test_a_resumed_job_neither_charges_nor_draws_again(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "confirm")
    drawn = output.read_bytes()
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    release = wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert release.resumed
    assert release.rows == 70
    assert output.read_bytes() == drawn
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    with pytest.raises(InvalidInput, match="exists already"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)


def test_staged_bytes_are_the_ones_released(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    staged = (output.parent / ".out.parquet.whereish" / "staged.parquet").read_bytes()
    assert not output.exists()
    assert ledger.statement("p0").entries == ()
    assert wh.sanitize(source, output, ledger=ledger, **PLAN).resumed
    assert output.read_bytes() == staged


def test_an_unfinished_job_is_not_taken_for_another(case, monkeypatch):
    source, output, ledger = case
    monkeypatch.setattr(Path, "replace", breaking_at_output(output))
    with pytest.raises(KeyboardInterrupt):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    monkeypatch.undo()
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    with pytest.raises(InvalidInput, match="abandon"):
        wh.sanitize(source, output, ledger=ledger, **(PLAN | {"epsilon": "2/km"}))
    with pytest.raises(InvalidInput, match="with its ledger"):
        wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km")
    assert abandon(output, ledger)
    assert not abandon(output, ledger)
    assert ledger.statement("p0").spent_per_m == 0
    assert [p.name for p in output.parent.iterdir() if p.name.startswith(".")] == []
    assert not wh.sanitize(source, output, ledger=ledger, **PLAN).resumed


def breaking_at_output(output: Path):
    original = Path.replace

    def replace(self, target):
        if Path(target) == output:
            raise KeyboardInterrupt
        return original(self, target)

    return replace


def test_what_has_left_is_not_refunded(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "confirm")
    with pytest.raises(InvalidInput, match="left already"):
        abandon(output, ledger)
    output.unlink()
    with pytest.raises(InvalidInput, match="its charge stands"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.02)


def test_giving_up_that_was_interrupted(case, monkeypatch):
    """The staged bytes are gone, and nobody had been charged: the next run starts anew."""
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    (output.parent / ".out.parquet.whereish" / "staged.parquet").unlink()
    with pytest.raises(InvalidInput, match="given up; run again"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert not wh.sanitize(source, output, ledger=ledger, **PLAN).resumed
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)


def test_staged_bytes_that_changed_are_not_released(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    staged = output.parent / ".out.parquet.whereish" / "staged.parquet"
    staged.write_bytes(staged.read_bytes()[:-1] + b"?")
    with pytest.raises(InvalidInput, match="damaged"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert not output.exists()


def test_no_budget_no_output(case):
    source, output, _ = case
    ledger = wh.open_ledger(output.with_name("small.db"), cap="9/km")
    with pytest.raises(BudgetExceeded, match="7 of 7"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    names = sorted(p.name for p in output.parent.iterdir())
    assert [n for n in names if "out" in n] == []
    assert ledger.statement("p0").entries == ()
    roomy = wh.open_ledger(output.with_name("roomy.db"), cap="10/km")
    wh.sanitize(source, output, ledger=roomy, **PLAN)
    assert roomy.statement("p0").left_per_m == pytest.approx(0, abs=1e-12)


def _held(output, ready, done):
    with staging(output):
        ready.set()
        done.wait(60)


def test_two_jobs_for_one_output(case):
    source, output, _ = case
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_held, args=(output, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(InvalidInput, match="another job"):
            wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km")
    finally:
        done.set()
        other.join(60)
    wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km")
    assert len(pq.read_table(output)) == 70


def test_a_folder_that_cannot_be_written(case, monkeypatch):
    source, output, _ = case

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("whereish.publish.staging.os.fsync", full)
    with pytest.raises(NotWritten, match="No space left") as caught:
        wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km")
    assert "nothing was released" in str(caught.value)
    assert not output.exists()


# What an error says of how far the release had come


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


def refusing_at(output: Path):
    original = Path.replace

    def replace(self, target):
        return full() if Path(target) == output else original(self, target)

    return replace


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
    error = failing(case, monkeypatch, Path, "replace", refusing_at(output))
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
    error = failing(case, monkeypatch, staging_module, "_digest", full)
    assert isinstance(error, NotFinished)
    assert "was released and charged, but it cannot be read again" in str(error)
    assert finish(output, ledger)


def test_without_a_ledger_too(case, monkeypatch):
    source, output, _ = case
    plan = {"lon": "lon", "lat": "lat", "epsilon": "1/km"}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refusing_at(output))
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


@pytest.mark.parametrize("method", ["charge", "rename"])
def test_a_resumed_job_replaces_nothing_foreign(case, monkeypatch, method):
    source, output, ledger = case
    if method == "charge":
        interrupted(case, monkeypatch, "charge")
    else:
        failing(case, monkeypatch, Path, "replace", refusing_at(output))
    output.write_text("somebody else's")
    before = ledger.statement("p0").entries
    for again in (
        lambda: wh.sanitize(source, output, ledger=ledger, **PLAN),
        lambda: finish(output, ledger),
    ):
        with pytest.raises(InvalidInput, match="exists already, so nothing is released"):
            again()
    assert output.read_text() == "somebody else's"
    assert ledger.statement("p0").entries == before
    assert wh.sanitize(source, output, ledger=ledger, overwrite=True, **PLAN).resumed
    assert len(pq.read_table(output)) == 70
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)


def test_a_foreign_file_that_appears_during_the_charge(case, monkeypatch):
    source, output, ledger = case
    charge = Ledger.charge

    def slow(self, *arguments, **options):
        done = charge(self, *arguments, **options)
        output.write_text("somebody else's")
        return done

    monkeypatch.setattr(Ledger, "charge", slow)
    with pytest.raises(InvalidInput, match=r"nothing is released.*the charge is pending until"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert output.read_text() == "somebody else's"
    monkeypatch.undo()
    assert abandon(output, ledger)
    assert ledger.statement("p0").spent_per_m == 0


def test_a_note_that_cannot_be_read(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    (output.parent / ".out.parquet.whereish" / "manifest.json").write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read, so how far it came"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert not output.exists()
