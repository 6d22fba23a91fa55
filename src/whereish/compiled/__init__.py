"""Compiled kernels: one decorator, so that all of them follow the same rules.

No fast-math: the error bounds of the exact sampler count every rounding.  numba is imported
when a kernel is first called, not when its module is, so that what calls none stays light.
:mod:`whereish.compiled.kernels` has the decorator, :mod:`whereish.compiled.cache` and
:mod:`whereish.compiled.folders` where machine code is kept, :mod:`whereish.compiled.index` all
kernels of the package, for ``whereish compile``.
"""

from whereish.compiled.intrinsics import lazy_intrinsic
from whereish.compiled.kernels import Kernel, compiled, fma, is_numba_loaded, kernel

__all__ = ["Kernel", "compiled", "fma", "is_numba_loaded", "kernel", "lazy_intrinsic"]
