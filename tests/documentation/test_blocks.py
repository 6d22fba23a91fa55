"""Every block of code in the documentation runs, page by page, in one process and one folder.

Blocks of Python share a page's names; lines of shell that call ``whereish`` go to the command
line.  What a page takes for granted ("sites", a file of tracts) is made by its prelude below.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from whereish.interfaces.cli import cli

from documentation.preludes import PRELUDES, PYTHON_ELSEWHERE, SHELL_ELSEWHERE

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(python|sh|bash)\b([^\n]*)\n(.*?)^```$", re.M | re.S)
_CALL = re.compile(r"(echo [^|]+\| )?whereish ")
OWN_TEST = {
    "extending.md",  # tests/test_extending.py runs it, in a copy of the package
    "spark-and-dask.md",  # test_spark_and_dask.py does, in a process of its own
}


def pages() -> list[str]:
    found = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    return sorted(
        page.relative_to(ROOT).as_posix()
        for page in found
        if FENCE.search(page.read_text()) and page.name not in OWN_TEST
    )


def commands(text: str) -> list[list[str]]:
    """The calls of whereish in a block of shell, comments and redirections cut off."""
    joined = text.replace("\\\n", " ")
    lines = (line[line.index("whereish ") :] for line in joined.splitlines() if _CALL.match(line))
    words = (shlex.split(re.split(" [<>] ", line)[0], comments=True) for line in lines)
    return [line[1:] for line in words]


@pytest.mark.parametrize("page", pages())
def test_every_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")

    names: dict = {"__name__": "page", "ROOT": str(ROOT)}
    exec(compile(PRELUDES.get(page, ""), f"prelude of {page}", "exec"), names)
    for number, (language, _, text) in enumerate(FENCE.findall((ROOT / page).read_text()), 1):
        if language == "python" and page in PYTHON_ELSEWHERE:
            compile(text, f"{page}, block {number}", "exec")
        elif language == "python":
            exec(compile(text, f"{page}, block {number}", "exec"), names)
        for arguments in commands(text) if language != "python" else ():
            if not any(arguments[: len(skip)] == list(skip) for skip in SHELL_ELSEWHERE):
                monkeypatch.setattr("sys.stdin", names.get("standard_input", lambda: None)())
                cli(arguments, standalone_mode=False)
