"""Compiled kernels: one decorator, so that all of them follow the same rules.

No fast-math: the error bounds of the exact sampler count every rounding.  The
machine code is cached beside the source (or in the user's cache), so that only
the first call on a machine compiles; where neither can be written, every process
compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with IEEE semantics, without the interpreter lock."""
    rules: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **rules)(function))
    except RuntimeError:  # no folder for the cache can be written
        return cast(F, numba.njit(**rules)(function))
