"""Build the documentation site: run the examples of every page, insert what they print, render.

A block that begins with ```` ```python exec="text" ```` is shown with what it printed; of
``exec="markdown"`` and ``exec="html"`` only what was printed is shown.  The blocks of a page run
in order, in one process and one empty folder; one that raises ends the build.  Then Zensical
renders the pages, without network, and every link between them is looked up.  Tutorials are
also written as executed Jupyter notebooks.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
DOCS, BUILD = ROOT / "docs", ROOT / "build"
FENCE = re.compile(r'^```python exec="(text|markdown|html)"\n(.*?)^```$', re.M | re.S)


@dataclass(frozen=True)
class Example:
    """A block of code that was run: how it is shown, itself, and what it printed."""

    kind: str
    code: str
    printed: str

    def markdown(self) -> str:
        """As the site shows it."""
        if self.kind == "text":
            return f"```python\n{self.code}```\n\n``` {{.text .output}}\n{self.printed}\n```"
        return self.printed if self.kind == "markdown" else f"<div>\n{self.printed}\n</div>"

    def cell(self) -> dict[str, object]:
        """As a notebook keeps it."""
        shown = {"output_type": "stream", "name": "stdout", "text": f"{self.printed}\n"}
        if self.kind != "text":
            data = {f"text/{self.kind}": self.printed}
            shown = {"output_type": "display_data", "data": data, "metadata": {}}
        return {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "source": self.code.rstrip(),
            "outputs": [shown],
        }


def pieces(text: str, page: str) -> list[str | Example]:
    """A page's prose and examples in order; the examples are run, in one empty folder."""
    names: dict[str, object] = {"__name__": "page", "ROOT": str(ROOT)}
    found: list[str | Example] = []
    here, end = Path.cwd(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for match in FENCE.finditer(text):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(match[2], page, "exec"), names)
                result = printed.getvalue().rstrip()
                found += [text[end : match.start()], Example(match[1], match[2], result)]
                end = match.end()
        finally:
            os.chdir(here)
    return [*found, text[end:]]


def with_results(found: list[str | Example]) -> str:
    """A page's Markdown, with what its examples print."""
    return "".join(part if isinstance(part, str) else part.markdown() for part in found)


def notebook(found: list[str | Example]) -> str:
    """The page as an executed Jupyter notebook."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": part.strip()}
        if isinstance(part, str)
        else part.cell()
        for part in found
        if not isinstance(part, str) or part.strip()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(whole, indent=1, ensure_ascii=False)


_CODE = re.compile(r"(?<!<span></span>)<code>([^<]{16,})</code>")


def soften(page: str) -> str:
    """Let long names of code break after dots, slashes, colons and underscores, in prose only."""

    def softened(match: re.Match[str]) -> str:
        return "<code>" + re.sub(r"([./_:]+)", r"\1<wbr>", match[1]) + "</code>"

    return _CODE.sub(softened, page)


class _Page(HTMLParser):
    """The links of a page, and the names that links may end in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {value for key in ("id", "name") if (value := given.get(key))}
        self.links += [value for key in ("href", "src") if (value := given.get(key))]


def broken_links(site: Path) -> list[str]:
    """Links inside the site that lead nowhere, and whatever a page would fetch from elsewhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            if not target.exists() or (known and unquote(parts.fragment) not in known.names):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def main() -> int:
    """Build into build/site; the number of things that are wrong is the exit code."""
    shutil.rmtree(BUILD / "docs", ignore_errors=True)
    shutil.copytree(DOCS, BUILD / "docs")
    os.environ.setdefault("MPLBACKEND", "agg")
    for page in sorted((BUILD / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if FENCE.search(text):
            name = page.relative_to(BUILD / "docs").as_posix()
            print(f"examples of {name}", flush=True)
            found = pieces(text, name)
            link = ""
            if name.startswith("tutorials/"):
                beside = page.with_suffix(".ipynb")
                beside.write_text(notebook(found), encoding="utf-8")
                link = f"\nThis page as an executed notebook: [{beside.name}]({beside.name})\n"
            page.write_text(with_results(found) + link, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    here = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    ours = {**os.environ, "PYTHONPATH": here}  # commands of this tree, not of one installed
    done = subprocess.run(command, cwd=ROOT, env=ours, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    for page in (BUILD / "site").rglob("*.html"):
        page.write_text(soften(page.read_text(encoding="utf-8")), encoding="utf-8")
    broken = broken_links(BUILD / "site")
    print("\n".join(f"broken link: {link}" for link in broken) or "every link leads somewhere")
    said = done.stdout + done.stderr
    warned = done.returncode != 0 or "No issues found" not in said or "griffe:" in said
    return int(warned) + len(broken)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
