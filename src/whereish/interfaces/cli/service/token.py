"""``whereish token``: who may ask the service, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.interfaces.cli.parameters import file_option

if TYPE_CHECKING:
    from whereish.interfaces.service.tokens import TokenFile

__all__ = ["command"]

_CONFIG = file_option(
    "--config",
    "path",
    help="The service's TOML file: the tokens are in its state folder.",
)


@click.group("token")
def command() -> None:
    """Make, list and remove the tokens of a service.

    A service that runs notices within a second.
    """


def _file(path: Path | None) -> TokenFile:
    from whereish.interfaces.service.app import TOKENS
    from whereish.interfaces.service.config import read_config
    from whereish.interfaces.service.tokens import TokenFile

    return TokenFile(read_config(path).folder / TOKENS)


@command.command("add")
@click.argument("name")
@_CONFIG
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="budget, metrics, nearby, report, traces, or one level only: report:ID, traces:ID.",
)
@click.option("--subject", help="Whom the token speaks for; without it, requests name subjects.")
def add(name: str, path: Path | None, scopes: tuple[str, ...], subject: str | None) -> None:
    """Make a token and print it, this once."""
    from whereish.interfaces.service.tokens import SCOPES

    click.echo(_file(path).add(name, scopes or SCOPES, subject=subject))


@command.command("list")
@_CONFIG
def show(path: Path | None) -> None:
    """Print names, scopes and subjects."""
    for token in _file(path).all():
        click.echo(f"{token.name}  {' '.join(token.scopes)}  {token.subject or '(any subject)'}")


@command.command("remove")
@click.argument("name")
@_CONFIG
def remove(name: str, path: Path | None) -> None:
    """Take a token away."""
    _file(path).remove(name)
