"""After ``whereish compile`` nothing is left to compile, whatever command comes first."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import whereish
from whereish.compiled.index import kernels

ROOT = Path(whereish.__file__).parent
EXERCISE = """
import json
from whereish.compiled.index import kernels
from whereish.interfaces.cli.setup.exercises import exercises
for _, exercise in exercises():
    exercise()
print(json.dumps([k.name for k in kernels() if k.is_compiled]))
"""
SITES = "lon,lat,prior\n2.30,48.80,0.2\n2.31,48.81,0.3\n2.32,48.82,0.5\n"
COMMANDS = [
    "report --at 48.8,2.3 --epsilon 1/km -n 5000",
    "sanitize sites.csv -o out.parquet --lon lon --lat lat --epsilon 1/km",
    "build optimal --sites sites.csv --epsilon 1/km -o optimal.npz",
    "audit optimal.npz",
    "report --at 48.8,2.3 --mechanism optimal.npz",
    "compare --sites sites.csv --epsilon 1/km",
    "build map zones.geojson --default 1/km --cell 500m --region 2.2,48.7,2.4,48.9 -o map.npz",
    "audit map.npz",
    "report --at 48.8,2.3 --mechanism map.npz",
    "places sites.csv places.db",
    "nearby --at 48.8,2.3 --places places.db --epsilon 1/km",
    "nearby --at 48.8,2.3 --places places.db --mechanism map.npz",
]
RUN = """
import sys
from whereish.interfaces.cli import cli
for line in sys.argv[1:]:
    cli(line.split(), standalone_mode=False)
"""
ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"epsilon": "4/km"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[2.3, 48.75], [2.35, 48.75], [2.35, 48.8], [2.3, 48.75]]],
            },
        }
    ],
}


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


@pytest.mark.slow
def test_exercises_reach_every_kernel_and_commands_compile_nothing_more(tmp_path):
    compiled = set(json.loads(run(EXERCISE, cwd=tmp_path)))
    forgotten = called_from_python() - compiled
    assert not forgotten, "call them in whereish/interfaces/cli/setup/exercises.py"
    (tmp_path / "sites.csv").write_text(SITES)
    (tmp_path / "zones.geojson").write_text(json.dumps(ZONES))
    run(RUN, *COMMANDS, cwd=tmp_path, WHEREISH_COMPILE="refuse")
