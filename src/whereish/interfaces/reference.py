"""The reference of public names, made from their docstrings (``make docs``)."""

from __future__ import annotations

import inspect
import re
from enum import EnumType
from typing import Any, Protocol

import click

import whereish

__all__ = ["names", "without_roles"]

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod|obj):`(~?)([^`]+)`")


def without_roles(text: str) -> str:
    """Roles of reStructuredText as plain code; a tilde leaves the last part of a name.

    >>> print(without_roles("as :func:`blur` does on a :class:`~whereish.space.Sphere`"))
    as `blur` does on a `Sphere`
    """
    return _ROLE.sub(lambda m: f"`{m[2].rpartition('.')[2] if m[1] else m[2]}`", text)


def names() -> str:
    """Every public name with its signature and its first sentence, as Markdown."""
    parts = ["# Public names\n\n`import whereish as wh`. Made by `make docs`; a test checks it.\n"]
    for name in whereish.__all__:
        value = getattr(whereish, name)
        summary = _first_sentence(value)
        parts.append(f"## wh.{name}\n\n{_call(name, value)}{summary}\n")
        if inspect.ismodule(value):
            parts += [
                f"- **wh.{name}.{inner}**: {_first_sentence(getattr(value, inner))}"
                for inner in value.__all__
            ]
            parts.append("")
    return "\n".join(parts)


def _first_sentence(value: Any) -> str:
    first, _, _ = (inspect.getdoc(value) or "").partition("\n\n")
    return without_roles(first.replace("\n", " "))


def _call(name: str, value: Any) -> str:
    """How a function or class is called; other kinds of names are not."""
    if not inspect.isroutine(value) and not isinstance(value, type):
        return ""
    uncalled = isinstance(value, EnumType) or Protocol in getattr(value, "__bases__", ())
    if uncalled or inspect.isabstract(value) or Exception in getattr(value, "__mro__", ()):
        return ""
    parameters = inspect.signature(value).parameters
    shown = ", ".join(str(p).split(":")[0].split("=")[0].strip() for p in parameters.values())
    return f"`{name}({shown})`\n\n"


if __name__ == "__main__":
    click.echo(names(), nl=False)
