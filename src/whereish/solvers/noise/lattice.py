"""Tables of ln F on a lattice of vectors, continued beyond their last ring.

A density that keeps a finite l near 0 is positive everywhere, so a table needs a tail: each
further ring of lattice vectors (in the maximum norm) has the values of the table's border,
lowered by `decay` nats for each ring.

A table is read in one of three ways: `cells` (F constant on the open square around each
vector), `linear` (ln F linear on the triangles between neighbouring vectors, each square cut
from its lower left to its upper right corner), `atoms` (probabilities at the vectors).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput

__all__ = ["Between", "LatticeLogs", "Whole"]

Between: TypeAlias = Literal["cells", "linear", "atoms"]
"""How a table is read between its vectors."""
Whole: TypeAlias = NDArray[np.int64]

_DEEP = 45.0  # the tail is followed until e^-45 of the border
_MOST_RINGS = 4000


@dataclass(frozen=True, eq=False)
class LatticeLogs:
    """ln F, up to a constant, at (i, j) * step for |i| <= a, |j| <= b, and beyond."""

    logs: FloatArray
    step: float
    decay: float

    def __post_init__(self) -> None:
        logs = np.array(self.logs, float)
        if logs.ndim != 2 or any(size % 2 == 0 for size in logs.shape):
            raise InvalidInput(
                "a table of noise must have odd numbers of rows and columns, the middle one for"
                f" the vector 0; got shape {logs.shape}"
            )
        if not np.isfinite(logs).all():
            raise InvalidInput("a table of noise must be finite and > 0 at every vector")
        if not (math.isfinite(self.step) and self.step > 0):
            raise InvalidInput(f"the step of a table must be a length > 0; got {self.step!r}")
        if not (math.isfinite(self.decay) and self.decay >= _DEEP / _MOST_RINGS):
            raise InvalidInput(
                "beyond the table each ring must fall by a finite number of nats, at least"
                f" {_DEEP / _MOST_RINGS:g}; got {self.decay!r}"
            )
        logs = logs - logs.max()
        logs.setflags(write=False)
        object.__setattr__(self, "logs", logs)

    @property
    def halves(self) -> tuple[int, int]:
        """(a, b): the table's last indices along x and y."""
        return self.logs.shape[0] // 2, self.logs.shape[1] // 2

    def at(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        """ln F at lattice vectors, in the scale in which the table's largest is 0."""
        x, y = np.asarray(i, np.int64), np.asarray(j, np.int64)
        a, b = self.halves
        inner = self.logs[np.clip(x, -a, a) + a, np.clip(y, -b, b) + b]
        rings = np.maximum(np.maximum(np.abs(x) - a, np.abs(y) - b), 0)
        return np.asarray(inner - self.decay * rings)

    def padded(self, rings: int) -> FloatArray:
        """The table with so many rings around it."""
        a, b = self.halves
        i, j = np.arange(-a - rings, a + rings + 1), np.arange(-b - rings, b + rings + 1)
        return self.at(i[:, None], j[None])

    @property
    def rings(self) -> int:
        """Rings after which nothing of weight is left."""
        return math.ceil(_DEEP / self.decay)

    @cached_property
    def sum(self) -> float:
        """The sum of F over all lattice vectors: rings are geometric series.

        Ring k has the border cells, its corners once more in each of two directions, and
        2k - 1 cells at every corner.
        """
        f, q = np.exp(self.logs), math.exp(-self.decay)
        corners = float(f[[0, 0, -1, -1], [0, -1, 0, -1]].sum())
        sides = float(f[0].sum() + f[-1].sum() + f[:, 0].sum() + f[:, -1].sum())
        strips = q / (1 - q)
        return float(f.sum()) + sides * strips + corners * q * (1 + q) / (1 - q) ** 2

    def steepest(self) -> tuple[float, tuple[int, int], tuple[float, float]]:
        """The largest |grad ln F| of the linear reading, per step; its triangle and direction.

        Two rings around the table have every triangle of the tail: further out they repeat.
        """
        g = self.padded(3)
        a, b = self.halves
        low, right, up, high = g[:-1, :-1], g[1:, :-1], g[:-1, 1:], g[1:, 1:]
        lower = np.stack([right - low, high - right], axis=-1)  # below the diagonal
        upper = np.stack([high - up, up - low], axis=-1)
        best, where, slope = -1.0, (0, 0), (0.0, 0.0)
        for gradients in (lower, upper):
            size = np.hypot(gradients[..., 0], gradients[..., 1])
            at = np.unravel_index(int(size.argmax()), size.shape)
            if size[at] > best:
                best = float(size[at])
                where = (int(at[0]) - a - 3, int(at[1]) - b - 3)
                slope = (float(gradients[at][0]), float(gradients[at][1]))
        return best, where, slope

    def interpolated(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """ln F at vectors (x, y) in steps, by the linear reading."""
        i, j = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        s, t = x - i, y - j
        low, high = self.at(i, j), self.at(i + 1, j + 1)
        middle = np.where(s >= t, self.at(i + 1, j), self.at(i, j + 1))
        return np.asarray(
            low * (1 - np.maximum(s, t)) + middle * np.abs(s - t) + high * np.minimum(s, t)
        )
