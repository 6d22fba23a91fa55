"""What mechanisms on a lattice of metres share: its step, its plane, the cell of a moved secret."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.mechanisms.calibration import Place, TrueRadii
from whereish.mechanisms.noise.rounded import LARGEST_CELL, RoundedMechanism
from whereish.privacy.norms import Euclidean
from whereish.sampling.lazy_uniform import LazyUniform, direction_ball, half
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
from whereish.space.sphere import FARTHEST_M
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


class PlanarNoise(OnPlane, TrueRadii):
    """Noise of a random radius in a uniform direction, on a declared plane.

    A dataclass that derives from it declares `lattice` and `plane` among its fields.

    Radii on a projected plane: a report within r metres of the secret on the plane is within
    r / k true metres of it, k the smallest factor of the projection that far around the region
    (:mod:`whereish.space.projection.contraction`).  Where none is known, reports may cross an
    edge of the projection, and the radius is half a meridian, which holds everything.
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
        """Half a diagonal of a cell, in metres of the plane."""
        return Length(self.resolution / math.sqrt(2))

    def to_true(self, reach: float, at: Place | None = None) -> float:
        """True metres that hold every report whose ideal one is within `reach` on the plane."""
        return self.plane.true_distance(reach + self.rounding.m, at)

    def to_law(self, radius: float, at: Place | None = None) -> float:
        """Metres of the plane; reports of ideal ones within them are within `radius`."""
        return max(self.plane.plane_distance(radius, at) - self.rounding.m, 0.0)

    def _true_mean(self, mean: float) -> Length:
        """A bound of the expected true distance, from that on the plane.

        For every R it is at most mean / k(R), and half a meridian where the radius is beyond R.
        """
        if self.plane.crs is None:
            return Length(mean)
        best = FARTHEST_M
        for beyond in (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1):
            if best <= mean / self.plane.scale + beyond * FARTHEST_M:
                break  # no smaller R does better
            reach = self.ideal_quantile(1 - beyond).m * (1 + 2.0**-20)
            true = self.plane.true_distance(reach)
            if true < FARTHEST_M:
                returned = self.plane.contraction(true).return_m
                best = min(best, mean * true / reach + returned + beyond * FARTHEST_M)
        return Length(best)

    def _distances(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """|z - x| row by row, in metres of the plane."""
        z = checked_coordinates(reports, self.plane)
        return Euclidean()(z, checked_coordinates(secrets, self.plane))

    def _moved_balls(self, secret: FloatArray, radius: arb, angle: LazyUniform) -> list[arb]:
        """Balls around the cell coordinates of the secret, moved by `radius`."""
        ways = direction_ball(angle)
        return [self._cell_ball(x, radius * way) for x, way in zip(secret, ways, strict=True)]
