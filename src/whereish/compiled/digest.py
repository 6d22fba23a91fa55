"""What the machine code of a kernel follows from, as a digest.

Numba tells a stale cache by the kernel's own file, but kernels inline others from other
files, and the constants that they name.  So the digest is of the byte code of the kernel and
of all kernels that it names, directly or not, with the values of all constants.  Whatever
changes among them, nothing compiled before is used again; whatever else changes in a file,
nothing is compiled anew.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from whereish.compiled.intrinsics import LazyIntrinsic

__all__ = ["digest"]


def digest(function: Callable[..., object], rules: str) -> str:
    """Sixteen hexadecimal digits that stand for all that `function` compiles to."""
    parts = sorted({rules, *_parts(function, set())})
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _parts(function: Any, seen: set[str]) -> Iterator[str]:
    name = f"{function.__module__}.{function.__qualname__}"
    if name in seen:
        return
    seen.add(name)
    yield f"{name}: {_code(function.__code__)}"
    named = inspect.getclosurevars(function)
    for key, value in sorted({**named.globals, **named.nonlocals}.items()):
        if hasattr(value, "__wrapped__"):  # another kernel
            yield from _parts(inspect.unwrap(value), seen)
        else:
            yield f"{name}, {key}: {_value(key, value)}"


def _code(code: CodeType) -> str:
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)
    return f"{code.co_code.hex()} {constants} {names}"


def _homes(module: ModuleType) -> list[ModuleType]:
    """A module with all of the package that what it names comes from, directly or not."""
    found = [module]
    for home in found:
        named = {getattr(value, "__module__", None) for value in vars(home).values()}
        inner = {name for name in named if isinstance(name, str) and name.startswith("whereish.")}
        found += [sys.modules[name] for name in sorted(inner) if sys.modules[name] not in found]
    return found


def _written(module: ModuleType) -> str:
    """The text of a module, and the numbers that it has from others."""
    numbers = {key: x for key, x in vars(module).items() if isinstance(x, int | float)}
    return f"{Path(inspect.getfile(module)).read_text()} {sorted(numbers.items())}"


def _value(key: str, value: object) -> str:
    """What a constant is, exactly."""
    if isinstance(value, LazyIntrinsic):
        return "".join(_written(home) for home in _homes(value.home))
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        return value.__name__
    if isinstance(value, bool | int | float | complex | str | np.generic | None):
        return repr(value)
    if isinstance(value, tuple):
        return repr([_value(key, item) for item in value])
    raise TypeError(f"a kernel names {key}, a {type(value).__name__}: only numbers can be compiled")
