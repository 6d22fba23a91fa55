"""Machine code is compiled once, for whoever needs it, and never used when stale."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import whereish
from whereish.compiled import kernel, lazy_intrinsic
from whereish.compiled.digest import digest
from whereish.mechanisms.noise import planar_laplace

DRAW = """
import numpy as np, whereish as wh
noise = wh.PlanarLaplace("1/200 m")
noise.warm()
cells = noise.cells(np.zeros((50, 2)), rng=wh.SeededRandomness(1))
print(np.abs(cells[:, 1]).max())
"""
TOY = """
from whereish.compiled import kernel

@kernel
def half(x):
    return x / 2

@kernel
def quarter(x):
    return half(half(x))
"""
CALL = """
import sys
from toy import half, quarter
{before}
assert quarter(8.0) == 2.0
stats = quarter.dispatcher.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""
NEVER_WRITABLE = """
from whereish.compiled import folders
folders._may_write = lambda place: False
"""


def start(programme: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", programme],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    return tmp_path


def test_stale_machine_code_is_not_used(tmp_path):
    shutil.copytree(
        Path(whereish.__file__).parent,
        tmp_path / "whereish",
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def drawn() -> int:
        home = str(tmp_path)
        return int(result(start(DRAW, tmp_path, PYTHONPATH=home, WHEREISH_CACHE=f"{home}/cache")))

    assert drawn() > 0
    shared = tmp_path / "whereish" / "sampling" / "words.py"
    text = shared.read_text()
    edited = text.replace("octant(fraction(word, 3)", "octant(0.0 * fraction(word, 3)")
    assert edited != text
    shared.write_text(edited.replace("if word >> np.uint64(63):", "if False:"))
    assert drawn() == 0, "every angle is now 0 or half a turn"


def test_processes_that_start_together_compile_once(toy):
    together = [start(CALL.format(before=""), toy, WHEREISH_CACHE="cache") for _ in range(4)]
    counts = [tuple(map(int, result(process).split())) for process in together]
    assert sorted(counts) == [(0, 1)] * 3 + [(1, 0)]


YIELDS = """
from whereish.compiled import kernel

@kernel
def upto(n):
    for i in range(n):
        yield i

@kernel
def total(n):
    s = 0
    for i in upto(n):
        s += i
    return s

@kernel
def squares(n):
    s = 0
    for i in upto(n):
        s += i * i
    return s
"""


def test_a_kernel_that_yields_serves_callers_of_later_processes(tmp_path):
    (tmp_path / "yields.py").write_text(YIELDS)
    for call, found in (("total(4)", "6"), ("squares(4)", "14"), ("total(4)", "6")):
        programme = f"import yields; print(yields.{call})"
        assert result(start(programme, tmp_path, WHEREISH_CACHE="cache")).split() == [found]
    again = start("import yields; print(yields.squares(4))", tmp_path, WHEREISH_CACHE="cache",
                  WHEREISH_COMPILE="refuse")  # fmt: skip
    assert result(again).split() == ["14"]


MOVES = """
from typing import NamedTuple
from whereish.compiled import kernel
from {home} import Pair

@kernel
def total(pair):
    return pair.one + pair.other
"""
PAIR = """
from typing import NamedTuple

class Pair(NamedTuple):
    one: float
    other: float
"""


def test_code_for_a_type_that_has_moved_is_compiled_again(tmp_path):
    """As after an upgrade: the kernel is the same, its index names a module that is gone."""
    call = "import moves; print(moves.total(moves.Pair(1.0, 2.0)))"
    for home in ("before", "after", "after"):
        (tmp_path / f"{home}.py").write_text(PAIR)
        (tmp_path / "moves.py").write_text(MOVES.format(home=home))
        assert result(start(call, tmp_path, WHEREISH_CACHE="cache")).split() == ["3.0"]
        (tmp_path / "before.py").unlink(missing_ok=True)
    read = start(call, tmp_path, WHEREISH_CACHE="cache", WHEREISH_COMPILE="refuse")
    assert result(read).split() == ["3.0"]  # and kept


def test_code_compiled_before_is_read_where_nothing_can_be_written(toy):
    assert result(start(CALL.format(before=""), toy, WHEREISH_CACHE="cache")).split() == ["1", "0"]
    kept = sorted((toy / "cache").iterdir())
    frozen = CALL.format(before=NEVER_WRITABLE)
    found = result(start(frozen, toy, WHEREISH_CACHE="cache", WHEREISH_COMPILE="refuse"))
    assert found.split() == ["0", "1"]
    assert sorted((toy / "cache").iterdir()) == kept


def test_without_any_folder_a_process_compiles_for_itself(toy):
    programme = CALL.format(before="") + "\nfrom whereish.compiled.folders import folders"
    found = result(start(f"{programme}\nprint(folders())", toy, WHEREISH_CACHE="/proc/none"))
    assert found.splitlines()[1] == "()"


def test_what_would_be_compiled_is_refused_by_name_when_asked(toy):
    refused = start(CALL.format(before=""), toy, WHEREISH_CACHE="cache", WHEREISH_COMPILE="refuse")
    _, errors = refused.communicate(timeout=300)
    assert refused.returncode == 1
    assert "NotCompiled: toy.quarter for (float64,)" in errors


def test_only_a_few_versions_of_a_kernel_are_kept(toy):
    for divisor in range(2, 8):
        (toy / "toy.py").write_text(TOY.replace("x / 2", f"x / {divisor}.0"))
        result(start("import toy; toy.half(1.0)", toy, WHEREISH_CACHE="cache"))
    versions = list((toy / "cache").glob("toy.half-*.nbi"))
    assert len(versions) == 4
    assert len(list((toy / "cache").glob("*.nbc"))) == 4


def test_the_digest_follows_what_is_computed_and_nothing_else():
    values = {"np": np, "kernel": kernel}
    base = "@kernel\ndef inner(x):\n    return x + C\n@kernel\ndef outer(x):\n    return inner(x)\n"

    def digest_of(text: str) -> str:
        names: dict = {**values, "__name__": "toy"}
        exec(compile(text, "toy.py", "exec"), names)
        return digest(names["outer"].function, "")

    first = digest_of(f"C = 1.0\n{base}")
    assert digest_of(f"# moved down\n\n\nC = 1.0\n{base}") == first
    assert digest_of(f"C = 1.0000000000000002\n{base}") != first
    assert digest_of(f"C = 1.0\n{base}".replace("x + C", "x - C")) != first
    with pytest.raises(TypeError, match="a kernel names C, a dict"):
        digest_of(f"C = {{}}\n{base}")


def test_the_digest_follows_the_code_of_operations_and_what_that_stands_on(tmp_path, monkeypatch):
    """Vectors of LLVM's language are written in modules that import others of the package."""
    home, stand = ModuleType("whereish.toy_code"), ModuleType("whereish.toy_vectors")
    for module in (home, stand):
        module.__file__ = str(tmp_path / f"{module.__name__}.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)

    class Vector:
        __module__ = stand.__name__

    home.Vector = Vector  # type: ignore[attr-defined]
    operation = lazy_intrinsic(home.__name__, "add")
    names: dict = {"operation": operation, "__name__": "toy"}
    exec("def outer(x):\n    return operation(x)", names)

    def digest_of(code: str, below: str) -> str:
        Path(home.__file__ or "").write_text(code)
        Path(stand.__file__ or "").write_text(below)
        return digest(names["outer"], "")

    first = digest_of("1", "1")
    assert digest_of("1", "1") == first
    assert len({first, digest_of("2", "1"), digest_of("1", "2")}) == 3
    monkeypatch.setattr(stand, "LANES", 32, raising=False)
    assert digest_of("1", "1") != first


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(planar_laplace._cells)) is planar_laplace._cells
