"""Run studies one after the other, and write what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from whereish.errors import InvalidInput
from whereish.studies.figures import styled, write_figure
from whereish.studies.framework.html import page
from whereish.studies.framework.published import published_numbers
from whereish.studies.framework.study import Run, Study, Watch

__all__ = ["Told", "run_studies", "write_results"]

Told = Callable[[Run], None]


def run_studies(
    studies: Sequence[Study], *, quick: bool = False, watch: Watch | None = None
) -> Iterator[Run]:
    """The finished runs, as they finish.

    Raises
    ------
    InvalidInput
        If a study leaves a published number of its own without a verdict.
    """
    for study in studies:
        run = Run(study, quick=quick, watch=watch)
        started = time.process_time()
        with styled():
            study.run(run)
        run.seconds = time.process_time() - started
        found = {finding.published.key for finding in run.findings}
        left = [each.key for each in published_numbers(study.name) if each.key not in found]
        if left:
            raise InvalidInput(f"the study {study.name} left without a verdict: {', '.join(left)}")
        yield run


def write_results(runs: Sequence[Run], folder: Path, *, quick: bool) -> Path:
    """Figures as PNG and SVG and one HTML page with all of them in `folder`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        for drawing in run.drawings:
            write_figure(drawing.figure, folder / f"{run.study.name}-{drawing.name}")
    report = folder / "report.html"
    report.write_text(page(runs, folder, quick=quick), encoding="utf-8")
    return report
