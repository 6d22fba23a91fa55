"""The page that is checked in is the one that its sources give, byte for byte."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

import whereish

ROOT = Path(__file__).parents[3]
CHECKED_IN = Path(whereish.__file__).parent / "interfaces" / "workbench" / "page"
MADE = ("app.js", "app.css", "index.html", "icon.svg", "LICENSES.txt")


def test_the_bundle_is_reproducible(tmp_path):
    node = shutil.which("node")
    if node is None or not (ROOT / "page" / "node_modules" / "esbuild").is_dir():
        pytest.skip("Node and the page's packages are not here: `make page` installs them")
    digests = []
    for run in ("one", "two"):
        subprocess.run([node, "build.mjs", str(tmp_path / run)], cwd=ROOT / "page", check=True)
        digests.append(
            {
                name: hashlib.sha256((tmp_path / run / name).read_bytes()).hexdigest()
                for name in MADE
            }
        )
    assert digests[0] == digests[1]
    kept = {name: hashlib.sha256((CHECKED_IN / name).read_bytes()).hexdigest() for name in MADE}
    assert kept == digests[0], "page/src changed: run `make page` and commit the result"


def test_the_lockfile_names_no_registry():
    text = (ROOT / "page" / "package-lock.json").read_text()
    assert "resolved" not in text
    assert "://" not in text.replace("https://opencollective.com", "").replace(
        "https://github.com", ""
    ).replace("https://www.patreon.com", "")
