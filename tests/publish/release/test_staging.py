"""Crash safety: what is visible is whole, charged once, and never drawn twice."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

import whereish as wh
from stress import faults
from whereish.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish.ledger.ledger import Charge, Ledger
from whereish.publish.release import staging as staging_module
from whereish.publish.release.content import content_digest
from whereish.publish.release.staging import Staging, abandon, finish, staging
from whereish.publish.rows.public_places import H3Cells, Roads, ToSites
from whereish.publish.rows.subjects import Tally

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


@pytest.fixture
def case(tmp_path):
    """A source, an output and a ledger."""
    faults.write_people(tmp_path / "in.parquet", 70)
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap="1/m")
    return tmp_path / "in.parquet", tmp_path / "out.parquet", ledger


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


def shifted(by: float):
    return lambda degrees: degrees + by


class Shift:
    """A remap with a state."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, degrees):
        return degrees + self.by


def road(y: float) -> shapely.LineString:
    return shapely.LineString([(2.0, y), (2.7, y)])


def site(lon: float, space=None) -> wh.Sites:
    return wh.Sites(wh.Points(np.array([[lon, 48.8]]), space or wh.Sphere()))


REMAPS = {
    "roads": (lambda: Roads([road(48.8)], 48.85), lambda: Roads([road(48.9)], 48.85)),
    "the latitude of roads": (lambda: Roads([road(48.8)], 48.8), lambda: Roads([road(48.8)], 48.9)),
    "more roads": (lambda: Roads([road(1)], 48), lambda: Roads([road(1), road(2)], 48)),
    "sites": (lambda: ToSites(site(2.3)), lambda: ToSites(site(2.4))),
    "cells": (lambda: H3Cells(8), lambda: H3Cells(9)),
    "what a function closes over": (lambda: shifted(0.1), lambda: shifted(0.2)),
    "the state of a callable": (lambda: Shift(0.1), lambda: Shift(0.2)),
    "an argument that is bound": (lambda: partial(shifted, 1), lambda: partial(shifted, 2)),
    "code": (lambda: lambda degrees: degrees, lambda: lambda degrees: -degrees),
}


MECHANISMS = {
    "decimals": (lambda: wh.GlobeLaplace("1/km"), lambda: wh.GlobeLaplace("1/km", decimals=3)),
    "planes": (
        lambda: wh.PlanarLaplace("1/km", plane=wh.Plane.around(2.3, 48.8, "40 km")),
        lambda: wh.PlanarLaplace("1/km", plane=wh.Plane.around(2.4, 48.8, "40 km")),
    ),
}


@pytest.mark.parametrize("what", MECHANISMS)
def test_mechanisms_have_the_digest_of_their_content(what):
    one, other = MECHANISMS[what]
    used = one()
    used.report([2.3, 48.8])
    assert content_digest(one()) == content_digest(used)
    assert content_digest(one()) != content_digest(other())


