"""Cholesky factors without the interpreter's lock, so that threads can make several at once.

SciPy's own wrappers hold the lock while LAPACK works.  Its C interface
(`scipy.linalg.cython_lapack`) gives the same functions as pointers, and ctypes lets go of
the lock around a call.  Matrices are Fortran-ordered; only their upper half is meant.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["address", "cholesky", "cholesky_inverse", "cholesky_solve"]

_UPPER = b"U"
_DOUBLES, _INTEGER = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
_SIGNATURES: dict[str, list[Any]] = {
    "dpotrf": [ctypes.c_char_p, _INTEGER, _DOUBLES, _INTEGER, _INTEGER],
    "dpotri": [ctypes.c_char_p, _INTEGER, _DOUBLES, _INTEGER, _INTEGER],
    "dpotrs": [ctypes.c_char_p, *[_INTEGER] * 2, _DOUBLES, _INTEGER, _DOUBLES, *[_INTEGER] * 2],
}


@cache
def address(name: str) -> int:
    """Where a function of BLAS or LAPACK is in this process, for kernels that call it."""
    from scipy.linalg import cython_blas, cython_lapack

    tables: list[Any] = [cython_lapack.__pyx_capi__, cython_blas.__pyx_capi__]
    capsule = next(table[name] for table in tables if name in table)
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule)))


@cache
def _function(name: str) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *_SIGNATURES[name])(address(name))


def _square(matrix: FloatArray) -> Any:
    n = matrix.shape[0]
    if matrix.shape != (n, n) or not matrix.flags.f_contiguous or matrix.dtype != np.float64:
        raise ValueError("LAPACK takes square Fortran-ordered matrices of doubles")
    return ctypes.c_int(n)


def cholesky(matrix: FloatArray) -> int:
    """Overwrite the upper half by the factor R, matrix = R' R; 0, or where it failed."""
    n, info = _square(matrix), ctypes.c_int(0)
    _function("dpotrf")(_UPPER, n, matrix.ctypes.data, n, info)
    return info.value


def cholesky_inverse(factor: FloatArray) -> int:
    """Overwrite the upper half of a factor by that of the inverse; 0, or where it failed."""
    n, info = _square(factor), ctypes.c_int(0)
    _function("dpotri")(_UPPER, n, factor.ctypes.data, n, info)
    return info.value


def cholesky_solve(factor: FloatArray, right: FloatArray) -> FloatArray:
    """The solution for one right-hand side."""
    n, one, info = _square(factor), ctypes.c_int(1), ctypes.c_int(0)
    solution = np.array(right, np.float64)
    if solution.shape != (n.value,):
        raise ValueError("the right-hand side must have one number for each row")
    _function("dpotrs")(_UPPER, n, one, factor.ctypes.data, n, solution.ctypes.data, n, info)
    return solution
