"""Files of mechanisms: every number and every word in them is bound by their hash."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms import saved as saved_files
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


def repacked(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    """The archive with other members."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in {**held, **members}.items():
            archive.writestr(name, content)
    return path


def text(words: str) -> bytes:
    """A certificate of these words."""
    file = io.BytesIO()
    np.save(file, np.frombuffer(words.encode(), np.uint8))
    return file.getvalue()


def header(words: str) -> bytes:
    """An array that says so much of itself, and holds nothing."""
    line = words.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


def of_shape(shape: str) -> bytes:
    return header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape},), }}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("certificate.npy", b"no array"),
        ("certificate.npy", text("[" * 200_000)),
        ("certificate.npy", text('{"a":' * 100_000)),
        ("a.npy", header("(" * 100)),
        ("a.npy", of_shape(str(10**25))),
    ],
)
def test_archives_of_something_else_are_refused_in_a_sentence(saved, name, content):
    with pytest.raises(InvalidInput, match="not a mechanism"):
        load_artefact(repacked(saved, **{name: content}))


def test_an_array_that_claims_all_memory_is_refused_in_a_sentence(saved):
    with pytest.raises(InvalidInput, match="more memory than there is"):
        load_artefact(repacked(saved, **{"a.npy": of_shape(str(10**15))}))


def test_a_small_archive_of_very_many_numbers_is_refused_before_it_is_unpacked(saved, monkeypatch):
    monkeypatch.setattr(saved_files, "_LARGEST", 2**20)
    assert load_artefact(repacked(saved)).kind == "kind"
    bomb = of_shape(str(2**20)) + bytes(2**23)
    path = repacked(saved, **{"a.npy": bomb})
    assert path.stat().st_size < 2**15
    with pytest.raises(InvalidInput, match="more numbers than any mechanism"):
        load_artefact(path)


def test_archives_that_no_one_can_unpack_are_refused_in_a_sentence(saved):
    whole = repacked(saved, zipfile.ZIP_LZMA).read_bytes()
    assert load_artefact(saved).kind == "kind"
    torn = bytearray(whole)
    torn[60:200] = bytes(byte ^ 0x5A for byte in torn[60:200])
    plain = repacked(saved).read_bytes()
    encrypted, strange = bytearray(plain), bytearray(plain)
    for mark, flags, method in ((b"PK\x03\x04", 6, 8), (b"PK\x01\x02", 8, 10)):
        at = plain.find(mark)
        while at >= 0:
            encrypted[at + flags], strange[at + method] = 1, 99
            at = plain.find(mark, at + 1)
    for archive in (torn, encrypted, strange):
        saved.write_bytes(archive)
        with pytest.raises(InvalidInput, match=r"not a mechanism|or damaged"):
            load_artefact(saved)
