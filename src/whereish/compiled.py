"""Compiled kernels: one decorator, so that all of them follow the same rules.

No fast-math: the error bounds of the exact sampler count every rounding.  The
machine code is cached beside the source (or in the user's cache), so that only
the first call on a machine compiles; where neither can be written, every process
compiles for itself.

Numba tells a stale cache by the kernel's own file alone, but kernels inline others
from other files.  So the cache's name carries a digest of all sources: whatever
changes in the package, nothing compiled before is used again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.extending import intrinsic

__all__ = ["fma", "kernel"]

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with IEEE semantics, without the interpreter lock."""
    rules: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
    function.__qualname__ += f"_{_sources()}"
    try:
        return cast(F, numba.njit(cache=True, **rules)(function))
    except RuntimeError:  # no folder for the cache can be written
        return cast(F, numba.njit(**rules)(function))


@cache
def _sources() -> str:
    """A digest of every module of the package that compiles something."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        if b"compiled import" in text or b"numba" in text:
            digest.update(text)
    return digest.hexdigest()[:16]


def _fused(context: Any, a: Any, b: Any, c: Any) -> Any:
    double = numba.types.float64

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return double(double, double, double), code


fma: Callable[[float, float, float], float] = intrinsic(_fused)
"""a * b + c with one rounding, in kernels: one instruction, or the C library's function."""
