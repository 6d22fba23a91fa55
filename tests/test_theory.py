"""docs/theory.md: each definition and theorem has a function and a test, and both exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from test_docs import resolves

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "theory.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not re.match(r"\|(-+\||\s*item)", line)
]


def test_every_source_has_its_table():
    for source in ("KP", "EG", "C", "B"):
        assert f"\n## {source}: " in PAGE
        assert f"- **{source}**: " in PAGE
    assert len(ROWS) > 50
    assert "\n## Not implemented, and why\n" in PAGE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_is_listed_exists(row):
    item, functions, tests = row
    assert item
    names = re.findall(r"`(whereish[\w.]+)`", functions)
    assert names, "no function is named"
    for name in names:
        assert resolves(name), name
    shown = re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", tests)
    assert shown, "no test is named"
    for file, name in shown:
        path = ROOT / file
        assert path.exists(), file
        if name:
            assert re.search(rf"^\s*def {name}\(", path.read_text(), re.M), f"{file}::{name}"
