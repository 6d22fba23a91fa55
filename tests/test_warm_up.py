"""After ``whereish compile`` nothing is left to compile, whatever command comes first."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

import whereish
from benchmarks.bench_startup import COMMANDS, NOT_HERE, SERVERS, TRACE, first_folder
from whereish.compiled.index import kernels
from whereish.interfaces.cli import cli
from whereish.interfaces.cli.setup.compile import compile_modules

ROOT = Path(whereish.__file__).parent
EXERCISE = """
import json
from whereish.compiled.index import kernels
from whereish.interfaces.cli.setup.exercises import exercises
for _, exercise in exercises():
    exercise()
print(json.dumps([k.name for k in kernels() if k.is_compiled]))
"""
RUN = """
import sys
from whereish.interfaces.cli import cli
for line in sys.argv[1:]:
    cli(line.split(), standalone_mode=False)
"""


@cache
def modules() -> dict[str, ast.Module]:
    return {
        ".".join(("whereish", *path.relative_to(ROOT).with_suffix("").parts)): ast.parse(
            path.read_text()
        )
        for path in ROOT.rglob("*.py")
    }


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(name, ast.Name) and name.id == "kernel" for name in node.decorator_list
    )


def called_from_python() -> set[str]:
    """The kernels that are named outside kernels."""
    defined = {
        (module, node.name) for module, tree in modules().items() for node in tree.body
        if is_kernel(node)
    }  # fmt: skip
    found: set[str] = set()
    for module, tree in modules().items():
        known = {name: (home, name) for home, name in defined if home == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names = ((alias.asname or alias.name, alias.name) for alias in node.names)
                known |= {a: (node.module, b) for a, b in names if (node.module, b) in defined}
        inside = {inner for node in tree.body if is_kernel(node) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in known and node not in inside:
                found.add(".".join(known[node.id]))
    return found


def run(programme: str, *arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", programme, *arguments],
        cwd=cwd,
        input=TRACE,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_index_has_every_kernel():
    ours = {kernel.name for kernel in kernels()}
    written = {
        f"{module}.{node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if is_kernel(node)
    }
    assert ours == written
    assert len(ours) > 100


def test_byte_code_is_made_where_it_can_be(tmp_path, monkeypatch):
    package = tmp_path / "whereish"
    (package / "room").mkdir(parents=True)
    for module in (package / "__init__.py", package / "room" / "thing.py"):
        module.write_text("x = 1\n")
    monkeypatch.setattr(whereish, "__file__", str(package / "__init__.py"))
    (package / "__pycache__").write_text("in the way")
    compile_modules()
    (made,) = package.rglob("*.pyc")
    assert made.name.startswith("thing.")
    (package / "__pycache__").unlink()
    compile_modules()
    assert len(list(package.rglob("*.pyc"))) == 2


@pytest.mark.slow
def test_exercises_reach_every_kernel_and_commands_compile_nothing_more(tmp_path):
    compiled = set(json.loads(run(EXERCISE, cwd=tmp_path)))
    forgotten = called_from_python() - compiled
    assert not forgotten, "call them in whereish/interfaces/cli/setup/exercises.py"
    run(RUN, *COMMANDS, cwd=first_folder(tmp_path / "uses"), WHEREISH_COMPILE="refuse")


def leaves(command: click.Command, name: str = "") -> set[str]:
    """The names of all commands below a group, with their groups."""
    if not isinstance(command, click.Group):
        return {name.strip()}
    context = click.Context(command)
    below = ((sub, command.get_command(context, sub)) for sub in command.list_commands(context))
    return {leaf for sub, child in below for leaf in leaves(child, f"{name} {sub}")}


def test_every_command_is_in_the_benchmark_of_first_uses():
    tried = [*COMMANDS, *SERVERS]
    for name in leaves(cli):
        assert name in NOT_HERE or any(line.startswith(f"{name} ") for line in tried), name
