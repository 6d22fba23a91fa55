"""Files of others where a release is to be: nothing of theirs is replaced."""

from __future__ import annotations

import errno
import hashlib
import json
import os

import pyarrow.parquet as pq
import pytest

import whereish as wh
from publish.release.jobs import PLAN, failing, full, interrupted
from whereish.errors import (
    InvalidInput,
    NotWritten,
)
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release import staging as staging_module
from whereish.publish.release.staging import abandon, finish
from whereish.publish.rows.subjects import Tally


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
