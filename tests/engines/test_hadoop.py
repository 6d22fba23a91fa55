"""Hadoop file systems: what is visible is charged, what is refunded never leaves."""

from __future__ import annotations

import json
import shutil

import pytest

import whereish as wh
from whereish.engines.attempts import Job
from whereish.engines.hadoop import write as hadoop
from whereish.engines.hadoop.files import HadoopPlace
from whereish.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    NotFinished,
    NotWritten,
)
from whereish.publish.ledger.ledger import Charge, Ledger
from whereish.publish.rows.plan import build_sanitizer

pytest.importorskip("pyspark")
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["i"]}
ROWS = 400


@pytest.fixture
def ledger(tmp_path):
    return wh.open_ledger(tmp_path / "l.db", cap="0.5/m")


@pytest.fixture
def address(tmp_path):
    return f"file://{tmp_path}/out"


@pytest.fixture
def job(people, address, ledger):
    return Job(people.coalesce(1), build_sanitizer(PLAN), "who", ledger), address


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def outputs(folder) -> list[str]:
    """The output and what is hidden beside it."""
    return [name for name in names(folder) if "out" in name]


def states(ledger) -> list[str]:
    return [entry.state for entry in ledger.statement("0").entries]


def gone(*_, **__):
    raise LedgerUnavailable("the ledger cannot be used")


def before(monkeypatch, home, name, act, *, when=lambda *_: True):
    """Once, before the next call of a method, do something else."""
    original, done = getattr(home, name), []

    def wrapped(self, *arguments, **options):
        if not done and when(*arguments):
            done.append(True)
            act()
        return original(self, *arguments, **options)

    monkeypatch.setattr(home, name, wrapped)


def interrupted(job, patch, name="charge"):
    """A job that came as far as the ledger's `name`."""
    with patch.context() as inner:
        inner.setattr(Ledger, name, gone)
        with pytest.raises((LedgerUnavailable, NotFinished)):
            hadoop.release_to_address(*job)


def test_a_hadoop_file_system(people, tmp_path):
    """The way of outputs that are no shared path, on Hadoop's local file system."""
    address = f"file://{tmp_path}/out"
    released = hadoop.release_to_address(Job(people, build_sanitizer(PLAN)), address)
    assert sorted(released.collect()) == sorted(released.collect())
    assert released.count() == ROWS
    assert names(tmp_path) == ["out"]
    with pytest.raises(InvalidInput, match="exists already"):
        hadoop.release_to_address(Job(people, build_sanitizer(PLAN)), address)


