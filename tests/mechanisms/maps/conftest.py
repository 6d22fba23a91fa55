"""What tests of files under a privacy map share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whereish.mechanisms.saved import load_artefact, save_artefact


@pytest.fixture
def forge_file(tmp_path) -> Callable[..., Path]:
    """Saves a mechanism, changes some of its entries and hashes all of it again."""

    def change(mechanism: Any, arrays: Any = None, **claims: Any) -> Path:
        path = tmp_path / "forged.npz"
        mechanism.save(path)
        saved = load_artefact(path)
        own = ("sha256", "format", "kind", "whereish")
        said = {key: value for key, value in saved.certificate.items() if key not in own}
        save_artefact(path, saved.kind, {**saved.arrays, **(arrays or {})}, {**said, **claims})
        return path

    return change
