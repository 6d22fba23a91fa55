"""What the stress says in the end: nothing that was not tried counts as met."""

from __future__ import annotations

import pytest

from benchmarks.measure import Bars
from stress import run as stress


@pytest.fixture
def skipped(monkeypatch):
    monkeypatch.setattr(Bars, "skipped", [])
    return Bars.skipped


def test_the_verdict_names_what_was_not_tried(skipped, monkeypatch):
    assert stress.verdict([], skipped) == "all bars met"
    monkeypatch.setattr(stress, "ogrinfo_lacks", lambda: "no ogrinfo is installed")
    assert stress.readers(10) == []
    assert stress.verdict([], skipped) == "all bars met, but not tried: ogrinfo"
    assert stress.verdict(["a bar"], skipped) == "bars missed:\n  a bar\nnot tried: ogrinfo"


@pytest.mark.parametrize(
    ("summary", "returned", "failed"),
    [
        ("33 passed in 60.00s", 0, 0),
        ("7 passed, 26 skipped in 9.00s", 0, 1),
        ("26 skipped in 0.10s", 0, 1),
        ("1 failed, 31 passed, 1 skipped in 9.00s", 1, 2),
    ],
)
def test_a_skipped_test_of_the_engines_is_a_failure(monkeypatch, summary, returned, failed):
    class Done:
        stdout, returncode = f"...\n{summary}\n", returned

    monkeypatch.setattr(stress.subprocess, "run", lambda *_, **__: Done)
    assert len(stress.engines()) == failed
