"""Build the documentation site: run the examples of every page, insert what they print, render.

A block that begins with ```` ```python exec="text" ```` is shown with what it printed; of
``exec="markdown"`` and ``exec="html"`` only what was printed is shown.  The blocks of a page run
in order, in one process and one empty folder; one that raises ends the build.  Then Zensical
renders the pages, without network, and every link between them is looked up.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
DOCS, BUILD = ROOT / "docs", ROOT / "build"
FENCE = re.compile(r'^```python exec="(text|markdown|html)"\n(.*?)^```$', re.M | re.S)


def with_results(text: str, page: str) -> str:
    """A page's Markdown, with what its examples print."""
    names: dict[str, object] = {"__name__": "page", "ROOT": str(ROOT)}

    def run(found: re.Match[str]) -> str:
        kind, code = found.groups()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        result = printed.getvalue().rstrip()
        if kind == "text":
            return f"```python\n{code}```\n\n```text\n{result}\n```"
        return result if kind == "markdown" else f"<div>\n{result}\n</div>"

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return FENCE.sub(run, text)
        finally:
            os.chdir(here)


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
            page.write_text(with_results(text, name), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    broken = broken_links(BUILD / "site")
    print("\n".join(f"broken link: {link}" for link in broken) or "every link leads somewhere")
    said = done.stdout + done.stderr
    warned = done.returncode != 0 or "No issues found" not in said or "griffe:" in said
    return int(warned) + len(broken)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
