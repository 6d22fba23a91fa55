"""``whereish build``: build a mechanism and save it with its certificate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.interfaces.cli.build_map import build_map
from whereish.interfaces.cli.outputs import MECHANISMS, check_output
from whereish.interfaces.cli.parameters import (
    POSITIVE,
    SITES,
    describe,
    level_options,
    output_option,
)
from whereish.interfaces.cli.terminal import StatusLine
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.solvers.optimal.programme import SolveProgress

__all__ = ["command"]


@click.group("build")
def command() -> None:
    """Build a mechanism and save it with its certificate."""


command.add_command(build_map)


@command.command("optimal")
@SITES
@level_options("of the channel", noise="The level of Laplace noise", required=True)
@output_option("The .npz.")
@click.option(
    "--loss", type=click.Choice(["euclidean", "squared"]), default="euclidean", show_default=True
)
@click.option(
    "--gap",
    type=POSITIVE,
    default=1e-4,
    show_default=True,
    help="Certified relative gap to stop at.",
)
@click.option(
    "--dilation",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Above 1: the spanner approximation with this factor.",
)
@click.option("--time-limit", type=POSITIVE, help="Seconds; the best channel by then is saved.")
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
def optimal(
    source: Path,
    epsilon: Epsilon,
    output: Path,
    loss: str,
    gap: float,
    dilation: float,
    time_limit: float | None,
    overwrite: bool,
) -> None:
    """Build the channel of least expected loss that keeps epsilon on the sites."""
    from whereish.data.site_files import read_sites
    from whereish.mechanisms.channels.optimal import optimal_channel

    check_output(output, overwrite=overwrite, suffix=MECHANISMS)
    sites, prior = read_sites(source, epsilon, lambda line: click.echo(line, err=True))
    with live_bounds() as show:
        channel = optimal_channel(
            sites,
            prior,
            epsilon,
            loss=loss,
            gap=gap,
            dilation=dilation,
            time_limit=time_limit,
            progress=show,
        )
    channel.save(output)
    unit = "m" if loss == "euclidean" else "m²"
    click.echo(
        f"{output.name}: {len(channel.secrets)} places, {len(channel.reports)} reports,"
        f" expected loss {channel.loss:.6g} {unit}, bound {channel.lower_bound:.6g} {unit},"
        f" gap {channel.gap:.2g} ({channel.status})"
    )
    click.echo(describe(channel.guarantee), err=True)


@contextlib.contextmanager
def live_bounds() -> Iterator[Callable[[SolveProgress], None]]:
    """A line with upper bound, lower bound and gap that follows the solve, on a terminal."""
    with StatusLine() as line:
        yield lambda progress: line.show(
            f"{progress.stage}: upper {progress.upper:.6g}, lower {progress.lower:.6g},"
            f" gap {progress.gap:.2e}, {progress.seconds:.0f} s"
        )
