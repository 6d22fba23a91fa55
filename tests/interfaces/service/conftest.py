"""One service for all tests that do not break it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import whereish as wh

import postgres
import service_process


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    draw = np.random.default_rng(7)
    cafes = {"lon": draw.normal(2.33316, 0.01, 300), "lat": draw.normal(48.85412, 0.01, 300)}
    names = [f"café {i}" for i in range(300)]
    places = pd.DataFrame({**cafes, "name": names})
    wh.PlaceStore.build(folder / "cafes.db", places, keep=["name"]).close()
    with service_process.service(folder, top="places = 'cafes.db'") as made:
        yield made


@pytest.fixture(scope="session")
def server():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: see scripts/system-packages.sh")
    with postgres.server() as address:
        yield address
