"""Rows that cannot be released are named by number, in files, frames and partitions."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whereish as wh
from whereish.engines.attempts import write_attempt
from whereish.errors import InvalidInput
from whereish.publish.formats.tables import BATCH_ROWS
from whereish.publish.rows.bad_rows import BadRows, numbered_from
from whereish.publish.rows.plan import build_sanitizer

PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km"}
ROWS = BATCH_ROWS + 9


def people(**columns: object) -> pa.Table:
    places = {"lon": np.full(ROWS, 2.35), "lat": np.full(ROWS, 48.85)}
    return pa.table({**places, "who": ["p"] * ROWS, **columns})


def lacking(value: object, at: list[int]) -> list[object]:
    return [None if row in at else value for row in range(ROWS)]


def test_a_missing_place_is_named_behind_the_first_batch(tmp_path):
    table = people(lat=lacking(48.85, [3, BATCH_ROWS + 2]))
    sentence = "column 'lat' must have a place in every row; 1 are missing, in row {}: drop those"
    with pytest.raises(InvalidInput, match=sentence.format(4)):
        wh.sanitize(table, **PLAN)
    with pytest.raises(InvalidInput, match=sentence.format(BATCH_ROWS - 1)):
        wh.sanitize(table.slice(4), **PLAN)
    pq.write_table(people(lat=lacking(48.85, [BATCH_ROWS + 2])), tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match=sentence.format(BATCH_ROWS + 3)) as caught:
        wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.parquet", **PLAN)
    assert type(caught.value) is InvalidInput
    assert "48" not in str(caught.value)


def test_subjects_and_levels_are_named_too(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1/m")
    nobody = people(who=["" if row == 6 else "p" for row in range(ROWS)])
    with pytest.raises(InvalidInput, match=r"'who' must name a subject in every row.*in row 7: a"):
        wh.sanitize(nobody, **PLAN, ledger=ledger, subject="who")
    levels = people(level=[5.0 if row in (1, 2) else 1e-4 for row in range(ROWS)])
    with pytest.raises(InvalidInput, match=r"at most epsilon = 0\.001; 2 do not, in rows 2, 3$"):
        wh.sanitize(levels, **PLAN, epsilon_column="level")


def test_a_partition_says_which_it_is(tmp_path):
    batches = people(lat=lacking(48.85, [BATCH_ROWS + 2])).to_batches(BATCH_ROWS)
    sentence = f"in row {BATCH_ROWS + 3} of partition 5: drop"
    with pytest.raises(InvalidInput, match=sentence) as caught:
        write_attempt(batches, 5, kernel=build_sanitizer(PLAN), subject=None, folder=str(tmp_path))
    # What a worker raises is sent to the driver.
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_many_rows_are_counted_and_columns_may_have_any_name():
    sentence = r"^'\{\}', in rows 11, 12, 13, 14, 15 and 3 more!$"
    with pytest.raises(InvalidInput, match=sentence), numbered_from(10):
        raise BadRows("'{}'", np.ones(8, bool), "!")


def test_which_rows_are_outside_a_box_is_not_said():
    """That would say where they are."""
    box = wh.Box(2.0, 48.0, 3.0, 49.0)
    outside = people(lon=[5.5 if row == 4 else 2.35 for row in range(ROWS)])
    with pytest.raises(InvalidInput, match="1 rows lie outside") as caught:
        wh.sanitize(outside, **PLAN, bbox=box)
    assert "5" not in str(caught.value)
