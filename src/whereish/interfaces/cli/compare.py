"""``whereish compare``: the finite mechanisms on one prior, side by side."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.outputs import PICTURES, check_output, require_matplotlib
from whereish.interfaces.cli.parameters import POSITIVE, SITES, level_options
from whereish.interfaces.cli.terminal import text_table
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.space.sites import Sites

__all__ = ["command"]


@click.command("compare")
@SITES
@level_options("to compare at", noise="The level of Laplace noise", required=True)
@click.option("--gap", type=POSITIVE, default=1e-3, show_default=True, help="For the optimum.")
@click.option("--zone", help="Side of the square zones for cloaking, as '2 km'; x, y sites only.")
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Also draw the figures: .png, .svg or .pdf."
)
@click.option("--latex", is_flag=True, help="Print a LaTeX table.")
@click.option(
    "--time", "over_time", is_flag=True, help="Loss against CPU time instead, optimum included."
)
@click.option("--time-limit", type=POSITIVE, help="Seconds for the optimum, with --time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    source: Path,
    epsilon: Epsilon,
    gap: float,
    zone: str | None,
    plot: Path | None,
    latex: bool,
    over_time: bool,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Compare quality loss and adversary error of the finite mechanisms.

    OptPriv is solved for the optimum's loss; it maximises the adversary's error for a
    known prior and keeps no epsilon.

    With --time: what the quick mechanisms lose after the Bayesian remap, and the optimum as it
    improves, each with the CPU seconds it took and how far it may be above the optimum.
    """
    from whereish.audit.comparison import compare
    from whereish.data.site_files import read_sites

    if plot is not None:
        check_output(plot, overwrite=True, suffix=PICTURES)
        require_matplotlib()
    if over_time and (zone is not None or plot is not None or latex):
        raise InvalidInput("--time is a table of its own: leave out --zone, --plot and --latex")
    if time_limit is not None and not over_time:
        raise InvalidInput("--time-limit belongs to --time")
    sites, prior = read_sites(source, epsilon, lambda line: click.echo(line, err=True))
    if over_time:
        _over_time(sites, prior, epsilon, gap, time_limit, as_json)
        return
    found = compare(
        sites,
        prior,
        epsilons=[epsilon],
        gap=gap,
        zone=zone,
        progress=_show if sys.stderr.isatty() else None,
    )
    if as_json:
        click.echo(json.dumps(found.to_json()["lines"], indent=2))
    else:
        click.echo(found.to_latex() if latex else str(found))
    if as_json or latex:
        for refusal in found.left_out:
            click.echo(f"left out: {refusal}", err=True)
    if plot is not None:
        found.plot(plot)


def _show(name: str, done: int, total: int) -> None:
    click.echo(f"{done + 1} of {total}: {name}", err=True)


def _over_time(
    sites: Sites,
    prior: FloatArray | None,
    epsilon: Epsilon,
    gap: float,
    time_limit: float | None,
    as_json: bool,
) -> None:
    from whereish.interfaces.anytime import loss_over_time

    moments = loss_over_time(sites, prior, epsilon, gap=gap, time_limit=time_limit)
    if as_json:
        click.echo(json.dumps([asdict(moment) for moment in moments], indent=2))
        return
    rows = [
        (
            moment.mechanism,
            f"{moment.cpu_s:.2f} s",
            f"{moment.loss:.1f} m",
            f"at most {moment.gap / max(1 - moment.gap, 1e-9):.2%}",
            "" if moment.known_gap is None else f"gap {moment.known_gap:.2%}",
        )
        for moment in moments
    ]
    head = ("mechanism", "CPU", "quality loss", "above the optimum", "known then")
    click.echo(text_table(head, rows))
