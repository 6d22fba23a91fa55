"""Write docs/reference/python.md and a page for each group of public names, for mkdocstrings."""

from __future__ import annotations

import re
from pathlib import Path

import whereish

HOME = Path(__file__).parents[1] / "docs" / "reference"


def groups() -> dict[str, list[str]]:
    """Names in the groups of the package's overview."""
    found: dict[str, list[str]] = {}
    done: set[str] = set()
    overview = (whereish.__doc__ or "").splitlines()
    start = next(i for i, line in enumerate(overview) if line.startswith("Blur points"))
    group = ""
    for line in overview[start:]:
        head, rest = line[:15], line[15:]
        if re.match(r"[A-Z][\w, ]+ *$", head) and rest.strip():
            group = head.strip()
        for name in re.findall(r"\w+", rest if line[:1] in " ABCDEFGHIJKLMNOPQRSTUVWXYZ" else ""):
            if name in whereish._HOMES and name not in done:
                done.add(name)
                found.setdefault(group, []).append(name)
    assert done == set(whereish.__all__), set(whereish.__all__) - done
    return found


def address(name: str) -> str:
    """Where a public name is defined."""
    home = whereish._HOMES[name]
    return f"whereish.{home}.{name}" if home else f"whereish.{name}"


def pages() -> dict[str, str]:
    """The pages by their paths below docs/reference."""
    made = {}
    index = [
        "# Python reference",
        "",
        "Made by `make docs`: signatures, defaults and examples.",
        "",
    ]
    for group, names in groups().items():
        path = f"python/{re.sub(r'[^a-z]+', '-', group.lower())}.md"
        named = ", ".join(f"[`{name}`][{address(name)}]" for name in names)
        index += [f"**[{group}]({path})**: {named}", ""]
        made[path] = "\n".join(
            [f"# {group}", "", *(line for name in names for line in (f"::: {address(name)}", ""))]
        )
    return {"python.md": "\n".join(index), **made}


if __name__ == "__main__":
    for path, text in pages().items():
        (HOME / path).parent.mkdir(exist_ok=True)
        (HOME / path).write_text(text, encoding="utf-8")