def test_a_hadoop_file_system_with_a_ledger(people, session, tmp_path, monkeypatch):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="0.5/m")
    address = f"file://{tmp_path}/out"
    job = (Job(people, build_sanitizer(PLAN), "who", ledger), address)

    def gone(*_, **__):
        raise LedgerUnavailable("the ledger cannot be used")

    # Interrupted before the charge, and given up.
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", gone)
        with pytest.raises(LedgerUnavailable, match="nothing was released"):
            hadoop.release_to_address(*job)
    with pytest.raises(InvalidInput, match="is running or was interrupted"):
        hadoop.release_to_address(*job)
    assert ledger.statement("0").entries == ()
    assert hadoop.abandon(session, address, ledger)
    assert not hadoop.abandon(session, address, ledger)
    assert not [name for name in names(tmp_path) if "out" in name]
    # A folder appears while the ledger is charged: neither replaced nor moved into.
    charge = Ledger.charge

    def slow(self, *arguments, **options):
        (tmp_path / "out").mkdir()
        return charge(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", slow)
        with pytest.raises(NotWritten, match="nothing was released, and its charge is pending"):
            hadoop.release_to_address(*job)
    assert names(tmp_path / "out") == []
    assert [e.state for e in ledger.statement("0").entries] == ["pending"]
    (tmp_path / "out").rmdir()
    # Interrupted after the rename, and finished.
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", gone)
        with pytest.raises(NotFinished, match="was released and charged"):
            hadoop.finish(session, address, ledger)
    assert hadoop.finish(session, address, ledger)
    assert not hadoop.finish(session, address, ledger)
    released = session.read.parquet(address)
    assert released.columns == ["lon", "lat", "i"]
    assert "guarantee" in json.loads(released.schema["lon"].metadata["whereish"])
    assert released.count() == ROWS
    assert [(e.times, e.state) for e in ledger.statement("0").entries] == [(ROWS // 4, "released")]
    assert sorted(n for n in names(tmp_path) if "out" in n) == ["out"]


def test_no_budget_on_a_hadoop_file_system(people, tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="99/km")
    job = Job(people, build_sanitizer(PLAN), "who", ledger)
    with pytest.raises(BudgetExceeded, match="4 of 4"):
        hadoop.release_to_address(job, f"file://{tmp_path}/out")
    assert not [name for name in names(tmp_path) if "out" in name]
    assert ledger.statement("0").entries == ()


@pytest.mark.parametrize("moment", [(Ledger, "charge"), (HadoopPlace, "rename")])
def test_given_up_beside_a_live_driver(
    job, session, address, ledger, tmp_path, monkeypatch, moment
):
    """Before its charge, and between its charge and its rename: nothing leaves, nothing is owed."""
    given_up = []
    before(monkeypatch, *moment, lambda: given_up.append(hadoop.abandon(session, address, ledger)))
    with pytest.raises(InvalidInput, match="given up, so nothing is released"):
        hadoop.release_to_address(*job)
    assert given_up == [True]
    assert outputs(tmp_path) == []
    assert set(states(ledger)) == {"refunded"}
    assert ledger.statement("0").spent_per_m == 0


def test_the_driver_wins_against_who_gives_it_up(job, session, address, ledger, monkeypatch):
    """The driver renames while `abandon` is about to: what is visible is not refunded."""
    interrupted(job, monkeypatch)
    before(
        monkeypatch,
        HadoopPlace,
        "_rename",
        lambda: hadoop.finish(session, address, ledger),
        when=lambda source, target: target.endswith("/trash"),
    )
    with pytest.raises(InvalidInput, match="has left already"):
        hadoop.abandon(session, address, ledger)
    assert session.read.parquet(address).count() == ROWS
    assert states(ledger) == ["released"]


def test_a_second_driver_while_the_first_lives(job, tmp_path, monkeypatch):
    told = []

    def second():
        with pytest.raises(InvalidInput, match="is running or was interrupted: wait for it") as got:
            hadoop.release_to_address(*job)
        told.append(str(got.value))

    before(monkeypatch, Ledger, "charge", second)
    hadoop.release_to_address(*job)
    assert len(told) == 1
    assert outputs(tmp_path) == ["out"]


def test_a_rename_whose_answer_is_lost(job, ledger, tmp_path, monkeypatch):
    """The address decides, not that the staged reports are gone."""
    from py4j.protocol import Py4JError

    rename = HadoopPlace._rename

    def lost(self, source, target):
        rename(self, source, target)
        if target == self.address:
            raise Py4JError("no answer")

    monkeypatch.setattr(HadoopPlace, "_rename", lost)
    assert hadoop.release_to_address(*job).count() == ROWS
    assert states(ledger) == ["released"]
    assert outputs(tmp_path) == ["out"]


@pytest.mark.parametrize("end", ["abandon", "finish"])
def test_giving_up_is_interrupted(job, session, address, ledger, tmp_path, monkeypatch, end):
    """No output, so no confirmation: both ways end in the refund, and say so."""
    before(monkeypatch, HadoopPlace, "rename", gone)
    with pytest.raises(LedgerUnavailable):  # the driver dies with its charge pending
        hadoop.release_to_address(*job)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "refund", gone)
        with pytest.raises(LedgerUnavailable, match=r"destroyed, nothing was released.*refund"):
            hadoop.abandon(session, address, ledger)
    assert states(ledger) == ["pending"]
    if end == "abandon":
        assert hadoop.abandon(session, address, ledger)
    else:
        with pytest.raises(InvalidInput, match="given up, so nothing is released"):
            hadoop.finish(session, address, ledger)
    assert set(states(ledger)) == {"refunded"}
    assert outputs(tmp_path) == []


def test_what_has_left_and_was_removed_stays_charged(
    job, session, address, ledger, tmp_path, monkeypatch
):
    interrupted(job, monkeypatch, "confirm")
    with pytest.raises(InvalidInput, match=r"was released and charged.*hadoop.finish"):
        hadoop.release_to_address(*job)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", gone)
        with pytest.raises(NotFinished, match="was released and charged"):
            hadoop.finish(session, address, ledger)
    shutil.rmtree(tmp_path / "out")  # a reader has moved it on
    with pytest.raises(InvalidInput, match="has left already, so it cannot be refunded"):
        hadoop.abandon(session, address, ledger)
    with pytest.raises(InvalidInput, match="is not there now; its charge stands"):
        hadoop.finish(session, address, ledger)
    assert states(ledger) == ["released"]
    assert outputs(tmp_path) == []


def test_another_ledger(job, session, address, ledger, tmp_path, monkeypatch):
    interrupted(job, monkeypatch)
    other = wh.open_ledger(tmp_path / "other.db", cap="0.5/m")
    staged = outputs(tmp_path)
    for end in (hadoop.finish, hadoop.abandon):
        with pytest.raises(InvalidInput, match="another ledger, so nothing has changed"):
            end(session, address, other)
    assert outputs(tmp_path) == staged
    assert states(other) == []
    assert hadoop.finish(session, address, ledger)
    assert states(ledger) == ["released"]


def test_a_note_that_cannot_be_read(job, session, address, ledger, tmp_path, monkeypatch):
    interrupted(job, monkeypatch)
    (hidden,) = outputs(tmp_path)
    for name in (".manifest.json.crc", "manifest.json"):
        (tmp_path / hidden / name).unlink(missing_ok=True)
    (tmp_path / hidden / "manifest.json").write_text("[")
    with pytest.raises(InvalidInput, match="cannot be read"):
        hadoop.finish(session, address, ledger)
    assert (tmp_path / hidden / "staged").exists()


def test_a_budget_that_is_used_up_before_the_job_goes_on(
    people, session, address, tmp_path, monkeypatch
):
    """A pending charge is dated anew when it is resumed; if that fails, it is refunded."""
    now = [0.0]
    ledger = wh.open_ledger(tmp_path / "l.db", cap="0.1/m", window_s=10, clock=lambda: now[0])
    before(monkeypatch, HadoopPlace, "rename", gone)
    with pytest.raises(LedgerUnavailable):
        hadoop.release_to_address(
            Job(people.coalesce(1), build_sanitizer(PLAN), "who", ledger), address
        )
    assert states(ledger) == ["pending"]
    now[0] = 20.0
    ledger.charge([Charge("0", wh.Epsilon.of("0.05/m"))])
    with pytest.raises(BudgetExceeded, match="nothing is pending"):
        hadoop.finish(session, address, ledger)
    assert sorted(set(states(ledger))) == ["refunded", "released"]
    assert ledger.statement("1").spent_per_m == 0
    assert outputs(tmp_path) == []


def test_an_output_that_appears_after_the_manifest(
    job, session, address, ledger, tmp_path, monkeypatch
):
    interrupted(job, monkeypatch)
    (tmp_path / "out").mkdir()
    with pytest.raises(
        InvalidInput, match=r"exists already.*staged reports remain.*finish.*abandon"
    ):
        hadoop.finish(session, address, ledger)
    assert hadoop.abandon(session, address, ledger)
    assert outputs(tmp_path) == ["out"]
    assert names(tmp_path / "out") == []


def test_a_missing_parent_is_not_made_private(people, tmp_path):
    job = Job(people.coalesce(1), build_sanitizer(PLAN))
    hadoop.release_to_address(job, f"file://{tmp_path}/new/deep/out")
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder in (tmp_path / "new", tmp_path / "new" / "deep"):
        assert folder.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("scheme", ["s3a", "gs", "abfss", "ofs"])
def test_file_systems_without_an_atomic_rename(people, session, ledger, scheme):
    with pytest.raises(InvalidInput, match=f"rename a folder at once.*got {scheme}"):
        wh.spark.sanitize(people, f"{scheme}://bucket/out", **PLAN)
    with pytest.raises(InvalidInput, match="rename a folder at once"):
        hadoop.abandon(session, f"{scheme}://bucket/out", ledger)


def test_the_documented_way_to_finish():
    from whereish.engines import hadoop as room

    assert (room.finish, room.abandon) == (hadoop.finish, hadoop.abandon)
