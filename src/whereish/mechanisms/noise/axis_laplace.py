"""Laplace noise along axes: on a line, and independently on both axes of a plane.

On the line the density eps/2 exp(-eps |v|) keeps eps * |x - x'|.  In the plane two
independent coordinates give eps²/4 exp(-eps |v|_1), which keeps eps * Manhattan:
the metric of a city of blocks (Chatzikokolakis et al., PETS 2013).

A coordinate is a sign and an exponential number: one bit, then -ln U / eps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import ByteArray, Cells, FloatArray, IntArray, WordArray
from whereish.compiled import kernel
from whereish.errors import InvalidInput
from whereish.mechanisms.calibration import Calibrated, probability
from whereish.mechanisms.noise.lattice_noise import LatticeNoise, OnPlane
from whereish.mechanisms.noise.rounded import NUMERICS, check_resolution
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.norms import Manhattan
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.sampling.words import ROUNDING, fraction, log_error, near_border, nearest_node
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Laplace1D", "ManhattanLaplace"]


@dataclass(frozen=True, init=False)
class _AxisLaplace(LatticeNoise, Calibrated):
    """Independent Laplace noise on every axis; errors are d_1 distances."""

    epsilon: Epsilon
    lattice: Length

    def _check_declared(self) -> None:
        check_resolution(1 / self.epsilon.per_m, self.lattice.m)

    @property
    def guarantee(self) -> Guarantee:
        """``eps * Manhattan()``."""
        source = f"Laplace noise on {self.space.dimension} axis(es) (triangle inequality of d_1)"
        return Guarantee(self.epsilon * Manhattan(), Basis.THEOREM, source, NUMERICS)

    @property
    def mean_error(self) -> Length:
        """Expected d_1 distance of the ideal report: dimension / eps."""
        return Length(self.space.dimension / self.epsilon.per_m)

    def cdf(self, radius: Length | str) -> float:
        """Probability that the ideal report lies within d_1 distance `radius`."""
        from scipy.special import gammainc

        scaled = self.epsilon.per_m * max(Length.of(radius, name="radius").m, 0.0)
        return float(gammainc(float(self.space.dimension), scaled))

    @property
    def rounding(self) -> Length:
        """Half a step on every axis."""
        return Length(self.space.dimension * self.resolution / 2)

    def ideal_quantile(self, chance: float) -> Length:
        """The d_1 radius that holds the ideal report with probability `chance`."""
        from scipy.special import gammaincinv

        scaled = gammaincinv(float(self.space.dimension), probability(chance))
        return Length(float(scaled) / self.epsilon.per_m)

    def log_density(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """Dimension * ln(eps/2) - eps |z - x|_1."""
        z = checked_coordinates(reports, self.space)
        x = checked_coordinates(secrets, self.space)
        eps = self.epsilon.per_m
        return self.space.dimension * math.log(eps / 2) - eps * Manhattan()(z, x)

    def _fast(
        self, words: WordArray, secrets: FloatArray, cells: IntArray, state: ByteArray
    ) -> int:
        return _cells(words, secrets, self.epsilon.per_m, self.resolution, (cells, state))

    def _exact(self, uniforms: Sequence[LazyUniform], secret: FloatArray) -> list[arb] | int:
        from flint import arb

        report = []
        for x, uniform in zip(secret, uniforms, strict=True):
            negative, rest = uniform.split(1)
            distance = -rest.ball().log() / arb(self.epsilon.per_m)
            report.append(self._cell_ball(x, -distance if negative else distance))
        return report


@dataclass(frozen=True, init=False)
class Laplace1D(_AxisLaplace):
    """Laplace noise on a line, reported on a lattice.

    Contract: keeps ``eps * Manhattan()``, that is eps * |x - x'|, tightly.

    Raises
    ------
    InvalidInput
        If epsilon is not > 0 per length, or the resolution is too fine.

    >>> import whereish as wh
    >>> noise = wh.Laplace1D("0.01/m")
    >>> noise.mean_error.m
    100.0
    >>> noise.report([[1200.0]], rng=wh.SeededRandomness(1))
    Points(1 in a line in metres, reproducible)
    """

    words_per_draw = 1

    def __init__(self, epsilon: Epsilon | str, *, resolution: Length | str = "1 m") -> None:
        object.__setattr__(self, "epsilon", Epsilon.of(epsilon))
        self._declare_lattice(resolution)
        self._check_declared()

    @property
    def space(self) -> Space:
        """The line in metres."""
        return Line()


@dataclass(frozen=True, init=False)
class ManhattanLaplace(_AxisLaplace, OnPlane):
    """Independent Laplace noise on both axes of a plane in true metres.

    Contract: keeps ``eps * Manhattan()``, tightly.  The metric belongs to the plane's
    axes (streets that run along them), so a stretching projection is refused.

    Raises
    ------
    InvalidInput
        If epsilon or the resolution is out of range, or the plane stretches distances.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.ManhattanLaplace("0.01/m")
    >>> noise.guarantee.metric.description
    "0.01 * |x - x'|_1"
    >>> noise.report([[0, 0]], rng=wh.SeededRandomness(1))
    Points(1 in the plane in metres, reproducible)
    """

    plane: Plane
    words_per_draw = 2

    def _check_declared(self) -> None:
        super()._check_declared()
        if self.plane.crs is not None:
            raise InvalidInput(
                "ManhattanLaplace must have a plane in true metres (d_1 has no meaning across a"
                f" projection); got {self.plane.description}: use PlanarLaplace there"
            )


@kernel
def _cells(words: WordArray, secrets: FloatArray, level: float, step: float, out: Cells) -> int:
    """Cells of x ± (-ln U / eps) on each axis; errors as in planar_laplace._cells."""
    cells, state = out
    left = 0
    axes = secrets.shape[1]
    for i in range(secrets.shape[0]):
        undecided = False
        for axis in range(axes):
            word = words[axes * i + axis]
            a = fraction(word, 1)
            noise = -math.log(a) / level
            node, x = nearest_node(secrets[i, axis], step)
            error = (log_error(a) / level + ROUNDING * noise) / step + ROUNDING
            at = (x + (-noise if word >> np.uint64(63) else noise)) / step + 0.5
            floor = math.floor(at)
            cells[i, axis] = np.int64(node) + np.int64(floor)
            undecided = undecided or near_border(at, floor, error)
        state[i] = undecided
        left += undecided
    return left
