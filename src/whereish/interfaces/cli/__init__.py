"""The command line: ``whereish COMMAND``.

One module per command, loaded when it is called.  An error that whereish raises on
purpose is one sentence on standard error and exit code 2; any other is exit code 1
with its message withheld, since it might quote a location.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click

import whereish
from whereish.errors import WhereishError, WhereishWarning, printable
from whereish.interfaces.cli.parameters import SafeParamType

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = {
    "audit": "whereish.interfaces.cli.audit",
    "build": "whereish.interfaces.cli.build",
    "compare": "whereish.interfaces.cli.compare",
    "compile": "whereish.interfaces.cli.setup.compile",
    "export": "whereish.interfaces.cli.export",
    "ledger": "whereish.interfaces.cli.ledger",
    "nearby": "whereish.interfaces.cli.lbs.nearby",
    "places": "whereish.interfaces.cli.lbs.places",
    "plot": "whereish.interfaces.cli.plot",
    "relay": "whereish.interfaces.cli.service.relay",
    "report": "whereish.interfaces.cli.report",
    "reproduce": "whereish.studies.command",
    "sanitize": "whereish.interfaces.cli.files.sanitize",
    "serve": "whereish.interfaces.cli.service.serve",
    "token": "whereish.interfaces.cli.service.token",
    "trace": "whereish.interfaces.cli.trace",
    "workbench": "whereish.interfaces.cli.service.workbench",
}
"""Command names and the modules whose ``command`` they are.

A module is named here and imported when its command is called, as an entry point would be: so
`reproduce` may come from the last layer, the studies, without this layer standing on it.
"""


_WORDS = re.compile(r"--[a-z]+(-[a-z]+)*")
_NEAR = "whereish.did_you_mean"


_COMMANDS_MEANT = {
    "blur": "report",
    "perturb": "report",
    "anonymize": "sanitize",
    "anonymise": "sanitize",
    "sanitise": "sanitize",
    "publish": "sanitize",
    "track": "trace",
    "verify": "audit",
    "server": "serve",
    "near": "nearby",
}
"""What people call a command that has another name here."""


def _did_you_mean(given: str, names: Iterable[str], *, alike: float = 0.6) -> str:
    """The nearest of our own names; what was given is not quoted, since it might be a place."""
    known = {name.lstrip("-"): name for name in names}  # dashes make any two options alike
    near = [_COMMANDS_MEANT.get(given, "")]
    if near[0] not in known:
        near = difflib.get_close_matches(given.lstrip("-"), known, 1, alike)
    return f"; did you mean {known[near[0]]}?" if near else ""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run; the nearest name is noted for the message where there is none."""
        ctx.meta[_NEAR] = _did_you_mean(args[0], COMMANDS)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(whereish.__version__, prog_name="whereish")
def cli() -> None:
    """Say roughly where someone is, with a proof of how roughly."""


def _sentence(error: click.ClickException) -> str:
    """What went wrong, in one sentence that quotes no argument: it might be a place.

    Our own option types word their messages so; click's are replaced.
    """
    own = isinstance(error, click.BadParameter) and isinstance(
        getattr(error.param, "type", None), SafeParamType
    )
    if own or isinstance(error, click.MissingParameter):
        return error.format_message()
    context: click.Context | None = getattr(error, "ctx", None)
    where = getattr(context, "command_path", "whereish")
    if isinstance(error, click.BadParameter) and error.param is not None:
        if isinstance(error.param.type, click.Choice):
            choices = ", ".join(map(str, error.param.type.choices))
            return f"the value of {error.param.opts[-1]} must be one of {choices}"
        what = f"the value of {error.param.opts[-1]} is not one that it takes"
    elif isinstance(error, click.NoSuchOption):
        name = error.option_name
        named = f" {name}" if _WORDS.fullmatch(name) else ""  # -48.8 is read as an option, too
        near = _nearest_option(error)
        if not near and where == "whereish":
            return f"options follow their command, as in 'whereish report{named or ' --at'} ...'"
        what = f"no such option{named}{near}"
    elif where == "whereish":
        near = "" if context is None else context.meta.get(_NEAR, "")
        what = f"the command must be one of {', '.join(sorted(COMMANDS))}{near}"
    elif context is not None and isinstance(context.command, click.Group):
        names = context.command.list_commands(context)
        near = _did_you_mean((*context.args, "")[0], names)
        what = f"{where} must be followed by one of {', '.join(names)}{near}"
    else:
        what = _arguments_of(context)
    return f"{what}{' ' if what.endswith('?') else ': '}see '{where} --help'"


_MEANT = {
    "--eps": ("--epsilon", "--total"),
    "--level": ("--epsilon",),
    "--radius": ("--within", "--radius"),
    "--distance": ("--mean-error",),
    "--blur": ("--mean-error",),
    "--noise": ("--mean-error",),
    "--error": ("--mean-error",),
    "--accuracy": ("--within",),
    "--probability": ("--confidence",),
    "--longitude": ("--lon",),
    "--latitude": ("--lat",),
    "--x": ("--lon",),
    "--y": ("--lat",),
    "--geom": ("--geometry",),
    "--columns": ("--keep",),
    "--place": ("--at",),
    "--location": ("--at",),
    "--user": ("--subject",),
    "--force": ("--overwrite",),
    "--seed": ("--insecure-seed",),
    "--count": ("-n",),
    "--map": ("--mechanism",),
    "--box": ("--bbox",),
    "--sep": ("--delimiter",),
}
"""What people call an option that has another name here."""


def _arguments_of(context: click.Context | None) -> str:
    """What a command takes besides options, for one that got too many."""
    parameters = [] if context is None else context.command.get_params(context)
    names = [p.human_readable_name for p in parameters if isinstance(p, click.Argument)]
    takes = f"takes {' and '.join(names)} besides options" if names else "takes options only"
    return f"there is an argument too many: it {takes} (quote what has blanks in it)"


def _nearest_option(error: click.NoSuchOption) -> str:
    parameters = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    options = [name for p in parameters for name in (*p.opts, *p.secondary_opts)]
    for name in _MEANT.get(error.option_name, ()):
        if name in options:
            return f"; did you mean {name}?"
    few = error.ctx is not None and error.ctx.parent is None  # whereish itself has two
    return _did_you_mean(error.option_name, options, alike=0.8 if few else 0.6)


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our own warnings as a sentence; those of libraries, which may quote a place, by kind."""
    own = issubclass(category, WhereishWarning)
    said = printable(str(message)) if own else f"a library warned ({category.__name__})"
    click.echo(f"whereish: warning: {said}", err=True)


def main() -> None:
    """Run the command line, and turn errors into one sentence and an exit code."""
    warnings.showwarning = _say_warning
    try:
        sys.exit(cli(prog_name="whereish", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"whereish: {_sentence(error)}", err=True)
        sys.exit(2)
    except click.exceptions.Abort:
        click.echo("whereish: interrupted", err=True)
        sys.exit(130)
    except WhereishError as error:
        click.echo(f"whereish: {printable(str(error))}", err=True)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("WHEREISH_DEBUG"):
            raise
        click.echo(
            f"whereish: internal error ({type(error).__name__}); its message is withheld, since it"
            " may quote a location: set WHEREISH_DEBUG=1 to see it, and please report it",
            err=True,
        )
        sys.exit(1)
