"""Where the laws stand between which a spline law goes: corners of cells, or half cells."""

from __future__ import annotations

from typing import TypeAlias

from whereish.solvers.splines.corners import Corners
from whereish.solvers.splines.halves import Halves

__all__ = ["LATTICES", "Lattice", "lattice_of"]

Lattice: TypeAlias = Corners | Halves

LATTICES: dict[str, Lattice] = {"corners": Corners(), "halves": Halves()}
"""By the names that files have for them."""


def lattice_of(shape: tuple[int, ...], nodes: tuple[int, ...]) -> Lattice:
    """The lattice that has so many rows and columns of nodes on a map of the given shape."""
    corners = LATTICES["corners"]
    return corners if corners.shape(shape) == nodes else LATTICES["halves"]
