"""The command line's reference, made from the commands themselves (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator

import click

from whereish.interfaces.cli import cli

__all__ = ["reference"]


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for sub in command.list_commands(context):
            child = command.get_command(context, sub)
            assert child is not None
            yield from _commands(child, f"{name} {sub}")


def reference() -> str:
    """All commands with their help, as Markdown."""
    parts = ["# Command line\n\nMade by `make docs`; a test keeps it up to date.\n"]
    for name, command in _commands(cli, "whereish"):
        context = click.Context(
            command,
            info_name=name,
            terminal_width=88,
            max_content_width=88,
            color=False,
            help_option_names=cli.context_settings.get("help_option_names"),
        )
        parts.append(f"## {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
