"""Save and load built mechanisms: numbers, certificate and a hash that binds them.

A file is a NumPy ``.npz`` without pickled objects.  Beside the arrays it holds
``certificate``: JSON text with the kind of mechanism, its guarantee, how that was
verified, versions, and the SHA-256 of all that.  Whoever reads it can verify the
guarantee from the numbers alone.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish import __version__
from whereish.errors import InvalidInput
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Space
from whereish.space.sphere import Sphere

__all__ = ["Artefact", "load_artefact", "save_artefact", "space_from_json", "space_to_json"]

FORMAT = 1
_CERTIFICATE = "certificate"


@dataclass(frozen=True)
class Artefact:
    """What a file held: the kind of mechanism, its arrays and its certificate."""

    kind: str
    arrays: Mapping[str, NDArray[Any]]
    certificate: Mapping[str, Any]


class _Entries(dict[str, Any]):
    """What a file holds, by name; a file of another version may lack some."""

    def __missing__(self, name: str) -> Any:
        raise InvalidInput(
            f"the file must have an entry {name!r}, which another version of whereish did not"
            " write: build the mechanism again"
        )


def save_artefact(
    path: str | Path, kind: str, arrays: Mapping[str, NDArray[Any]], certificate: Mapping[str, Any]
) -> None:
    """Write `arrays` with their certificate."""
    said = json.loads(
        json.dumps(
            {"format": FORMAT, "kind": kind, "whereish": __version__, **certificate},
            default=_plain,
        )
    )
    text = json.dumps({"sha256": _digest(arrays, said), **said})
    with Path(path).open("wb") as file:
        contents: dict[str, Any] = {
            **arrays,
            _CERTIFICATE: np.frombuffer(text.encode(), np.uint8),
        }
        np.savez_compressed(file, **contents)


def load_artefact(path: str | Path) -> Artefact:
    """Read a file back; numbers that do not match the certificate's hash are refused."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        certificate = json.loads(arrays.pop(_CERTIFICATE).tobytes())
        known = certificate["format"] == FORMAT
        digest, kind = certificate["sha256"], str(certificate["kind"])
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {str(path)!r}") from None
    except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile, zlib.error):
        raise InvalidInput(f"{str(path)!r} is not a mechanism saved by whereish") from None
    if not known:
        raise InvalidInput(f"{str(path)!r} was saved by a later whereish; upgrade to read it")
    said = {key: value for key, value in certificate.items() if key != "sha256"}
    if digest != _digest(arrays, said):
        raise InvalidInput(
            f"the numbers in {str(path)!r} do not match their certificate: the file was changed or"
            " damaged; build the mechanism again"
        )
    return Artefact(kind, _Entries(arrays), _Entries(certificate))


def _plain(value: Any) -> Any:
    """What JSON can say of a number in another type than Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Real):
        return float(value)
    raise InvalidInput(f"a {type(value).__name__} cannot be saved in a certificate")


def _digest(arrays: Mapping[str, NDArray[Any]], said: Mapping[str, Any]) -> str:
    """SHA-256 of the certificate's words and of all numbers."""
    sha = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def space_to_json(space: Space) -> dict[str, Any]:
    """A plain description of a plane, the sphere or a line."""
    if isinstance(space, Plane):
        return {"kind": "plane", **space.to_json()}
    if isinstance(space, Sphere):
        return {"kind": "sphere"}
    if isinstance(space, Line):
        return {"kind": "line"}
    raise InvalidInput(f"a mechanism in {space.description} cannot be saved")


def space_from_json(data: Mapping[str, Any]) -> Space:
    """The space that :func:`space_to_json` described."""
    if data["kind"] == "sphere":
        return Sphere()
    if data["kind"] == "line":
        return Line()
    return Plane.from_json(data)
