"""Operations of compiled code that are written for LLVM, found when a kernel is compiled."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["LazyIntrinsic", "lazy_intrinsic"]


class LazyIntrinsic:
    """An operation of compiled code, written for LLVM; not to be called from Python."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name, self._type = module, name, None

    @property
    def home(self) -> ModuleType:
        """The module that has its code."""
        return import_module(self._module)

    @property
    def _numba_type_(self) -> Any:
        if self._type is None:
            from numba.core.registry import cpu_target

            made = getattr(self.home, self._name)
            cpu_target.typing_context.refresh()
            self._type = cpu_target.typing_context.resolve_value_type(made)
        return self._type


def lazy_intrinsic(module: str, name: str) -> Any:
    """An intrinsic of numba in a module that imports numba, found when a kernel is compiled."""
    return LazyIntrinsic(module, name)
