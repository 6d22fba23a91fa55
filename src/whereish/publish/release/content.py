"""Digests of what an object holds: equal for equal mechanisms and remaps, in any process.

An interrupted job is known for the same by what it was asked, and part of that are objects
of the caller.  Their names do not tell them apart, nor does the guarantee that they keep.
"""

from __future__ import annotations

import hashlib
import pickle
import uuid
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

import numpy as np

__all__ = ["content_digest"]


def content_digest(value: object) -> str:
    """SHA-256 of the content of a value.

    Objects of whereish and dataclasses count with their fields, a function with its code, its
    defaults and what it closes over, any other object with its pickled state; globals that a
    function reads are not seen.  What cannot be pickled differs from everything, itself in
    another run included: its interrupted job is finished with
    :func:`whereish.publish.release.staging.finish`.
    """
    try:
        content = _content(value)
    except Exception:  # pickling runs code of anybody's
        content = uuid.uuid4().bytes
    return hashlib.sha256(content).hexdigest()


def _content(value: object) -> bytes:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _joined("array", f"{value.dtype} {value.shape}".encode(), value.tobytes())
    if isinstance(value, list | tuple | np.ndarray):
        return _joined("sequence", *map(_content, value))
    if isinstance(value, Mapping):
        pairs = sorted((_content(key), _content(one)) for key, one in value.items())
        return _joined("mapping", *(part for pair in pairs for part in pair))
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        state = [value.__module__, value.__qualname__, value.__defaults__, value.__kwdefaults__]
        return _joined("function", _code(value.__code__).encode(), *map(_content, state + cells))
    kind = type(value)
    ours = kind.__module__.partition(".")[0] == "whereish"
    if ours or is_dataclass(kind):
        name = f"{kind.__module__}.{kind.__qualname__}".encode()
        return _joined("object", name, _content(_fields(value)))
    return _joined("other", pickle.dumps(value))


def _fields(value: object) -> dict[str, Any]:
    """What an object was given, without what it has computed from that meanwhile."""
    slots = [name for one in type(value).__mro__ for name in getattr(one, "__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    return {
        name: one
        for name, one in held.items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }


def _code(code: CodeType) -> str:
    """What a function does, without where its source stands."""
    constants = [_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, constants))


def _joined(tag: str, *parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists of parts are one text."""
    return tag.encode() + b"".join(b"%d:%b" % (len(part), part) for part in parts)
