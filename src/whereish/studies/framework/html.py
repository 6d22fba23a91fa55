"""One self-contained page of all runs: no script, no address, pictures in the text."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import whereish
from whereish.studies.framework.finding import Finding, Verdict
from whereish.studies.framework.published import SOURCES
from whereish.studies.framework.study import Run, Table

__all__ = ["page", "tally"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { border-top: 1px solid #bbb; padding-top: 1.5rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.85rem; display: block;
        overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left;
         vertical-align: top; font-variant-numeric: tabular-nums; }
.findings td:nth-child(2n+1):not(:last-child), .findings td:nth-child(4) { white-space: nowrap; }
.matches { border-left: 4px solid #0072b2; } .differs { border-left: 4px solid #d55e00; }
.cannot { border-left: 4px solid #999; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; } figcaption { color: #444; }
"""


_SAID = {
    Verdict.MATCHES: "match",
    Verdict.DIFFERS: "differ",
    Verdict.INCOMPARABLE: "cannot be compared",
}


def tally(findings: Iterable[Finding]) -> str:
    """How many of each verdict."""
    counts = Counter(finding.verdict for finding in findings)
    parts = ", ".join(
        f"{counts[verdict]} {said}" for verdict, said in _SAID.items() if counts[verdict]
    )
    return f"{counts.total()} published numbers" + (f": {parts}" if parts else "")


def page(runs: Sequence[Run], folder: Path, *, quick: bool) -> str:
    """The report; figures are read from `folder`, where they were written."""
    everything = [finding for run in runs for finding in run.findings]
    kind = "quick run" if quick else "full run"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " img-src data:; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>whereish reproduce</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        "<h1>whereish reproduce</h1>",
        f"<p>whereish {escape(whereish.__version__)}, {kind},"
        f" {sum(run.seconds for run in runs):.0f} s of CPU. {escape(tally(everything))}.</p>",
        "<ul>",
        *(
            f'<li><a href="#{run.study.name}">{escape(run.study.name)}</a>'
            f" {escape(run.study.title)}: {escape(tally(run.findings))}</li>"
            for run in runs
        ),
        "</ul>",
        *(_section(run, folder) for run in runs),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _section(run: Run, folder: Path) -> str:
    study = run.study
    parts = [
        f'<section id="{study.name}">\n<h2>{escape(study.title)}</h2>',
        f"<p>{escape(SOURCES[study.source])}. Study {escape(study.name)}, seed {study.seed},"
        f" {run.seconds:.1f} s of CPU.</p>",
    ]
    if run.findings:
        parts.append(_findings(run.findings))
    parts += [f"<p>{escape(note)}</p>" for note in run.notes]
    parts += [_table(table) for table in run.tables]
    for drawing in run.drawings:
        data = (folder / f"{study.name}-{drawing.name}.png").read_bytes()
        inline = base64.b64encode(data).decode("ascii")
        caption = escape(drawing.caption)
        parts.append(
            f'<figure><img alt="{caption}" src="data:image/png;base64,{inline}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return "\n".join([*parts, "</section>"])


def _findings(findings: Sequence[Finding]) -> str:
    rows = "\n".join(
        f'<tr class="{finding.verdict.split()[0]}"><td>{escape(finding.published.where)}</td>'
        f"<td>{escape(finding.published.setting)}</td><td>{escape(str(finding.published))}</td>"
        f"<td>{escape(finding.obtained_text)}</td><td>{escape(finding.sentence)}</td></tr>"
        for finding in findings
    )
    return (
        '<table class="findings">\n'
        "<tr><th>where</th><th>setting</th><th>published</th><th>obtained</th>"
        f"<th>verdict</th></tr>\n{rows}\n</table>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    caption = escape(table.title)
    return f"<table>\n<caption>{caption}</caption>\n<tr>{head}</tr>\n{rows}\n</table>"
