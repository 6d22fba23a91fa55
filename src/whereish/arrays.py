"""The arrays that numbers travel in: one definition for the whole package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ByteArray", "Cells", "FloatArray", "IntArray", "WordArray"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]
"""Random words of 64 bits."""
ByteArray: TypeAlias = NDArray[np.uint8]
Cells: TypeAlias = tuple[IntArray, ByteArray]
"""Cells that a kernel fills, and whether it left each of them open."""
