"""Print docs/reference/python.md: every public name, for mkdocstrings to document."""

from __future__ import annotations

import re

import whereish


def page() -> str:
    """Names in the groups of the package's overview."""
    lines = [
        "# Python reference",
        "",
        "Made by `make docs`: signatures, defaults and examples.",
        "",
    ]
    done: set[str] = set()
    overview = (whereish.__doc__ or "").splitlines()
    start = next(i for i, line in enumerate(overview) if line.startswith("Blur points"))
    for line in overview[start:]:
        head, rest = line[:15], line[15:]
        if re.match(r"[A-Z][\w, ]+ *$", head) and rest.strip():
            lines += [f"## {head.strip()}", ""]
        for name in re.findall(r"\w+", rest if line[:1] in " ABCDEFGHIJKLMNOPQRSTUVWXYZ" else ""):
            home = whereish._HOMES.get(name)
            if home is not None and name not in done:
                done.add(name)
                lines += [f"::: whereish.{home}.{name}" if home else f"::: whereish.{name}", ""]
    assert done == set(whereish.__all__), set(whereish.__all__) - done
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
