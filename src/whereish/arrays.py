"""The arrays that numbers travel in, one definition for the whole package, and what grids need."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ByteArray", "Cells", "FloatArray", "IntArray", "WordArray", "least_around"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]
"""Random words of 64 bits."""
ByteArray: TypeAlias = NDArray[np.uint8]
Cells: TypeAlias = tuple[IntArray, ByteArray]
"""Cells that a kernel fills, and whether it left each of them open."""


def least_around(values: FloatArray) -> FloatArray:
    """The least value among each cell of a grid and its eight neighbours."""
    least = np.pad(values, 1, mode="edge")
    least = np.minimum(np.minimum(least[:-2], least[1:-1]), least[2:])
    return np.minimum(np.minimum(least[:, :-2], least[:, 1:-1]), least[:, 2:])
