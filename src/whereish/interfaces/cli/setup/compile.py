"""``whereish compile``: compile everything ahead of its first use."""

from __future__ import annotations

import time
from pathlib import Path

import click

from whereish.errors import MissingExtra, NotWritten

__all__ = ["command", "compile_modules"]


@click.command("compile")
def command() -> None:
    """Compile every numerical kernel now, so that no later command waits for it.

    Kernels are compiled when they are first used, which takes seconds, and kept for later
    processes.  Run this when an image is built or after an installation.  WHEREISH_CACHE names
    the folder; without it, they are kept inside the installed package or, where that cannot be
    written, in the user's cache.  Later users need only be able to read it.  Python's byte code of
    the package is made as well where it is missing, as after PYTHONDONTWRITEBYTECODE=1.
    """
    from whereish.compiled.folders import writable_folder

    place = writable_folder()
    if place is None:
        raise NotWritten(
            "no folder for compiled code can be written: set WHEREISH_CACHE to one that can"
        )
    from whereish.compiled.index import kernels
    from whereish.interfaces.cli.setup.exercises import exercises

    start = time.process_time()
    every = list(exercises())
    for number, (name, exercise) in enumerate(every, 1):
        click.echo(f"{number} of {len(every)}: {name}", err=True)
        try:
            exercise()
        except MissingExtra as missing:
            click.echo(f"left out: {missing}", err=True)
    spent, compiled = time.process_time() - start, sum(k.is_compiled for k in kernels())
    compile_modules()
    click.echo(f"{compiled} kernels are compiled in {place} ({spent:.0f} s of CPU)")


def compile_modules() -> None:
    """Byte code of the package where Python looks for it; nothing where that cannot be written.

    pip makes it, but not when told ``--no-compile``, and Python neither in a checkout with
    PYTHONDONTWRITEBYTECODE=1: then every process would compile a hundred modules again.
    """
    import compileall

    import whereish

    compileall.compile_dir(Path(whereish.__file__).parent, quiet=2)
