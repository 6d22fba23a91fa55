"""Save and load built mechanisms: numbers, certificate and a hash that binds them.

A file is a NumPy ``.npz`` without pickled objects.  Beside the arrays it holds
``certificate``: JSON text with the kind of mechanism, its guarantee, how that was
verified, versions, and the SHA-256 of all that.  Whoever reads it can verify the
guarantee from the numbers alone.

Each kind of file has one class that reads it, declared by :func:`saved_as`; :func:`load`
reads a file of any kind.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import tokenize
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from whereish import __version__
from whereish.errors import InvalidInput, WhereishError
from whereish.mechanisms.base import Mechanism
from whereish.privacy.guarantee import Guarantee
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Space
from whereish.space.sphere import Sphere

__all__ = [
    "Artefact",
    "Loadable",
    "SavedMechanism",
    "described",
    "load",
    "load_artefact",
    "load_places",
    "mechanism_in",
    "save_artefact",
    "saved_as",
    "space_from_json",
    "space_to_json",
]

FORMAT = 1
_ZIP = b"PK\x03\x04"  # what an .npz begins with
_DAMAGED = (EOFError, NotImplementedError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
_FOREIGN = (
    ArithmeticError,  # an array with a side that no integer of the machine holds
    AttributeError,  # a certificate that is no array
    LookupError,
    OSError,
    RuntimeError,  # an encrypted archive, or a certificate nested without end
    TypeError,
    ValueError,
    tokenize.TokenError,  # a header of an array that breaks off
)
_LARGEST = 2**32 + 2**28
"""Bytes of the largest file, unpacked: the weights of a channel of 2^28 entries, and as many
distances.  A few megabytes of archive could otherwise ask for all memory."""
_CERTIFICATE = "certificate"

_HOMES = {
    "channel": "mechanisms.channels.channel",
    "eikonal": "mechanisms.maps.eikonal",
    "eikonal query": "mechanisms.maps.query",
}
"""The module below ``whereish`` whose class reads a kind; it is imported when such a file is."""

_READERS: dict[str, Any] = {}
_SPACES: dict[str, Any] = {"plane": Plane, "sphere": Sphere, "line": Line}
_Reader = TypeVar("_Reader", bound=type[Any])
_Value = TypeVar("_Value")


class SavedMechanism(Protocol):
    """What :func:`load` returns: a mechanism that reports places, or answers about them."""

    @property
    def guarantee(self) -> Guarantee:
        """What is kept, as verified from the file's numbers."""

    def report(self, secrets: Any, /) -> Any:
        """One report for each secret."""

    def save(self, path: str | Path) -> None:
        """Write it to a file again."""


@dataclass(frozen=True)
class Artefact:
    """What a file held: the kind of mechanism, its arrays and its certificate."""

    kind: str
    arrays: Mapping[str, NDArray[Any]]
    certificate: Mapping[str, Any]


class Loadable:
    """A class that :func:`saved_as` declares to read a kind of file."""

    saved_kind: ClassVar[str]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote and verify it from its numbers alone.

        Damaged or altered numbers are refused.
        """
        return cls.from_artefact(load_artefact(path, cls.saved_kind))

    @classmethod
    @abstractmethod
    def from_artefact(cls, saved: Artefact) -> Self:
        """What a file holds that was read already, verified from its numbers."""


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


def _what_it_is(path: Path, damaged: bool) -> str:
    """Of a file that could not be read as a mechanism, perhaps since its archive is `damaged`."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        begins = file.read(len(_ZIP))
        if not begins:
            return "is empty: copy it again, or build the mechanism again"
        if begins == _ZIP and damaged:
            return "is not complete, or damaged: copy it again, or build the mechanism again"
    return "is not a mechanism saved by whereish"


def load_artefact(path: str | Path, kind: str | None = None) -> Artefact:
    """Read a file back, once; numbers that do not match the certificate's hash are refused.

    So is a file of another kind than `kind`, if that is given.
    """
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if sum(member.file_size for member in file.zip.infolist()) > _LARGEST:
                raise InvalidInput(f"{str(path)!r} holds more numbers than any mechanism has")
            arrays = {name: file[name] for name in file.files}
        certificate = json.loads(arrays.pop(_CERTIFICATE).tobytes())
        known = certificate["format"] == FORMAT
        digest, found = certificate["sha256"], str(certificate["kind"])
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {str(path)!r}") from None
    except WhereishError:
        raise
    except MemoryError:
        raise InvalidInput(f"the numbers in {str(path)!r} need more memory than there is") from None
    except (*_FOREIGN, *_DAMAGED) as error:
        damaged = isinstance(error, _DAMAGED)
        raise InvalidInput(f"{str(path)!r} {_what_it_is(Path(path), damaged)}") from None
    if not known:
        raise InvalidInput(f"{str(path)!r} was saved by a later whereish; upgrade to read it")
    said = {key: value for key, value in certificate.items() if key != "sha256"}
    if digest != _digest(arrays, said):
        raise InvalidInput(
            f"the numbers in {str(path)!r} do not match their certificate: the file was changed or"
            " damaged; build the mechanism again"
        )
    if kind is not None and found != kind:
        raise InvalidInput(
            f"{str(path)!r} holds a mechanism of kind {found!r}, not {kind!r}; whereish.load reads"
            " every kind"
        )
    return Artefact(found, _Entries(arrays), _Entries(certificate))


