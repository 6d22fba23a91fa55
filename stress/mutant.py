"""A mutant: one fault, put into one file on purpose, and the tests that should see it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "Stale"]


class Stale(Exception):
    """A mutant that no longer fits the source or the tests: the tables must be renewed."""


@dataclass(frozen=True)
class Mutant:
    """Replace `old`, which occurs exactly once in `file`, by `new`.

    Attributes
    ----------
    name : unique, in words.
    file, tests : paths from the root of the repository; tests may have pytest's ids.
    why : what is at stake.
    equivalent : why no test can kill it; empty where one must.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    equivalent: str = ""

    def mutated(self, root: Path) -> str:
        """The text of the file with the fault in it."""
        path = root / self.file
        if not path.is_file():
            raise Stale(f"mutant {self.name!r}: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise Stale(
                f"mutant {self.name!r}: its old text must occur once in {self.file}; it occurs"
                f" {found} times"
            )
        mutated = text.replace(self.old, self.new)
        try:
            ast.parse(mutated)
        except SyntaxError:
            raise Stale(f"mutant {self.name!r}: its new text is no Python") from None
        if self.old.split() == self.new.split():
            raise Stale(f"mutant {self.name!r}: its new text is the old one")
        return mutated

    def check_tests(self, root: Path) -> None:
        """Raise `Stale` unless every test is a function of its file."""
        if not self.tests:
            raise Stale(f"mutant {self.name!r} names no test")
        for test in self.tests:
            file, *names = test.partition("[")[0].split("::")
            if not (root / file).is_file():
                raise Stale(f"mutant {self.name!r}: there is no test file {file}")
            body: list[ast.stmt] = ast.parse((root / file).read_text(encoding="utf-8")).body
            for name in names:
                inner = [
                    node
                    for node in body
                    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
                ]
                if not inner:
                    raise Stale(f"mutant {self.name!r}: there is no test {test}")
                body = inner[0].body
