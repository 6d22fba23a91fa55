"""Every kind of metric of this room can be read once the room is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import whereish.privacy


def kinds_in(path: Path) -> set[str]:
    """The kinds that the classes of a module declare."""
    return {
        statement.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == "kind"
        and isinstance(statement.value, ast.Constant)
    }


def test_a_fresh_process_that_imports_privacy_reads_every_kind_of_metric():
    """A guarantee with a distance level could once be read only after that module was used."""
    room = Path(whereish.privacy.__file__).parent
    declared = set().union(*(kinds_in(path) for path in room.rglob("*.py")))
    assert {"euclidean", "distance-level", "map-geodesic", "tuple-max", "finite"} <= declared
    code = "from whereish.privacy import Metric; print(*Metric._kinds)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == declared
