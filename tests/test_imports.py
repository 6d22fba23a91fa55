"""``import whereish`` stays light; heavy libraries come with what needs them."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import whereish

HEAVY = ("numpy", "scipy", "numba", "pyarrow", "pyproj", "flint", "matplotlib", "pandas", "click")


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def cpu_seconds(statement: str) -> float:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return spent() - before


def test_import_pulls_in_nothing_heavy():
    assert not loaded_after("import whereish") & set(HEAVY)


def test_the_command_line_starts_without_the_heavy_ones():
    present = loaded_after("import whereish.interfaces.cli")
    assert not present & {"scipy", "numba", "pyarrow", "pyproj", "matplotlib", "pandas"}


def test_import_is_faster_than_scipy_optimize():
    ours = min(cpu_seconds("import whereish") for _ in range(3))
    theirs = min(cpu_seconds("import scipy.optimize") for _ in range(3))
    assert ours < theirs


def test_every_public_name_resolves_and_is_typed():
    assert whereish.__all__ == sorted(whereish.__all__)
    stub = Path(whereish.__file__).with_suffix(".pyi").read_text()
    typed = set(re.findall(r"import \w+ as (\w+)", stub))
    assert typed == set(whereish.__all__)
    for name in whereish.__all__:
        assert getattr(whereish, name).__doc__, name
