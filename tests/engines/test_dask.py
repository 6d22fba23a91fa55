"""Dask: whatever is run again, a record has one report."""

from __future__ import annotations

from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish.engines import dask as engine
from whereish.errors import BudgetExceeded, InvalidInput, NotWritten
from whereish.privacy import GreatCircle

PLAN = {"lon": "lon", "lat": "lat", "epsilon": "ln(4)/200 m", "keep": ["i"]}
ROWS = 600


def people() -> pd.DataFrame:
    generator = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "i": np.arange(ROWS),
            "who": np.arange(ROWS) % 6,
            "lon": generator.uniform(2.2, 2.5, ROWS),
            "lat": generator.uniform(48.8, 48.9, ROWS),
        }
    )


@pytest.fixture
def lazy():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield dd.from_pandas(people(), npartitions=5)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def two_reports(*frames: pd.DataFrame) -> int:
    """Records with more than one report over all computations."""
    every = pd.concat(frames).drop_duplicates()
    return int((every.groupby("i").size() > 1).sum())


def test_computed_again_and_again(lazy, tmp_path):
    released = wh.dask.sanitize(lazy, tmp_path / "out", **PLAN)
    first = released.compute()
    runs = [released.compute(), released.persist().compute(), released[released.i >= 0].compute()]
    assert two_reports(first, *runs) == 0
    apart = GreatCircle()(
        first.sort_values("i")[["lon", "lat"]].to_numpy(), people()[["lon", "lat"]].to_numpy()
    )
    assert apart.mean() == pytest.approx(288.5, rel=0.2)
    stated = pq.read_schema(next((tmp_path / "out").glob("*.parquet"))).metadata
    assert b"whereish" in stated


def test_attempts_that_are_run_again(lazy, tmp_path, monkeypatch):
    """Each partition is drawn three times, as after lost workers; one attempt is released."""
    original, drawn = engine._attempt_partition, []

    def again(*arguments):
        parts = [original(*arguments) for _ in range(3)]
        folder = Path(arguments[2].keywords["folder"])
        drawn.extend(pd.read_parquet(folder / part.name) for part in parts)
        return parts[1]

    monkeypatch.setattr(engine, "_attempt_partition", again)
    released = wh.dask.sanitize(lazy, tmp_path / "out", **PLAN).compute()
    assert two_reports(*drawn) == ROWS  # the attempts do differ,
    assert two_reports(released) == 0  # and one of them is seen
    assert len(released) == ROWS
    assert len(list((tmp_path / "out").iterdir())) == 5


def test_a_task_that_fails_first(tmp_path):
    """A scheduler with retries runs the whole chain again, the sanitising included."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def flaky(part: pd.DataFrame) -> pd.DataFrame:
        if len(part) and part["i"].iloc[0] >= 0:
            mark = marks / str(part["i"].iloc[0])
            if not mark.exists():
                mark.write_text("")
                raise ConnectionError("a worker was lost")
        return part

    frame = dd.from_pandas(people(), npartitions=3)
    frame = frame.map_partitions(flaky, meta=people().iloc[:0])
    failures = []
    with dask.config.set(scheduler="synchronous"):
        while True:
            try:
                released = wh.dask.sanitize(frame, tmp_path / "out", **PLAN)
                break
            except InvalidInput as error:
                failures.append(str(error))
                assert not (tmp_path / "out").exists()
                assert [p for p in names(tmp_path) if p.startswith(".")] == []
        assert len(failures) == 3
        assert all("ConnectionError" in failure for failure in failures)
        assert two_reports(released.compute(), released.compute()) == 0


def test_the_ledger_is_charged_once(lazy, tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap=wh.Epsilon.of(PLAN["epsilon"]) * 100)
    wh.dask.sanitize(lazy, tmp_path / "out", ledger=ledger, subject="who", **PLAN)
    assert [e.times for e in ledger.statement("2").entries] == [100]
    with pytest.raises(BudgetExceeded):
        wh.dask.sanitize(lazy, tmp_path / "again", ledger=ledger, subject="who", **PLAN)
    assert not (tmp_path / "again").exists()


def test_what_is_refused(lazy, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InvalidInput, match="no column 'x'"):
        wh.dask.sanitize(lazy, out, lon="x", lat="lat", epsilon="1/km")
    with pytest.raises(InvalidInput, match="no rows"):
        wh.dask.sanitize(lazy[lazy.i < 0], out, **PLAN)
    with pytest.raises(InvalidInput, match="swapped"):
        wh.dask.sanitize(lazy.assign(lat=99.5), out, **PLAN)
    with pytest.raises(InvalidInput, match="belong together"):
        wh.dask.sanitize(lazy, out, subject="who", **PLAN)
    assert names(tmp_path) == []
    out.mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        wh.dask.sanitize(lazy, out, **PLAN)


def test_what_upstream_tasks_say_is_withheld(lazy, tmp_path):
    """A parser's message quotes a true coordinate."""
    text = lazy.assign(lat=lazy.lat.map(lambda _: "48.8512x", meta=("lat", "object")))
    numbers = text.assign(lat=text.lat.astype(float))
    with pytest.raises(ValueError, match=r"48\.8512x"):  # the control
        numbers.compute()
    with pytest.raises(InvalidInput, match="the Dask job failed \\(ValueError") as caught:
        wh.dask.sanitize(numbers, tmp_path / "out", **PLAN)
    assert "48" not in str(caught.value)
    assert names(tmp_path) == []


def test_a_missing_input_is_not_the_outputs_fault(tmp_path):
    people().to_csv(tmp_path / "in.csv", index=False)
    frame = dd.read_csv(tmp_path / "in.csv")
    (tmp_path / "in.csv").unlink()
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(InvalidInput, match="the Dask job failed \\(FileNotFoundError"),
    ):
        wh.dask.sanitize(frame, tmp_path / "out", **PLAN)


def test_a_full_disk_is_the_outputs_fault(lazy, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("whereish.engines.attempts.write_table", full)
    with pytest.raises(NotWritten, match=r"No space left on device.*nothing was released"):
        wh.dask.sanitize(lazy, tmp_path / "out", **PLAN)
    assert names(tmp_path) == []
