"""a * b + c with one rounding, for numba; imported when a kernel that uses it is compiled."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

__all__ = ["fma"]


@intrinsic  # type: ignore[untyped-decorator]
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """One instruction, or the C library's function."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return types.float64(types.float64, types.float64, types.float64), code
