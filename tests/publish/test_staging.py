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
from benchmarks import faults
from whereish.errors import BudgetExceeded, InvalidInput, NotWritten
from whereish.publish.ledger import Ledger
from whereish.publish.staging import abandon, staging

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
    assert fault("steps", str(tmp_path)) >= 8


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
