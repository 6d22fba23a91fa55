"""What jobs work on."""

from __future__ import annotations

import pytest

import whereish as wh
from stress import faults


@pytest.fixture
def case(tmp_path):
    """A source, an output and a ledger."""
    faults.write_people(tmp_path / "in.parquet", 70)
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap="1/m")
    return tmp_path / "in.parquet", tmp_path / "out.parquet", ledger
