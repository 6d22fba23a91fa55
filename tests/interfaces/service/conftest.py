"""One service for all tests that do not break it."""

from __future__ import annotations

import pytest

import postgres
import service_process


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    with service_process.service(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture(scope="session")
def server():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: see scripts/system-packages.sh")
    with postgres.server() as address:
        yield address
