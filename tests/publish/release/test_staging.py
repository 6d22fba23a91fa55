"""Crash safety: what is visible is whole, charged once, and never drawn twice."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import whereish as wh
from publish.release.jobs import PLAN, gone, interrupted
from stress import faults
from whereish.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotWritten,
)
from whereish.publish.ledger.ledger import Charge, Ledger
from whereish.publish.release import staging as staging_module
from whereish.publish.release.durable import locked
from whereish.publish.release.staging import abandon, finish, staging

ROOT = Path(__file__).parents[3]


def fault(*arguments: str):
    done = subprocess.run(
        [sys.executable, "-m", "stress.faults", *arguments],
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
    interrupted(case, monkeypatch, "rename_into_place", staging_module)
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


def test_staged_bytes_that_are_gone(case, monkeypatch):
    """Nobody had been charged: the next run starts anew."""
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    (output.parent / ".out.parquet.whereish" / "staged.parquet").unlink()
    with pytest.raises(InvalidInput, match="nobody was charged for it; run again"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert not wh.sanitize(source, output, ledger=ledger, **PLAN).resumed
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)


@pytest.mark.parametrize("method", ["state", "refund"])
@pytest.mark.parametrize("then", ["abandon", "finish", "sanitize"])
def test_giving_up_that_was_interrupted(case, monkeypatch, method, then):
    """The bytes are destroyed, the charge pending: whoever comes next refunds it."""
    source, output, ledger = case
    interrupted(case, monkeypatch, "rename_into_place", staging_module)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, method, gone)
        with pytest.raises(LedgerUnavailable, match="is destroyed and was never released"):
            abandon(output, ledger)
    assert ledger.statement("p0").spent_per_m == pytest.approx(0.01)
    if then == "abandon":
        assert abandon(output, ledger)
    else:
        again = {
            "finish": lambda: finish(output, ledger),
            "sanitize": lambda: wh.sanitize(source, output, ledger=ledger, **PLAN),
        }[then]
        with pytest.raises(InvalidInput, match="given up; run again"):
            again()
    assert ledger.statement("p0").spent_per_m == 0
    assert not output.exists()
    assert not abandon(output, ledger)


@pytest.mark.parametrize("step", ["charge", "rename_into_place", "confirm"])
def test_another_ledger_changes_nothing(case, tmp_path, monkeypatch, step):
    source, output, ledger = case
    home = staging_module if step == "rename_into_place" else Ledger
    interrupted(case, monkeypatch, step, home)
    other = wh.open_ledger(tmp_path / "other.db", cap="1/m")
    hidden = output.parent / ".out.parquet.whereish"
    before = sorted(path.name for path in hidden.iterdir()), ledger.statement("p0").entries
    for again in (
        lambda: wh.sanitize(source, output, ledger=other, **PLAN),
        lambda: wh.sanitize(source, output, ledger=other, **(PLAN | {"epsilon": "2/km"})),
        lambda: finish(output, other),
        lambda: abandon(output, other),
    ):
        with pytest.raises(InvalidInput, match="charged to another ledger"):
            again()
    assert other.statement("p0").entries == ()
    after = sorted(path.name for path in hidden.iterdir()), ledger.statement("p0").entries
    assert after == before
    assert finish(output, ledger)
    assert [e.state for e in ledger.statement("p0").entries] == ["released"]


def test_a_pending_charge_that_fits_no_longer_is_taken_back(tmp_path, monkeypatch):
    """Another release filled the window in between: nothing may stay pending for ever."""
    faults.write_people(tmp_path / "in.parquet", 70)
    now = [0.0]
    ledger = wh.open_ledger(
        tmp_path / "ledger.db", cap="0.015/m", window_s=100.0, clock=lambda: now[0]
    )
    case = tmp_path / "in.parquet", tmp_path / "out.parquet", ledger
    interrupted(case, monkeypatch, "rename_into_place", staging_module)
    now[0] = 150.0
    ledger.charge([Charge("p0", wh.Epsilon.of("10/km"))])
    with pytest.raises(BudgetExceeded):
        wh.sanitize(case[0], case[1], ledger=ledger, **PLAN)
    assert sorted(e.state for e in ledger.statement("p1").entries) == ["refunded", "refunded"]
    assert ledger.statement("p1").spent_per_m == 0
    assert not case[1].exists()
    assert not finish(case[1], ledger)


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

    monkeypatch.setattr("whereish.publish.release.staging.os.fsync", full)
    with pytest.raises(NotWritten, match="No space left") as caught:
        wh.sanitize(source, output, lon="lon", lat="lat", epsilon="1/km")
    assert "nothing was released" in str(caught.value)
    assert not output.exists()


def test_a_note_that_cannot_be_read(case, monkeypatch):
    source, output, ledger = case
    interrupted(case, monkeypatch, "charge")
    (output.parent / ".out.parquet.whereish" / "manifest.json").write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read, so how far it came"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert not output.exists()


def test_a_system_without_posix_locks_has_the_same_rules(tmp_path, monkeypatch):
    """What Windows runs: a locked file beside the hidden folder."""
    import sys

    import filelock  # before fcntl is hidden, which its own code for this system needs

    from whereish.publish.release.durable import locked

    assert filelock.FileLock
    monkeypatch.setitem(sys.modules, "fcntl", None)
    hidden = tmp_path / ".out.csv.whereish"
    with locked(hidden):
        assert hidden.is_dir()
        with pytest.raises(InvalidInput, match="another job is writing"), locked(hidden):
            pass
    hidden.rmdir()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "in.csv").write_text("lon,lat,who\n2.35,48.85,a\n")
    ledger = wh.open_ledger(tmp_path / "l.db", cap="10/m")
    how = {"lon": "lon", "lat": "lat", "epsilon": "1/m", "ledger": ledger, "subject": "who"}
    wh.sanitize(tmp_path / "in.csv", tmp_path / "out.csv", **how)
    assert (tmp_path / "out.csv").exists()
    assert ledger.statement("a").spent_per_m == 1.0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_folder_that_cannot_be_made_is_said_not_tried_for_ever(tmp_path):
    with (
        pytest.raises(InvalidInput, match="cannot be made or opened"),
        locked(tmp_path / "a" / "b"),
    ):
        pass
