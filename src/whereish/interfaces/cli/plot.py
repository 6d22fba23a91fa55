"""``whereish plot``: a saved mechanism in one picture."""

from __future__ import annotations

from pathlib import Path

import click

from whereish.interfaces.cli.outputs import PICTURES, check_output, require_matplotlib
from whereish.interfaces.cli.parameters import output_option

__all__ = ["command"]


@click.command("plot")
@click.argument("file", type=click.Path(path_type=Path))
@output_option("The picture: .png, .svg or .pdf.")
def command(file: Path, output: Path) -> None:
    """Draw the mechanism saved in FILE: a privacy map's, or a channel.

    A map is drawn with what becomes of three public places, of low, middle and high level.
    """
    from whereish.audit.pictures import plot
    from whereish.mechanisms.saved import load

    check_output(output, overwrite=True, suffix=PICTURES)
    require_matplotlib()
    plot(load(file), output)
    click.echo(f"wrote {output.name}")
