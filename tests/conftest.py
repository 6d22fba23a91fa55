"""Shared fixtures: where the real data is, and a seeded source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from whereish.randomness import SeededRandomness

DATA = Path(os.environ.get("WHEREISH_DATA", Path(__file__).parents[2] / "shared" / "data"))

# No deadline: the first example may compile.  CI tries the same examples every time; a developer
# tries others on every run.
settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


@pytest.fixture
def rng() -> SeededRandomness:
    return SeededRandomness(20260901)


@pytest.fixture
def data_file():
    """A function from a file name to its path; skips, saying so, where the file is absent."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"real data {name} is not at WHEREISH_DATA")
        return path

    return find
