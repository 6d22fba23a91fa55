"""Raster: a rectangle of a plane cut into equal cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import Points, plain_numbers
from whereish.space.sites import Sites
from whereish.units import Length, whole

__all__ = ["Raster"]


@dataclass(frozen=True)
class Raster:
    """`rows` x `columns` cells of `cell` = (width, height) metres.

    Row 0 is the southernmost and column 0 the westernmost, so that both grow with
    y and x.  A cell's flat index is row * columns + column; a cell owns its west
    and south edges.

    >>> import numpy as np
    >>> import whereish as wh
    >>> raster = wh.Raster.over(wh.Box(0, 0, 2000, 1000), "500 m")
    >>> raster.shape, raster.centres()[0].tolist()
    ((2, 4), [250.0, 250.0])
    >>> raster.locate(np.array([[600.0, 100.0]])).tolist()
    [1]
    """

    rows: int
    columns: int
    cell: tuple[float, float] = (1.0, 1.0)
    origin: tuple[float, float] = (0.0, 0.0)
    plane: Plane = field(default_factory=Plane)

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            object.__setattr__(self, name, whole(getattr(self, name), f"{name} of a raster"))
        object.__setattr__(self, "cell", _pair(self.cell, "cell (width, height) of a raster"))
        object.__setattr__(self, "origin", _pair(self.origin, "origin (x, y) of a raster"))
        if self.rows < 1 or self.columns < 1:
            raise InvalidInput(
                f"a raster must have at least one row and column; got {self.rows} x {self.columns}"
            )
        if not all(math.isfinite(side) and side > 0 for side in self.cell):
            raise InvalidInput(f"cell sides must be finite and > 0 metres; got {self.cell}")
        if not all(map(math.isfinite, self.origin)):
            raise InvalidInput("the origin of a raster must be two finite numbers, in metres")

    @classmethod
    def over(cls, box: Box, cell: Length | str, plane: Plane | None = None) -> Raster:
        """Square cells that cover `box` of a plane, from its south-west corner."""
        side = Length.positive(cell, name="cell").m
        rows, columns = math.ceil(box.height / side), math.ceil(box.width / side)
        origin = (box.x_low, box.y_low)
        return cls(rows, columns, (side, side), origin, Plane() if plane is None else plane)

    def __len__(self) -> int:
        return self.rows * self.columns

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.rows, self.columns

    @property
    def box(self) -> Box:
        """The rectangle that the cells cover."""
        (x, y), (width, height) = self.origin, self.cell
        return Box(x, y, x + self.columns * width, y + self.rows * height)

    def centres(self) -> FloatArray:
        """The (rows * columns, 2) array of cell centres, in flat order."""
        x = self.origin[0] + (np.arange(self.columns) + 0.5) * self.cell[0]
        y = self.origin[1] + (np.arange(self.rows) + 0.5) * self.cell[1]
        grid_x, grid_y = np.meshgrid(x, y)
        return np.column_stack([grid_x.ravel(), grid_y.ravel()])

    def sites(self) -> Sites:
        """The cell centres as sites."""
        return Sites(Points(self.centres(), self.plane))

    def locate(self, coordinates: FloatArray) -> NDArray[np.intp]:
        """Flat index of the cell of each row; places outside take the closest cell."""
        scaled = (coordinates - np.asarray(self.origin)) / np.asarray(self.cell)
        column = np.clip(np.floor(scaled[:, 0]), 0, self.columns - 1)
        row = np.clip(np.floor(scaled[:, 1]), 0, self.rows - 1)
        return np.asarray(row * self.columns + column, dtype=np.intp)


def _pair(values: tuple[float, float], name: str) -> tuple[float, float]:
    """Two plain floats, whatever they were given as: digests and files must not see the type."""
    pair = plain_numbers(values, name)
    if pair.shape != (2,):
        raise InvalidInput(f"{name} must be two numbers, in metres; got shape {pair.shape}")
    first, second = pair.tolist()
    return first, second
