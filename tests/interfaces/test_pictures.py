"""Pictures where nothing can be written: the list of fonts comes from `whereish compile`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from whereish.audit.pictures.figure import figure, saved

KEEP = """
from whereish.audit.pictures.fonts import keep_fonts
keep_fonts()
"""
DRAW = """
import logging
logging.basicConfig(level=logging.INFO)  # matplotlib says when it looks through the fonts
from whereish.audit.pictures.figure import figure, saved
drawing = figure(3, 2, "A title")
saved(drawing, "out.png")
"""


def run(programme, folder, **environment):
    done = subprocess.run(
        [sys.executable, "-c", programme],
        cwd=folder,
        env={**os.environ, "WHEREISH_CACHE": f"{folder}/cache", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("kept", [True, False])
def test_a_home_that_cannot_be_written_costs_no_search_for_fonts(kept, tmp_path):
    nowhere = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc/c", "XDG_CONFIG_HOME": "/proc/c"}
    if kept:
        run(KEEP, tmp_path)
    said = run(DRAW, tmp_path, **nowhere)
    assert ("generated new fontManager" in said) is not kept
    assert "MPLCONFIGDIR" not in said
    assert (tmp_path / "out.png").stat().st_size > 1000


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_has_the_same_bytes_twice_and_leaves_the_figure_as_it_was(ending, tmp_path):
    made = []
    for name in "ab":
        drawing = figure(3, 2, "A title")
        drawing.subplots().plot([0, 1], [0, 1])
        before = drawing.dpi
        saved(drawing, tmp_path / f"{name}.{ending}")
        assert drawing.dpi == before
        made.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert made[0] == made[1]
