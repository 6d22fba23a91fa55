"""What holds for every engine, shown on one of plain lists of Arrow tables."""

from __future__ import annotations

import contextlib
import inspect
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish import engines
from whereish.engines.engine import Engine, EngineSanitizer
from whereish.errors import InvalidInput, NotFinished, NotWritten

PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km", "keep": ["i"]}


class Lists:
    """Every partition is attempted twice, and the first attempt is returned."""

    name = "list"

    def columns(self, frame):
        return frame[0].column_names

    def run(self, frame, columns, attempt):
        for index, table in enumerate(frame):
            parts = [attempt(table.select(columns).to_batches(), index) for _ in range(2)]
            yield parts[0]

    def read(self, folder, like):
        return [pq.read_table(path) for path in sorted(folder.iterdir())]


def people() -> list[pa.Table]:
    return [
        pa.table({"i": [i, i + 1], "who": ["a", "b"], "lon": [2.25, 2.5], "lat": [48.8, 48.9]})
        for i in (0, 2)
    ]


def test_every_engine_is_registered_and_is_one():
    homes = Path(engines.__file__).parent.glob("*.py")
    found = [path.stem for path in homes if "\nsanitize = " in path.read_text()]
    assert sorted(found) == sorted(engines.__all__) == engines.__all__
    for name in engines.__all__:
        entry = getattr(engines, name).sanitize
        assert isinstance(entry.__self__.engine, Engine)
        assert inspect.signature(entry) == inspect.signature(EngineSanitizer(Lists()).sanitize)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = engines.nothing


def test_one_attempt_of_each_partition_is_released_and_charged(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    sanitize = EngineSanitizer(Lists()).sanitize
    released = sanitize(people(), tmp_path / "out", ledger=ledger, subject="who", **PLAN)
    assert pa.concat_tables(released).column("i").to_pylist() == [0, 1, 2, 3]
    assert [entry.times for entry in ledger.statement("a").entries] == [2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.db", "out"]


@pytest.mark.parametrize("step", ["columns", "run"])
def test_no_message_of_an_engine_quotes_a_location(tmp_path, monkeypatch, step):
    """Also where it looks for the columns, which makes some engines compute rows."""

    def fail(*_):
        raise RuntimeError("cannot parse 48.8512x")

    monkeypatch.setattr(Lists, step, fail)
    with pytest.raises(InvalidInput, match=r"the list job failed \(RuntimeError\)") as caught:
        EngineSanitizer(Lists()).sanitize(people(), tmp_path / "out", **PLAN)
    assert "48" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_our_own_message_comes_out_of_a_task(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("in a task:\n whereish.errors.NotWritten: a worker cannot write\n at 1")

    monkeypatch.setattr(Lists, "run", fail)
    with pytest.raises(NotWritten, match=r"^a worker cannot write$"):
        EngineSanitizer(Lists()).sanitize(people(), tmp_path / "out", **PLAN)


@pytest.mark.parametrize("charged", ["", " and charged"])
def test_reading_fails_after_the_release(tmp_path, monkeypatch, charged):
    def fail(*_):
        raise RuntimeError("no reader")

    monkeypatch.setattr(Lists, "read", fail)
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    options = {"ledger": ledger, "subject": "who"} if charged else {}
    message = rf"out was released{charged}, but reading it back failed \(RuntimeError\)"
    with pytest.raises(NotFinished, match=message):
        EngineSanitizer(Lists()).sanitize(people(), tmp_path / "out", **options, **PLAN)
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_what_is_refused(tmp_path):
    sanitize, out = EngineSanitizer(Lists()).sanitize, tmp_path / "out"
    with pytest.raises(InvalidInput, match="no column 'x'"):
        sanitize(people(), out, lon="x", lat="lat", epsilon="1/km")
    with pytest.raises(InvalidInput, match="no rows"):
        sanitize([people()[0].slice(2)], out, **PLAN)
    with pytest.raises(InvalidInput, match="belong together"):
        sanitize(people(), out, subject="who", **PLAN)
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        sanitize(people(), out, **PLAN)


def test_a_task_that_outlives_a_failed_job_leaves_nothing(tmp_path, monkeypatch):
    """Another thread of Dask writes while the hidden folder is being removed."""
    late, tries = [], []
    removed = os.rmdir

    class Failing(Lists):
        def run(self, frame, columns, attempt):
            late.append(lambda: attempt(frame[0].select(columns).to_batches(), 0))
            raise InvalidInput("the job failed")

    def rmdir(path, **options):
        tries.extend(late)
        while late:
            with contextlib.suppress(NotWritten):
                late.pop()()
        removed(path, **options)

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(InvalidInput, match="the job failed"):
        EngineSanitizer(Failing()).sanitize(people(), tmp_path / "out", **PLAN)
    assert len(tries) == 1
    assert list(tmp_path.iterdir()) == []
