"""schemathesis against the real service, by its own OpenAPI document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFIG = """
seed = 20261101
[generation]
max-examples = 25
deterministic = true
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "403", "404", "409", "422"]
"""


def test_schemathesis_finds_no_failure(running, tmp_path):
    """All of its checks: schemas of answers, statuses, refusals of wrong data, ignored tokens.

    422 is expected of well-formed data where a key comes again with another body.
    """
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    program = Path(sys.executable).with_name("schemathesis")
    document = tmp_path / "openapi.json"
    document.write_bytes(running.ask("GET", "/openapi.json")[2])
    done = subprocess.run(
        [
            program,
            "run",
            document,
            "--url",
            running.url,
            "--header",
            f"Authorization: Bearer {running.token}",
            "--phases",
            "examples,coverage,fuzzing",
            "--checks",
            "all",
            "--no-color",
        ],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
