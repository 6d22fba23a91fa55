"""The decorator of compiled kernels, and what stands in for numba until one is called.

A kernel that another one calls is found by numba through ``_numba_type_``, the attribute by
which any object may say what it is to compiled code; so kernels call each other as functions
do, and none of them is built before it is needed.

A kernel is compiled for the types that it is called with.  With ``WHEREISH_COMPILE=refuse``
whatever would be compiled is refused instead, by name and types: so tests see that after
``whereish compile`` nothing is left to compile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from whereish.compiled.intrinsics import lazy_intrinsic

__all__ = [
    "KERNELS",
    "Kernel",
    "compiled",
    "fma",
    "is_numba_loaded",
    "kernel",
]

F = TypeVar("F", bound=Callable[..., object])


class Kernel:
    """A function that is compiled, with IEEE semantics and without the interpreter lock."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._dispatcher: Any = None
        self._run: Callable[..., object] = self._first_call

    def __call__(self, *arguments: object) -> object:
        return self._run(*arguments)

    def __reduce__(self) -> str:
        return self.function.__qualname__

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def dispatcher(self) -> Any:
        """What numba makes of the function, made once."""
        if self._dispatcher is None:
            from numba.core.compiler_lock import global_compiler_lock

            from whereish.compiled.cache import cached_dispatcher

            with global_compiler_lock:
                if self._dispatcher is None:
                    self._dispatcher = self._run = cached_dispatcher(self.function)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def _first_call(self, *arguments: object) -> object:
        return self.dispatcher(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether this process has compiled it, or read it compiled, for some types."""
        return self._dispatcher is not None and bool(self._dispatcher.overloads)


KERNELS: list[Kernel] = []
"""Every kernel whose module is imported, in the order of their definition."""


def kernel(function: F) -> F:
    """Compile a function when it is first called; see the module's text."""
    KERNELS.append(Kernel(function))
    return cast(F, KERNELS[-1])


def compiled(function: F) -> F:
    """What numba makes of a kernel, for callers to whom the wrapper's own call is too much."""
    return cast(F, function.dispatcher if isinstance(function, Kernel) else function)


def is_numba_loaded() -> bool:
    """Whether this process has paid for numba already."""
    return "numba" in sys.modules


fma: Callable[[float, float, float], float] = lazy_intrinsic("whereish.compiled.fused", "fma")
"""a * b + c with one rounding, in kernels: one instruction, or the C library's function."""
