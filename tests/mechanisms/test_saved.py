"""Files of mechanisms: every number and every word in them is bound by their hash."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.saved import load_artefact, save_artefact

ARRAYS = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.array([0.5, 1.5])}


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "kind.npz"
    save_artefact(path, "kind", ARRAYS, {"factor": 0.5, "words": {"of": ["many"]}})
    return path


def rewritten(path: Path, arrays: dict[str, Any] | None = None, **said: Any) -> Path:
    """The file with other entries under the hash that it had."""
    with np.load(path) as file:
        entries = {name: file[name] for name in file.files}
    words = {**json.loads(entries["certificate"].tobytes()), **said}
    entries["certificate"] = np.frombuffer(json.dumps(words).encode(), np.uint8)
    np.savez(path, **{**entries, **(arrays or {})})
    return path


def test_what_was_written_is_read(saved):
    read = load_artefact(rewritten(saved))
    assert read.kind == "kind"
    assert read.certificate["words"] == {"of": ["many"]}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(read.arrays[name], array)
        assert read.arrays[name].dtype == array.dtype


@pytest.mark.parametrize(
    "arrays",
    [
        {"b": np.array([0.5, np.nextafter(1.5, 2)])},
        {"a": ARRAYS["a"].reshape(3, 2)},
        {"a": ARRAYS["a"].view(np.uint64)},
        {"a": ARRAYS["a"].astype(">i8")},
        {"c": np.zeros(1)},
        {"a": ARRAYS["b"], "b": ARRAYS["a"]},
    ],
)
def test_other_numbers_shapes_types_and_names_are_refused(saved, arrays):
    with pytest.raises(InvalidInput, match="do not match their certificate"):
        load_artefact(rewritten(saved, arrays))


@pytest.mark.parametrize(
    "said",
    [{"factor": 0.4}, {"kind": "other"}, {"words": {"of": ["few"]}}, {"more": 1}, {"sha256": "0"}],
)
def test_other_words_are_refused(saved, said):
    with pytest.raises(InvalidInput, match="do not match their certificate"):
        load_artefact(rewritten(saved, **said))


def test_a_later_format_asks_for_an_upgrade(saved):
    with pytest.raises(InvalidInput, match="later whereish"):
        load_artefact(rewritten(saved, format=99))


def test_pickles_and_other_files_are_refused_unread(saved, tmp_path):
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    with np.load(saved) as file:
        entries = {name: file[name] for name in file.files}
    np.savez(saved, **{**entries, "a": np.array([Trap()], dtype=object)})
    with pytest.raises(InvalidInput, match="not a mechanism"):
        load_artefact(saved)
    saved.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidInput, match="not a mechanism"):
        load_artefact(saved)
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(InvalidInput, match="there is no file"):
        load_artefact(tmp_path / "none.npz")
