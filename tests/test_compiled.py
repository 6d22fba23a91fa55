"""A change in one module reaches kernels that were compiled from another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import whereish

DRAW = """
import numpy as np, whereish as wh
cells = wh.PlanarLaplace("1/200 m").cells(np.zeros((50, 2)), rng=wh.SeededRandomness(1))
print(np.abs(cells[:, 1]).max())
"""


def test_stale_machine_code_is_not_used(tmp_path):
    shutil.copytree(
        Path(whereish.__file__).parent,
        tmp_path / "whereish",
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def drawn() -> int:
        done = subprocess.run(
            [sys.executable, "-c", DRAW],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout)

    assert drawn() > 0
    shared = tmp_path / "whereish" / "sampling" / "words.py"
    text = shared.read_text()
    edited = text.replace("octant(fraction(word, 3)", "octant(0.0 * fraction(word, 3)")
    assert edited != text
    shared.write_text(edited.replace("if word >> np.uint64(63):", "if False:"))
    assert drawn() == 0, "every angle is now 0 or half a turn"
