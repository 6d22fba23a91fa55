"""What mechanisms on a lattice of metres share: its step, its plane, the cell of a moved secret."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.mechanisms.noise.rounded import LARGEST_CELL, RoundedMechanism
from whereish.privacy.norms import Euclidean
from whereish.sampling.lazy_uniform import LazyUniform, direction_ball, half
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["LatticeNoise", "OnPlane", "PlanarNoise"]


class LatticeNoise(RoundedMechanism):
    """Noise that is reported on a lattice of declared step in metres.

    A dataclass that derives from it declares `lattice` among its fields.
    """

    lattice: Length

    def _declare_lattice(self, resolution: Length | str) -> None:
        object.__setattr__(self, "lattice", Length.positive(resolution, name="resolution"))

    @property
    def resolution(self) -> float:
        """Lattice step in metres."""
        return self.lattice.m

    def _cell_ball(self, x: float, noise: arb) -> arb:
        """A ball around the cell coordinate of x + noise."""
        from flint import arb

        return (arb(float(x)) + noise) / arb(self.resolution) + half()


class OnPlane(LatticeNoise):
    """Noise of a declared level, on a lattice of a declared plane.

    A dataclass that derives from it declares `epsilon`, `lattice` and `plane` among its fields.
    """

    epsilon: Epsilon
    plane: Plane

    def __init__(
        self,
        epsilon: Epsilon | str,
        *,
        resolution: Length | str = "1 m",
        plane: Plane | None = None,
    ) -> None:
        object.__setattr__(self, "epsilon", Epsilon.of(epsilon))
        self._declare_lattice(resolution)
        self._declare_plane(plane)
        self._check_declared()

    def _check_declared(self) -> None:
        """Refuse what does not fit together."""

    def _declare_plane(self, plane: Plane | None) -> None:
        object.__setattr__(self, "plane", Plane.metres() if plane is None else plane)

    @property
    def space(self) -> Plane:
        """The declared plane."""
        return self.plane


class PlanarNoise(OnPlane):
    """Noise of a random radius in a uniform direction, on a declared plane.

    A dataclass that derives from it declares `lattice` and `plane` among its fields.
    """

    @property
    def _plain_bounds(self) -> tuple[float, float] | None:
        if self.plane.crs is not None:
            return None  # a region to lie in
        reach = LARGEST_CELL * self.resolution
        return reach, reach

    def _node(self, cell: tuple[int, int]) -> tuple[float, float]:
        return cell[0] * self.resolution, cell[1] * self.resolution

    @property
    def rounding(self) -> Length:
        """Half a diagonal of a cell."""
        return Length(self.resolution / math.sqrt(2))

    def _distances(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """|z - x| row by row, in metres of the plane."""
        z = checked_coordinates(reports, self.plane)
        return Euclidean()(z, checked_coordinates(secrets, self.plane))

    def _moved_balls(self, secret: FloatArray, radius: arb, angle: LazyUniform) -> list[arb]:
        """Balls around the cell coordinates of the secret, moved by `radius`."""
        ways = direction_ball(angle)
        return [self._cell_ball(x, radius * way) for x, way in zip(secret, ways, strict=True)]
