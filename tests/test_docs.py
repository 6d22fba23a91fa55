"""What is public is documented, and what is generated is current."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import whereish
from whereish.interfaces.cli import COMMANDS
from whereish.interfaces.cli_reference import reference
from whereish.interfaces.reference import names

ROOT = Path(__file__).parents[1]


def test_the_command_reference_is_current():
    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "run `make docs`"


def test_the_reference_of_names_is_current():
    assert (ROOT / "docs" / "api.md").read_text() == names(), "run `make docs`"


def test_every_command_and_name_is_documented():
    cli, api = ((ROOT / "docs" / name).read_text() for name in ("cli.md", "api.md"))
    for command in COMMANDS:
        assert f"## whereish {command}" in cli
    for name in whereish.__all__:
        assert f"## wh.{name}\n" in api


def test_the_readme_names_the_two_commands_and_its_links_exist():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "SECURITY.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_no_path_or_host_of_a_machine_is_committed():
    try:
        files = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    forbidden = re.compile(r"/(?:root|home)/\w|/work/\w|/tmp/\w|pypi\.\w+\.\w+/simple")
    for name in files:
        path = ROOT / name
        if path.suffix in {".png", ".npz"} or path == Path(__file__):
            continue
        assert not forbidden.search(path.read_text(errors="ignore")), name
