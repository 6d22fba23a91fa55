"""Shared fixtures: where the real data is, and a seeded source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from whereish.randomness import SeededRandomness

DATA = Path(os.environ.get("WHEREISH_DATA", Path(__file__).parents[2] / "shared" / "data"))

# No deadline: the first example may compile, and a loaded machine is slow.  CI tries the same
# examples every time; a developer tries others on every run.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("developer", **PATIENT)
settings.register_profile("ci", **PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")

SLOW = (
    "audit/test_statistical.py",
    "contract/test_densities.py",
    "engines/",
    "interfaces/",
    "mechanisms/channels/test_forged_words.py",
    "mechanisms/channels/test_optimal.py",
    "mechanisms/maps/",
    "mechanisms/noise/",
    "lbs/test_areas.py",
    "lbs/test_nearby.py",
    "lbs/test_pins.py",
    "mechanisms/noise/test_true_radii_planes.py",
    "mechanisms/traces/",
    "publish/formats/test_compact.py",
    "publish/formats/test_damaged_files.py",
    "publish/formats/test_files.py",
    "publish/formats/test_readers.py",
    "publish/formats/test_refused_files.py",
    "publish/ledger/",
    "publish/profiles/",
    "publish/release/",
    "publish/test_canaries.py",
    "queries/test_answer.py",
    "queries/test_sensitivity.py",
    "queries/test_universal_optimality.py",
    "sampling/test_spline.py",
    "solvers/eikonal/",
    "solvers/geodesic/",
    "solvers/optimal/",
    "solvers/radial/",
    "space/test_planes.py",
    "studies/",
    "test_compiled.py",
    "test_extending.py",
    "test_mutants.py",
    "test_randomness.py",
)
"""Where tests take long, by paths below this folder: left out of `make quick`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and str(item.path.relative_to(here)).startswith(SLOW):
            item.add_marker(pytest.mark.slow)


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
