"""The house: layers, rooms that can be surveyed, modules of one subject, no cycles."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import whereish
from whereish.interfaces.cli import COMMANDS

ROOT = Path(whereish.__file__).parent
LAYERS = [
    ("arrays", "errors", "units", "compiled", "randomness", "threads", "notebook", "results"),
    ("space",),
    ("privacy",),
    ("data",),
    ("solvers",),
    ("sampling",),
    ("mechanisms",),
    ("audit",),
    ("queries",),
    ("publish",),
    ("lbs",),
    ("engines",),
    ("interfaces",),
    ("studies",),
]
MOST_MODULES, MOST_LINES = 15, 400


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    return {
        ".".join(("whereish", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in ROOT.rglob("*.py")
    }


def imported(module: str) -> set[str]:
    """The modules of the package that `module` imports, inside functions too, but not for types."""
    found: set[str] = set()
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped |= {inner for part in node.body for inner in ast.walk(part)}
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
    return {name for name in found if name in modules()} - {module}


def layer(module: str) -> int:
    package = module.split(".")[1]
    ranks = [i for i, names in enumerate(LAYERS) if package in names]
    assert ranks, f"{package} has no layer"
    return ranks[0]


def inner_modules() -> list[str]:
    return [name for name in modules() if name not in {"whereish", "whereish.__main__"}]


def test_each_layer_imports_only_those_before_it():
    for module in inner_modules():
        for other in imported(module) - {"whereish"}:
            assert layer(other) <= layer(module), f"{module} imports {other}"


def test_the_command_line_names_one_module_of_a_later_layer():
    """As an entry point does: named in a table, imported when its command is called."""
    later = {name for name in COMMANDS.values() if layer(name) > layer("whereish.interfaces.cli")}
    assert later == {"whereish.studies.command"}


def test_no_room_is_crowded():
    crowd = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values())
    assert {room: count for room, count in crowd.items() if count > MOST_MODULES} == {}


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "stress"])
def test_no_module_is_long(folder):
    root = Path(__file__).parents[1] / folder
    lines = {
        path.relative_to(root).as_posix(): len(path.read_text().splitlines())
        for path in root.rglob("*.py")
    }
    most = MOST_LINES if folder == "src" else 2 * MOST_LINES
    assert {name: count for name, count in lines.items() if count > most} == {}


def test_modules_import_each_other_in_no_circle():
    """Lazy imports count too: a room is understood from what it stands on."""
    seen: dict[str, bool] = {}

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module in seen:
            return
        for other in sorted(imported(module) - {"whereish"}):
            visit(other, (*path, module))
        seen[module] = True

    for module in inner_modules():
        visit(module, ())