def test_an_interrupted_job_does_not_resume_with_another_mechanism(case, monkeypatch):
    """Of the same guarantee: the statement alone would not tell them apart."""
    source, output, ledger = case
    interrupted(case, monkeypatch, "rename_into_place", staging_module, options={"decimals": 3})
    with pytest.raises(InvalidInput, match="with other arguments"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    options = {"decimals": 3}
    assert wh.sanitize(source, output, ledger=ledger, options=options, **PLAN).resumed


@pytest.mark.parametrize("what", REMAPS)
def test_remaps_have_the_digest_of_their_content(what):
    one, other = REMAPS[what]
    assert content_digest(one()) == content_digest(one())
    assert content_digest(one()) != content_digest(other())


def test_remaps_that_cannot_be_digested_differ_from_all():
    unknown = Shift(0.1)
    unknown.handle = (x for x in ())
    assert content_digest(unknown) != content_digest(unknown)


def test_an_interrupted_job_does_not_resume_with_other_roads(case, monkeypatch):
    source, output, ledger = case
    interrupted(
        case, monkeypatch, "rename_into_place", staging_module, remap=Roads([road(48.8)], 48.85)
    )
    with pytest.raises(InvalidInput, match="with other arguments"):
        wh.sanitize(source, output, ledger=ledger, remap=Roads([road(48.9)], 48.85), **PLAN)
    release = wh.sanitize(source, output, ledger=ledger, remap=Roads([road(48.8)], 48.85), **PLAN)
    assert release.resumed
    assert set(pq.read_table(output)["lat"].to_pylist()) == {48.8}
    # The exposure of a resumed release is that of the one which had drawn it.
    assert (release.exposure.reports, release.exposure.named) == (10, True)
    assert release.exposure.per_m == pytest.approx(0.01)


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


@pytest.mark.parametrize("method", ["charge", "rename"])
def test_a_resumed_job_replaces_nothing_foreign(case, monkeypatch, method):
    source, output, ledger = case
    if method == "charge":
        interrupted(case, monkeypatch, "charge")
    else:
        failing(case, monkeypatch, staging_module, "rename_into_place", full)
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


def test_a_foreign_file_that_appears_at_the_last_moment(case, monkeypatch):
    _, output, ledger = case
    link = os.link

    def late(*arguments):
        output.write_text("somebody else's")
        link(*arguments)

    error = failing(case, monkeypatch, os, "link", late)
    assert isinstance(error, NotWritten)
    assert "File exists" in str(error)
    assert output.read_text() == "somebody else's"
    assert abandon(output, ledger)
    assert ledger.statement("p0").spent_per_m == 0


def test_file_systems_without_hard_links(case, monkeypatch):
    source, output, ledger = case

    def none(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert len(pq.read_table(output)) == 70
    assert [p.name for p in output.parent.iterdir() if p.name.startswith(".")] == []


def test_names_that_are_taken_by_something_else(case):
    source, output, ledger = case
    output.symlink_to(output.with_name("nowhere"))
    with pytest.raises(InvalidInput, match=r"out.parquet exists already"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert output.is_symlink()
    output.unlink()
    statement = output.with_name("out.csv.whereish.json")
    statement.write_text("somebody else's")
    with pytest.raises(InvalidInput, match=r"out.csv.whereish.json exists already"):
        wh.sanitize(source, output.with_suffix(".csv"), ledger=ledger, **PLAN)
    assert statement.read_text() == "somebody else's"
    assert ledger.statement("p0").entries == ()


def test_a_hidden_folder_that_is_not_ours(case, tmp_path):
    source, output, ledger = case
    hidden = output.with_name(".out.parquet.whereish")
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / "file").touch()
    hidden.symlink_to(precious)
    for again in (
        lambda: wh.sanitize(source, output, ledger=ledger, **PLAN),
        lambda: abandon(output, ledger),
    ):
        with pytest.raises(InvalidInput, match="cannot be made or opened"):
            again()
    assert (precious / "file").exists()
    hidden.unlink()
    hidden.mkdir()
    hidden.chmod(0o777)
    with pytest.raises(InvalidInput, match="closed to others"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    assert ledger.statement("p0").entries == ()


@pytest.mark.parametrize("step", ["rename_into_place", "confirm"])
def test_no_output_stands_beside_the_statement_of_another(case, monkeypatch, step):
    """A weaker release is replaced by a stronger one, and that is interrupted."""
    source, output, ledger = case
    case = source, output.with_suffix(".csv"), ledger
    output = case[1]
    statement = output.with_name("out.csv.whereish.json")
    wh.sanitize(source, output, ledger=ledger, **(PLAN | {"epsilon": "20/km"}))
    weak = output.read_bytes(), statement.read_text()
    home = staging_module if step == "rename_into_place" else Ledger
    interrupted(case, monkeypatch, step, home, overwrite=True)
    if step == "rename_into_place":
        assert output.read_bytes() == weak[0]
        assert not statement.exists()
        assert abandon(output, ledger)
        assert output.read_bytes() == weak[0]
        assert not statement.exists()
    else:
        assert output.read_bytes() != weak[0]
        assert finish(output, ledger)
        assert json.loads(statement.read_text())["rows"] == 70
        assert statement.read_text() != weak[1]


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


def test_an_overwriting_job_is_finished_as_it_was_asked(case, monkeypatch):
    _, output, ledger = case
    output.write_text("to be replaced")
    interrupted(case, monkeypatch, "charge", overwrite=True)
    assert finish(output, ledger)
    assert len(pq.read_table(output)) == 70


def test_an_input_that_changes_while_it_is_read(case, monkeypatch):
    source, output, ledger = case
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    add = Tally.add

    def changing(self, batch):
        add(self, batch)
        with source.open("ab") as file:
            file.write(b" ")

    monkeypatch.setattr(Tally, "add", changing)
    with pytest.raises(InvalidInput, match="not the file of this SHA-256"):
        wh.sanitize(source, output, ledger=ledger, sha256=digest, **PLAN)
    assert not output.exists()
    assert ledger.statement("p0").entries == ()


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
