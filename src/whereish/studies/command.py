"""``whereish reproduce``: redo the tables and figures of the sources, with a verdict on each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.terminal import StatusLine, text_table

if TYPE_CHECKING:
    from whereish.studies.framework.study import Run, Study

__all__ = ["command"]

_UNEXPLAINED = 3


@click.command("reproduce")
@click.argument("name")
@click.option(
    "--quick",
    is_flag=True,
    help="Coarser grids and fewer draws: one minute of CPU instead of five.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for figures (PNG and SVG) and report.html.",
)
def command(name: str, quick: bool, output: Path | None) -> None:
    """Redo a study of the sources, and set published and obtained numbers side by side.

    NAME is a study, a source (b, c, eg, field, kp), 'all', or 'list' to see them.  The exit code
    is 3 if a number differs and the study does not say why.
    """
    from whereish.studies.framework.html import tally
    from whereish.studies.framework.registry import STUDIES, chosen, study
    from whereish.studies.framework.runner import run_studies, write_results

    if name == "list":
        _print_list([study(each) for each in STUDIES])
        return
    if output is not None and output.exists() and not output.is_dir():
        raise InvalidInput("the output must be a folder; a file has its name")
    runs: list[Run] = []
    with StatusLine() as line:
        for run in run_studies(chosen(name), quick=quick, watch=line.count):
            line.clear()
            _print_run(run)
            runs.append(run)
    findings = [finding for run in runs for finding in run.findings]
    click.echo(f"{tally(findings)}; {sum(run.seconds for run in runs):.0f} s of CPU")
    if output is not None:
        report = write_results(runs, output, quick=quick)
        click.echo(f"figures and report: {report}")
    if any(finding.unexplained for finding in findings):
        click.echo("some numbers differ without a reason", err=True)
        sys.exit(_UNEXPLAINED)


def _print_list(studies: list[Study]) -> None:
    from whereish.studies.framework.published import published_numbers

    for study in studies:
        count = len(published_numbers(study.name))
        click.echo(f"{study.name:<18} {count:>3} published  {study.title}")


def _print_run(run: Run) -> None:
    study = run.study
    click.echo(f"\n{study.name}: {study.title} (seed {study.seed}, {run.seconds:.1f} s of CPU)")
    for finding in run.findings:
        published = finding.published
        click.echo(f"  {published.where}: {published.setting}")
        click.echo(
            f"    published {published}, obtained {finding.obtained_text}: {finding.sentence}"
        )
    for note in run.notes:
        click.echo(f"  {note}")
    for table in run.tables:
        click.echo(f"  {table.title}")
        click.echo(text_table(table.head, table.rows, "    "))
