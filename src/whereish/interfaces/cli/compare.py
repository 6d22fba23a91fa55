"""``whereish compare``: the finite mechanisms on one prior, side by side."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.cli.outputs import check_output, require_matplotlib
from whereish.interfaces.cli.parameters import POSITIVE, SITES, level_options
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.mechanisms.channels.channel import Channel
    from whereish.space.sites import Sites

__all__ = ["command"]


@dataclass(frozen=True)
class Line:
    """One mechanism's figures."""

    mechanism: str
    keeps_epsilon: bool
    quality_loss_m: float
    adversary_error_m: float
    identification: float


@click.command("compare")
@SITES
@level_options("to compare at", noise="The level of Laplace noise", required=True)
@click.option("--gap", type=POSITIVE, default=1e-3, show_default=True, help="For the optimum.")
@click.option("--zone", help="Side of the square zones for cloaking, as '2 km'; x, y sites only.")
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw the figures, as .png.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    source: Path,
    epsilon: Epsilon,
    gap: float,
    zone: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare quality loss and adversary error of the finite mechanisms.

    OptPriv is solved for the optimum's loss; it maximises the adversary's error for a
    known prior and keeps no epsilon.
    """
    from whereish.audit.adversary import adversary_error, identification
    from whereish.audit.utility import quality_loss
    from whereish.data.site_files import read_sites

    if plot is not None:
        check_output(plot, overwrite=True, suffix=".png")
        require_matplotlib()
    sites, prior = read_sites(source, epsilon)
    cloaking = None if zone is None else _cloaking(sites, prior, zone)
    lines = [
        Line(
            name,
            private,
            quality_loss(channel, prior),
            adversary_error(channel, prior),
            identification(channel, prior).after,
        )
        for name, private, channel in _mechanisms(sites, prior, epsilon, gap, cloaking)
    ]
    if as_json:
        click.echo(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        _print_table(lines)
    if plot is not None:
        _draw(lines, plot)


def _mechanisms(
    sites: Sites,
    prior: FloatArray | None,
    epsilon: Epsilon,
    gap: float,
    cloaking: Channel | None,
) -> list[tuple[str, bool, Channel]]:
    from whereish.mechanisms.channels.cloaking import identity_channel, uniform_channel
    from whereish.mechanisms.channels.exponential import exponential_channel
    from whereish.mechanisms.channels.opt_priv import opt_priv_channel
    from whereish.mechanisms.channels.optimal import optimal_channel
    from whereish.mechanisms.channels.remap import BayesianRemap

    optimum = optimal_channel(sites, prior, epsilon, gap=gap)
    simple = {"exponential": exponential_channel(sites, epsilon)}
    simple |= _where_they_exist(sites, epsilon)
    game = opt_priv_channel(sites, prior, most_loss=optimum.loss)
    return [
        ("optimal", True, optimum),
        *(
            line
            for name, channel in simple.items()
            for line in (
                (name, True, channel),
                (f"{name}, remapped", True, channel >> BayesianRemap(prior)),
            )
        ),
        *([] if cloaking is None else [("cloaking", False, cloaking)]),
        ("OptPriv at the optimum's loss", False, game),
        ("uniform", True, uniform_channel(sites)),
        ("identity", False, identity_channel(sites)),
    ]


def _where_they_exist(sites: Sites, epsilon: Epsilon) -> dict[str, Channel]:
    """Mechanisms that not all sites allow; those left out are named on standard error."""
    from whereish.mechanisms.channels.laplace import laplace_channel
    from whereish.mechanisms.channels.tight import tight_channel

    found = {}
    for name, build in (("tight", tight_channel), ("planar Laplace", laplace_channel)):
        try:
            found[name] = build(sites, epsilon)
        except (InvalidInput, NotPrivate) as refusal:
            click.echo(f"{name} is left out: {refusal}", err=True)
    return found


def _cloaking(sites: Sites, prior: FloatArray | None, zone: str) -> Channel:
    import numpy as np

    from whereish.mechanisms.channels.cloaking import cloaking_channel
    from whereish.space.plane import Plane

    if not isinstance(sites.points.space, Plane):
        raise InvalidInput("--zone needs sites with x and y in metres")
    corner = np.floor(sites.coordinates / Length.positive(zone, name="zone").m)
    _, label = np.unique(corner, axis=0, return_inverse=True)
    return cloaking_channel(sites, label.ravel(), prior=prior)


def _print_table(lines: list[Line]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("mechanism", "keeps eps", "quality loss", "adversary error", "identified")
    for line in lines:
        table.add_row(
            line.mechanism,
            "yes" if line.keeps_epsilon else "no",
            f"{line.quality_loss_m:.1f} m",
            f"{line.adversary_error_m:.1f} m",
            f"{line.identification:.1%}",
        )
    Console(width=100).print(table)


def _draw(lines: list[Line], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for line in lines:
        marker = "o" if line.keeps_epsilon else "x"
        axes.plot(line.quality_loss_m, line.adversary_error_m, marker, label=line.mechanism, ms=9)
    axes.axline((0, 0), slope=1, color="0.8", zorder=0)
    axes.set_xlabel("quality loss (m)")
    axes.set_ylabel("adversary error (m)")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
