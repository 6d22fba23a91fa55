"""``whereish workbench``: the page on which an epsilon can be seen."""

from __future__ import annotations

from pathlib import Path

import click

from whereish.errors import MissingExtra
from whereish.interfaces.cli.parameters import WholeType, file_option

__all__ = ["command"]


@click.command("workbench")
@click.option("--port", type=WholeType(0, 65_535), default=8791, help="Port; 0 takes a free one.")
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@file_option(
    "--basemap",
    "base_map",
    help="PMTiles file with streets (Protomaps' layers), drawn over the world's coasts.",
)
@click.option(
    "--upload-mb", type=WholeType(1, 65_536), default=512, help="Largest upload, in megabytes."
)
@click.option(
    "--sampler",
    "samplers",
    multiple=True,
    metavar="FILE.py:NAME",
    help="A function from (n, 2) metres to reports that may be audited; may be given again.",
)
def command(
    port: int,
    no_browser: bool,
    base_map: Path | None,
    upload_mb: int,
    samplers: tuple[str, ...],
) -> None:
    """Open a page on this machine to see what an epsilon means.

    It listens on 127.0.0.1 alone, and only the address that it prints lets one in.  Nothing leaves
    the machine: the base map is in the package.  Uploads stay in a private folder, in memory where
    the system has one, which is removed when the command ends, however it ends.
    """
    try:
        import msgspec  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("msgspec, starlette and uvicorn", "workbench") from None
    from whereish.interfaces.workbench.server import serve

    serve(
        port=port,
        open_browser=not no_browser,
        say=lambda address: click.echo(f"the workbench is at {address}"),
        base_map=base_map,
        upload_mb=upload_mb,
        samplers=samplers,
    )
