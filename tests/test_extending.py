"""docs/extending.md is true: its code runs, and touches two files for each kind of extension."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^```(?:python|diff) title="(?P<path>[^"]+)"\n(?P<code>.*?)^```$', re.M | re.S)


def section(heading: str) -> str:
    text = (ROOT / "docs/extending.md").read_text()
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def blocks(heading: str) -> list[tuple[str, str]]:
    """The titled code blocks of one section: which file, and what stands in it."""
    return [(m["path"], m["code"]) for m in BLOCK.finditer(section(heading))]


def use(heading: str) -> str:
    """The untitled code of one section: how the extension is used."""
    return "".join(re.findall(r"^```python\n(.*?)^```$", section(heading), re.M | re.S))


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the package and its tests, for a stranger to extend."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def extend(copy: Path, heading: str) -> set[str]:
    """Write the section's blocks: a new file as it is, and the lines that a list is given."""
    touched = set()
    for path, code in blocks(heading):
        target = copy / path
        if target.exists():
            text, lines = target.read_text(), code.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line.startswith(" "))
            assert text.count(before) == 1
            target.write_text(text.replace(before, "".join(line[1:] for line in lines)))
        else:
            target.write_text(code)
        touched.add(path)
    return touched


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join(map(str, (copy / "src", copy)))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_mechanism_is_a_module_and_a_line(copy):
    touched = extend(copy, "A mechanism")
    assert len(touched) == 2
    done = run(
        copy,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/contract",
        "-k",
        "staircase or registered",
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 15


FORMAT_CHECKS = """
import json

released = pa.ipc.open_file("public.arrow").read_all()
assert released.column_names == ["lon", "lat"]
def places(table):
    return [(row["lon"], row["lat"]) for row in table.to_pylist()]
near = list(zip(places(people), places(released), strict=True))
assert len(near) == 2
assert all(true != report for true, report in near)  # one coordinate may well be the same
stated = json.loads(released.schema.metadata[b"whereish"])
assert stated["guarantee"] == release.guarantee.to_json()
assert list(released.schema.metadata) == [b"whereish"]
assert format_of(Path("x.fgb")) == flatgeobuf
"""


def test_a_file_format_is_a_module_and_a_value(copy):
    touched = extend(copy, "A file format")
    assert len(touched) == 2
    done = run(
        copy,
        "-W",
        "error",
        "-c",
        "from pathlib import Path\n" + use("A file format") + FORMAT_CHECKS,
    )
    assert done.returncode == 0, done.stderr
    done = run(
        copy,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "tests/publish/formats/test_registry.py",
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 30


ENGINE_CHECKS = """
from pathlib import Path

from whereish.errors import InvalidInput

# What is written is noise, and nothing but what was named.
def places(tables):
    return [(row["lon"], row["lat"]) for table in tables for row in table.to_pylist()]
near = list(zip(places(people), places(released), strict=True))
assert len(near) == 4
assert all(true != report for true, report in near)  # one coordinate may well be the same
assert released[0].column_names == ["lon", "lat"]

# What a task quotes is hidden, and nothing is released.
text = pa.array(["48.8512x"])
class Failing:
    column_names = people[0].column_names
    def select(self, columns):
        return text.cast("double")
try:
    threads.sanitize([people[0], Failing()], "hidden", lon="lon", lat="lat", epsilon="1/km")
except InvalidInput as error:
    assert "the thread job failed" in str(error) and "48" not in str(error), error
else:
    raise AssertionError("a failed cast was released")
assert [p.name for p in Path().iterdir() if "hidden" in p.name] == []
"""


def test_an_engine_is_a_module_and_a_line(copy):
    touched = extend(copy, "An engine")
    assert len(touched) == 2
    done = run(copy, "-W", "error", "-c", use("An engine") + ENGINE_CHECKS)
    assert done.returncode == 0, done.stderr
    done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/engines/test_engine.py")
    assert done.returncode == 0, done.stdout[-3000:]


SAVED_CHECKS = """
import math
import subprocess, sys
import numpy as np
from whereish.errors import InvalidInput
from whereish.mechanisms.saved import save_artefact

assert response == RandomisedResponse.load("response.npz") == RandomisedResponse(3 << 14)
assert set(bits.tolist()) <= {0, 1} and len(bits) == 4
kept = response.guarantee.metric.distances[0, 1]
assert math.log(3) <= kept < 1.000001 * math.log(3)
zeros = np.zeros(100_000, int)
share = response.report(zeros, rng=wh.SeededRandomness(1)).mean()
assert abs(share - 0.25) < 0.007  # five standard deviations

# A process that never imported the class reads its file.
code = "import whereish; print(whereish.load('response.npz').weight)"
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
assert int(done.stdout) == 3 << 14

for weight in (1 << 16, 0.75, [3 << 14]):
    save_artefact("forged.npz", "randomised response", {"weight": np.array(weight)}, {})
    for reader in (wh.load, RandomisedResponse.load):
        try:
            reader("forged.npz")
        except InvalidInput as error:
            assert "weight must be" in str(error)
        else:
            raise AssertionError("a forged file was read")
"""


def test_a_saved_kind_is_a_class_and_a_line(copy):
    touched = extend(copy, "A saved kind")
    assert len(touched) == 2
    done = run(copy, "-W", "error", "-c", use("A saved kind") + SAVED_CHECKS)
    assert done.returncode == 0, done.stderr
