"""What goes over the wire: JSON of a known shape in, JSON and raw arrays out.

An answer with arrays is 4 bytes of length (little endian), a JSON head, spaces up to a multiple of
8, and the arrays one after the other, each from a multiple of 8 on.  The head's ``arrays`` says
name, type, shape and offset (from the first array) of each.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from whereish.errors import WhereishError, printable
from whereish.interfaces.http.problems import Problem, refused_field
from whereish.interfaces.http.requests import gather

__all__ = ["Message", "answer", "attachment", "binary", "read", "refused"]

MOST_BYTES: Final = 4 << 20
_TYPES: Final = {"float64": "f8", "float32": "f4", "uint8": "u1", "int32": "i4"}
_Read = TypeVar("_Read", bound="Message")


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise NotImplementedError(type(value).__name__)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain)


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request's body: fields that are not known are refused."""


async def read(request: Request, kind: type[_Read], *, most: int = MOST_BYTES) -> _Read:
    """The body as a message of this kind; what it quotes is never in the refusal."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json":
        raise Problem("media-type")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise Problem("too-large", f"at most {most} bytes")
    body = await gather(request.receive, most)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        names = frozenset(_names(kind))
        raise Problem(
            "invalid", "a field is not what it must be", field=refused_field(error, names)
        ) from None
    except msgspec.DecodeError:
        raise Problem("bad-request", "the body is not JSON") from None


def _names(kind: Any, seen: set[Any] | None = None) -> set[str]:
    """The names of a message's fields and of those of the messages in it."""
    seen = set() if seen is None else seen
    found: set[str] = set()
    for one in msgspec.json.schema_components([kind])[1].values():
        found |= set(one.get("properties", ()))
    return found


def refused(error: WhereishError) -> Problem:
    """An error of the library as a problem; its sentences quote no place."""
    return Problem("invalid", printable(str(error)))


def answer(content: Any) -> Response:
    """JSON."""
    return Response(
        _ENCODER.encode(content),
        headers={"cache-control": "no-store"},
        media_type="application/json",
    )


def binary(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Response:
    """A head and arrays."""
    described: list[dict[str, Any]] = []
    parts: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        kind = _TYPES[array.dtype.name]
        described.append({"name": name, "type": kind, "shape": array.shape, "offset": offset})
        padding = -len(raw) % 8
        parts += [raw, b"\0" * padding]
        offset += len(raw) + padding
    text = _ENCODER.encode({**head, "arrays": described})
    text += b" " * (-(len(text) + 4) % 8)
    return Response(
        b"".join([struct.pack("<I", len(text)), text, *parts]),
        headers={"cache-control": "no-store"},
        media_type="application/octet-stream",
    )


def attachment(content: bytes, name: str) -> Response:
    """A file to keep; `name` is one of ours."""
    headers = {
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Response(content, headers=headers, media_type="application/octet-stream")
