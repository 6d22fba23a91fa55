"""The public names and how they are called: adding is fine, taking away is not.

``python -m recorded.names tests/recorded/names.json`` (from ``tests/``) writes them; the file in
the repository was written at commit 319ffc2, before the modules moved.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import whereish as wh

RECORDED = Path(__file__).with_name("names.json")


def parameters(value: Any) -> dict[str, list[str]] | None:
    """Each parameter with its kind and whether it has a default; None where nothing is called."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return {
        p.name: [p.kind.name, "required" if p.default is p.empty else "optional"] for p in found
    }


def public(owner: Any) -> list[str]:
    names = getattr(owner, "__all__", None) or [n for n in vars(owner) if not n.startswith("_")]
    return sorted(names)


def members(owner: type) -> list[str]:
    """Public names of a class, inherited ones from this package too."""
    ours = [base for base in owner.__mro__ if base.__module__.startswith("whereish")]
    return sorted({n for base in ours for n in vars(base) if not n.startswith("_")})


def described() -> dict[str, Any]:
    """Every public name, the names of public modules and the members of public classes."""
    table: dict[str, Any] = {}
    for name in public(wh):
        value = getattr(wh, name)
        if inspect.ismodule(value):
            inner = {f"{name}.{n}": getattr(value, n) for n in public(value)}
        else:
            inner = {name: value}
        for path, thing in inner.items():
            table[path] = parameters(thing)
            if isinstance(thing, type):
                for member in members(thing):
                    bound = getattr(thing, member)
                    table[f"{path}.{member}"] = parameters(bound) if callable(bound) else None
    return table


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(described(), indent=0, sort_keys=True) + "\n")
