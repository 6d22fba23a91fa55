"""Compiled kernels: one decorator, so that all of them follow the same rules.

No fast-math: the error bounds of the exact sampler count every rounding.  The
machine code is cached beside the source (or in the user's cache), so that only
the first call on a machine compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with IEEE semantics, without the interpreter lock."""
    return cast(
        F, numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    )
