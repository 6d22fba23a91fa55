"""Standard input and output in place of files.

Standard input is text with a delimiter, read into memory: a release that must be able to find
its input again after a crash cannot be made from it, so its output is standard output.  What
goes there is complete before the first byte leaves.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import InvalidInput

if TYPE_CHECKING:
    from whereish.publish.formats.text.dialect import Dialect

__all__ = ["STREAM", "release_file_to_stdout", "release_stdin"]

STREAM = "-"


def release_stdin(plan: Any, dialect: Dialect, **how: Any) -> None:
    """Release a text table from standard input to standard output."""
    from whereish.publish.formats.text.delimited import read_bytes, write_bytes
    from whereish.publish.sanitize import sanitize

    extra = [how["subject"]] if how.get("subject") is not None else []
    table = read_bytes(sys.stdin.buffer.read(), plan, dialect, extra)
    released = sanitize(table, **how, **plan)
    _say(released.schema.metadata[b"whereish"])
    sys.stdout.buffer.write(write_bytes(released))
    sys.stdout.buffer.flush()


def release_file_to_stdout(sources: Any, **how: Any) -> None:
    """Release one file to standard output, as CSV."""
    from whereish.publish.sanitize import sanitize

    if how.get("ledger") is not None:
        raise InvalidInput(
            "a release that is charged needs an output file, which can be finished after a crash:"
            " name one with -o instead of '-'"
        )
    with TemporaryDirectory() as folder:  # of reports alone
        path = Path(folder) / "reports.csv"
        release = sanitize(sources, path, **how)
        click.echo("\n".join(release.lines()), err=True)
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _say(statement: bytes) -> None:
    import json

    stated = json.loads(statement)
    click.echo(stated["in_words"], err=True)
    click.echo(f"guarantee: {stated['guarantee']['statement']}", err=True)
    click.echo(f"this holds for {stated['scope']}", err=True)
