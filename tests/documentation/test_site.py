"""The site builds from a clean copy without network and warnings, and its links lead somewhere."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / "scripts" / "site.py"))
NOWHERE = "http://127.0.0.1:9"  # whatever asks for the network is refused at once


@pytest.mark.slow
def test_the_site_builds_without_network_and_its_links_lead_somewhere(tmp_path):
    for name in ("docs", "src", "scripts"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    for name in ("mkdocs.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
    done = subprocess.run(
        [sys.executable, "scripts/site.py"],
        cwd=tmp_path,
        env={**os.environ, **proxies, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    pages = {path.name for path in (tmp_path / "build" / "site").rglob("*.html")}
    wanted = {path.with_suffix(".html").name for path in (ROOT / "docs").rglob("*.md")}
    assert wanted <= pages
    reference = tmp_path / "build" / "site" / "reference" / "python" / "blur-points.html"
    assert "ideal_quantile" in reference.read_text()
    assert ":func:" not in reference.read_text()
    notebooks = list((tmp_path / "build" / "site" / "tutorials").glob("*.ipynb"))
    assert len(notebooks) == 4


def test_the_page_of_python_names_is_current():
    pages = runpy.run_path(str(ROOT / "scripts" / "python_reference.py"))["pages"]()
    home = ROOT / "docs" / "reference"
    for path, text in pages.items():
        assert (home / path).read_text() == text, "run `make docs`"
    assert {f"python/{path.name}" for path in (home / "python").iterdir()} < set(pages)


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in config


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">good</a><a href="b.html#there">bad</a><a href="c.html">bad</a>'
    )
    assert SITE["broken_links"](tmp_path) == ["a.html: b.html#there", "a.html: c.html"]


PAGE = '# A\n```python exec="text"\nprint(1)\n```\n```python exec="markdown"\nprint("| 2 |")\n```\n'


def test_an_example_is_shown_with_what_it_printed():
    shown = SITE["with_results"](SITE["pieces"](PAGE, "p"))
    assert shown == "# A\n```python\nprint(1)\n```\n\n``` {.text .output}\n1\n```\n| 2 |\n"


def test_long_names_may_break_and_blocks_of_code_may_not():
    block = "<pre><span></span><code>whereish.mechanisms.maps.eikonal</code></pre>"
    name = "<td><code>whereish.mechanisms.maps</code> and <code>wh.blur</code></td>"
    softened = "<td><code>whereish.<wbr>mechanisms.<wbr>maps</code> and <code>wh.blur</code></td>"
    assert SITE["soften"](block + name) == block + softened


def test_examples_write_into_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SITE["pieces"](PAGE.replace("print(1)", "open('left.txt', 'w').close()"), "p")
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.iterdir())


def test_an_example_that_raises_ends_the_build():
    with pytest.raises(ZeroDivisionError):
        SITE["pieces"](PAGE.replace("print(1)", "1 / 0"), "p")


def test_a_tutorial_is_an_executed_notebook():
    cells = json.loads(SITE["notebook"](SITE["pieces"](PAGE, "p")))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code"]
    assert cells[1]["outputs"][0]["text"] == "1\n"
    assert cells[2]["outputs"][0]["data"] == {"text/markdown": "| 2 |"}
