"""``whereish ledger``: budgets of subjects."""

from __future__ import annotations

import json
from pathlib import Path

import click

from whereish.interfaces.cli.parameters import BUDGET, POSITIVE
from whereish.units import Epsilon

__all__ = ["command"]


@click.group("ledger")
def command() -> None:
    """Make a ledger, read a subject's statement, give up an unfinished release.

    ADDRESS is a path (SQLite) or postgresql://... for many hosts.
    """


@command.command("create")
@click.argument("address")
@click.option(
    "--cap",
    type=BUDGET,
    required=True,
    help="Most that a subject may spend, as '10/km', or '10 x 300 m' for what ten reports cost that"
    " are 300 m away on average.",
)
@click.option("--window-s", type=POSITIVE, help="Within so many seconds.")
def create(address: str, cap: Epsilon, window_s: float | None) -> None:
    """Make a ledger with a budget for each subject."""
    from whereish.publish.ledger import open_ledger

    click.echo(f"budget: {open_ledger(address, cap=cap, window_s=window_s).budget}")


@command.command("statement")
@click.argument("address")
@click.argument("subject")
def statement(address: str, subject: str) -> None:
    """Print what has been released about SUBJECT, as JSON."""
    from whereish.publish.ledger import open_ledger

    click.echo(json.dumps(open_ledger(address).statement(subject).to_json(), indent=2))


@command.command("abandon")
@click.argument("address")
@click.argument("output", type=click.Path(path_type=Path))
def abandon(address: str, output: Path) -> None:
    """Destroy what an interrupted job had staged for OUTPUT, and refund it.

    Possible only while OUTPUT has not appeared under its name.
    """
    from whereish.publish.ledger import open_ledger
    from whereish.publish.release.staging import abandon as give_up

    done = give_up(output, open_ledger(address))
    click.echo(
        "given up; what was charged for it is refunded"
        if done
        else "there is no unfinished job for this output"
    )


@command.command("finish")
@click.argument("address")
@click.argument("output", type=click.Path(path_type=Path))
def finish(address: str, output: Path) -> None:
    """Finish an interrupted job for OUTPUT, with the very reports that it had staged.

    Nothing is drawn anew, and nobody is charged twice.
    """
    from whereish.publish.ledger import open_ledger
    from whereish.publish.release.staging import finish as go_on

    done = go_on(output, open_ledger(address))
    click.echo("finished" if done else "there is no unfinished job for this output")
