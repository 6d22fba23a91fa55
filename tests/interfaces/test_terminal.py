"""Progress is one line, on a terminal alone; tables are plain text."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from whereish.interfaces.cli import terminal
from whereish.interfaces.cli.terminal import StatusLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(terminal, "_PAUSE_S", 0.0)
    monkeypatch.setenv("COLUMNS", "60")
    return stream


def test_a_line_is_written_over_and_taken_away(shown):
    with StatusLine() as line:
        line.count("rows", 0, 2_000)
        line.count("rows", 1_000, 2_000)
    first, second, last = shown.getvalue().split("\r\x1b[K")[1:]
    assert first == f"rows [{'.' * 30}] 0 of 2,000"
    assert second.startswith(f"rows [{'#' * 15}{'.' * 15}] 1,000 of 2,000, ")
    assert last == ""


def test_a_line_stays_one_line_and_needs_no_total(shown):
    line = StatusLine()
    line.count("rows", 12_345, None)
    line.show("x" * 200)
    assert shown.getvalue().split("\r\x1b[K")[1:] == ["rows 12,345", "x" * 59]


@pytest.mark.parametrize("up_s", [0.0, 60.0, 2.0**20])
def test_it_is_drawn_ten_times_a_second_at_most(shown, monkeypatch, up_s):
    """At once, however long the machine has been up, and then after pauses."""
    now = [up_s]
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(terminal, "_PAUSE_S", 1 / 8)
    line = StatusLine()
    for step in range(1000):
        line.count("rows", step, 1000)
        now[0] += 1 / 1024
    assert shown.getvalue().count("\r") == 8


def test_nothing_is_written_where_there_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=stream))
    with StatusLine() as line:
        line.count("rows", 1, 2)
    assert stream.getvalue() == ""