def described(saved: Artefact, name: str, what: str, read: Callable[[Any], _Value]) -> _Value:
    """What `read` makes of an entry of the certificate; words that describe nothing are refused."""
    said = saved.certificate[name]
    try:
        return read(said)
    except WhereishError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        raise InvalidInput(f"the file's {name!r} is not the description of {what}") from None


def saved_as(kind: str) -> Callable[[_Reader], _Reader]:
    """Declare that the class below reads files of `kind`, by ``from_artefact(artefact)``.

    It must verify its guarantee from the numbers, since whoever writes a file can compute its
    hash.  A class outside whereish is known to :func:`load` once its module is imported.

    Raises
    ------
    InvalidInput
        If another class reads this kind.
    """

    def declare(reader: _Reader) -> _Reader:
        known = _READERS.get(kind, reader)
        home = f"whereish.{_HOMES[kind]}" if kind in _HOMES else known.__module__
        # A module that is run again declares its class again.
        if (reader.__module__, reader.__qualname__) != (home, known.__qualname__):
            raise InvalidInput(
                f"files of kind {kind!r} have another reader than {reader.__name__}; choose"
                " another name for this kind"
            )
        _READERS[kind] = reader
        if issubclass(reader, Loadable):
            reader.saved_kind = kind
        return reader

    return declare


def load(path: str | Path) -> SavedMechanism:
    """Read a saved mechanism of any kind, and verify its guarantee from its numbers.

    Contract: what is returned keeps its guarantee as computed from the file's numbers; neither
    the file's words nor its hash are trusted for that.

    Parameters
    ----------
    path
        A file that ``save`` or ``whereish build`` wrote: a channel, a mechanism under a
        privacy map, or a query under one.

    Raises
    ------
    InvalidInput
        If the file is absent, damaged, no saved mechanism, or of a kind that no class reads.
    NotPrivate
        If its numbers do not keep the metric that it states.

    Examples
    --------
    >>> import tempfile
    >>> import whereish as wh
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wh.tight_channel([[0, 0], [100, 0]], "0.01/m").save(f"{folder}/channel.npz")
    ...     channel = wh.load(f"{folder}/channel.npz")
    >>> len(channel.report([[0, 0], [100, 0], [0, 0]]))
    3
    """
    return mechanism_in(load_artefact(path))


def load_places(path: str | Path) -> Mechanism:
    """A saved mechanism that reports places; one that reports answers is refused."""
    mechanism = load(path)
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(
            f"{Path(path).name} holds a mechanism that reports answers, not places; use it in"
            " Python, with whereish.load"
        )
    return mechanism


def mechanism_in(saved: Artefact) -> SavedMechanism:
    """The mechanism of a file that was read already, verified from its numbers."""
    home = _HOMES.get(saved.kind)
    if saved.kind not in _READERS and home is not None:
        import_module(f"whereish.{home}")
    reader = _READERS.get(saved.kind)
    if reader is None:
        raise InvalidInput(
            f"no class reads files of kind {saved.kind!r}; import the module that declares it with"
            " saved_as, or upgrade whereish"
        )
    return cast(SavedMechanism, reader.from_artefact(saved))


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
    """The kind of a space that can be saved, and the description that it gives of itself."""
    for kind, known in _SPACES.items():
        if isinstance(space, known):
            return {"kind": kind, **cast(Any, space).to_json()}
    raise InvalidInput(f"a mechanism in {space.description} cannot be saved")


def space_from_json(data: Mapping[str, Any]) -> Space:
    """The space that :func:`space_to_json` described."""
    known = _SPACES.get(data["kind"])
    if known is None:
        raise InvalidInput(
            f"the file's space must be one of {', '.join(_SPACES)}; upgrade whereish to read it"
        )
    return cast(Space, known.from_json(data))
