"""Noise functions of any shape: l-privacy over all pairs of vectors, regulation, circles.

The report is x + v with v of density F.  On a region X with differences V_X
(:mod:`whereish.privacy.domains`), after ElSalamouny and Gambs 2018:

*Theorem 2.*  F keeps l on X if and only if F(u) <= exp(l(|u - v|)) F(v) for almost all u, v with
u - v in V_X; for probabilities on a lattice of vectors, for all of them (Theorem 1).
:func:`~whereish.solvers.noise.pairs.largest_noise_ratio` decides it.

*Theorem 3.*  Then some function equal to F almost everywhere satisfies it everywhere: the limit
superior of F's means over the disks of radius 1/n around v.  Means of both sides of an inequality
for fixed u - v keep it, so do their limits, and almost every v is a Lebesgue point.  For a table of
cells this is the mean of the cells that touch v; single vectors with other values do not matter.

*Theorem 5.*  If X is a disk or the plane, R(r) = mean of F(r e) over directions e keeps l on X: the
vectors r e and r' e differ by a vector of length |r - r'| in V_X, so the inequality holds for each
e, and for the means; and l(|r - r'|) <= l(|u - v|) for all u, v of these lengths.  Every loss
of the distance has the same expectation under both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.circularised import CircularisedNoise, Noise
from whereish.mechanisms.noise.smooth import SmoothNoise
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import DomainLike, domain_of
from whereish.solvers.noise.circles import cell_circle_moments, circle_mean, radial_rule
from whereish.solvers.noise.lattice import Between, LatticeLogs
from whereish.solvers.noise.moments import cells_integral, triangles_integral
from whereish.solvers.noise.pairs import NoiseRatio, largest_noise_ratio
from whereish.solvers.radial.loss import Loss
from whereish.space.points import plain_numbers
from whereish.units import Epsilon, Length

__all__ = ["NoiseFunction"]

_READINGS = ("cells", "linear", "atoms")


@dataclass(frozen=True, init=False, eq=False)
class NoiseFunction(Noise):
    """Noise with a density given by a table on a square lattice of vectors.

    Parameters
    ----------
    values
        F > 0 up to its norm: ``values[i, j]`` at the vector ((i - a) step, (j - b) step), for odd
        numbers 2a + 1 and 2b + 1 of rows and columns.
    step
        The distance of neighbouring vectors.
    decay
        Nats by which each further ring of vectors falls below the table's border.
    between
        'cells': constant on the square around each vector; 'linear': ln F linear on triangles;
        'atoms': probabilities at the vectors themselves.
    exceptions
        Other values at single vectors, in metres: they change no probability.

    Raises
    ------
    InvalidInput
        If the table has no middle, a value that is not > 0, or no tail.

    Examples
    --------
    >>> import numpy as np
    >>> import whereish as wh
    >>> offsets = np.hypot(*np.meshgrid(np.arange(-5, 6), np.arange(-5, 6)))
    >>> noise = wh.NoiseFunction(np.exp(-0.2 * offsets), "100 m", decay=0.2)
    >>> ell = wh.Distinguishability.location("300 m", 1.3)
    >>> noise.certify(ell, on="1 km").holds
    True
    >>> noise.ratio(ell.scaled(0.5)).refuted
    True
    """

    table: LatticeLogs = field(repr=False)
    between: Between
    exceptions: Mapping[tuple[float, float], float] = field(repr=False)
    regular: bool

    def __init__(
        self,
        values: ArrayLike,
        step: Length | str,
        *,
        decay: float,
        between: Between = "cells",
        exceptions: Mapping[tuple[float, float], float] | None = None,
    ) -> None:
        table = plain_numbers(values, "the values of a noise table")
        if not np.isfinite(table).all() or (table <= 0).any():
            raise InvalidInput("the values of a noise table must be finite and > 0")
        if between not in _READINGS:
            raise InvalidInput(f"between must be one of {', '.join(_READINGS)}; got {between!r}")
        logs = LatticeLogs(np.log(table), Length.positive(step, name="step").m, float(decay))
        others = {v: float(f) / float(table.max()) for v, f in (exceptions or {}).items()}
        object.__setattr__(self, "table", logs)
        object.__setattr__(self, "between", between)
        object.__setattr__(self, "exceptions", others)
        object.__setattr__(self, "regular", between == "linear" and not others)

    @staticmethod
    def of(
        function: Callable[[FloatArray], ArrayLike], *, bound: Epsilon | str, reach: Length | str
    ) -> SmoothNoise:
        """A density given by a callable: :class:`~whereish.mechanisms.noise.smooth.SmoothNoise`."""
        eps, far = Epsilon.of(bound), Length.positive(reach, name="reach")
        return SmoothNoise(function, eps.per_m, far.m)

    @cached_property
    def norm(self) -> float:
        """∫ F, or the sum of F, in the scale in which the table's largest value is 1."""
        if self.between == "linear":
            return triangles_integral(self.table) * self.table.step**2
        return self.table.sum * (1.0 if self.between == "atoms" else self.table.step**2)

    @property
    def extent(self) -> float:
        """The radius in metres beyond which nothing of weight is left."""
        return self.table.step * (self.table.rings + max(self.table.halves) + 1)

    def __call__(self, vectors: ArrayLike) -> FloatArray:
        """F at vectors in metres, per square metre (or the probabilities of atoms)."""
        v = np.asarray(vectors, float)
        if v.shape[-1:] != (2,):
            raise InvalidInput(f"vectors must have two coordinates in metres; got {v.shape}")
        x, y = np.moveaxis(v, -1, 0) / self.table.step
        if self.between == "linear":
            found = np.exp(self.table.interpolated(x, y))
        elif self.between == "atoms":
            i, j = np.rint(x), np.rint(y)
            on = (np.abs(x - i) < 1e-9) & (np.abs(y - j) < 1e-9)
            found = np.where(on, np.exp(self.table.at(i, j)), 0.0)
        else:
            found = self._of_cells(x, y)
        for (a, b), value in self.exceptions.items():
            found = np.where((v[..., 0] == a) & (v[..., 1] == b), value, found)
        return np.asarray(found / self.norm)

    def _of_cells(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """On a border: the cell above it, or where regulated the mean of those that touch it."""
        i, j = np.floor(x + 0.5), np.floor(y + 0.5)
        if not self.regular:
            return np.asarray(np.exp(self.table.at(i, j)))
        left, below = (x + 0.5 == i).astype(int), (y + 0.5 == j).astype(int)
        corners = [(0, 0), (1, 0), (0, 1), (1, 1)]
        sides = [np.exp(self.table.at(i - s * left, j - t * below)) for s, t in corners]
        return np.asarray(sum(sides) / 4)

    def ratio(self, keeps: Distinguishability, on: DomainLike = None) -> NoiseRatio:
        """Bounds on the least t for which F keeps t * l on a region (Theorems 1 and 2).

        `on` is None for the plane, a diameter for a disk, or an (n, 2) array of places.
        """
        return largest_noise_ratio(self.table, self.between, keeps, domain_of(on))

    def regulated(self) -> NoiseFunction:
        """The same density almost everywhere, which keeps l everywhere if this one keeps it.

        Theorem 3: single vectors with other values go, borders of cells take the mean of the
        cells that touch them.
        """
        same = object.__new__(NoiseFunction)
        for name, value in (
            ("table", self.table),
            ("between", self.between),
            ("exceptions", {}),
            ("regular", True),
        ):
            object.__setattr__(same, name, value)
        return same

    def circularised(self) -> CircularisedNoise:
        """The circular noise of Theorem 5: R(r) is the mean of F over directions."""
        if self.between == "atoms":
            raise InvalidInput(
                "probabilities at single vectors have no circular density: Theorem 5 is about"
                " densities; give the table as 'cells' or 'linear'"
            )
        return CircularisedNoise(self)

    def expected_loss(self, loss: Loss | Callable[[FloatArray], FloatArray]) -> float:
        """The expected loss of the report's distance in metres, over squares or triangles."""
        wanted = loss if isinstance(loss, Loss) else Loss.of(loss)
        step = self.table.step
        if self.between == "atoms":
            a, b = (half + self.table.rings for half in self.table.halves)
            distances = step * np.hypot(np.arange(-a, a + 1)[:, None], np.arange(-b, b + 1)[None])
            weights = np.exp(self.table.padded(self.table.rings))
            return float((weights * wanted.value(distances)).sum() / self.norm)
        if wanted.cuts:
            return self.radial_loss(wanted)

        def in_steps(r: FloatArray) -> FloatArray:
            return wanted.value(r * step)

        integral = triangles_integral if self.between == "linear" else cells_integral
        return integral(self.table, in_steps) * step**2 / self.norm

    def radial(self, radius: float) -> float:
        """The mean density over directions at a radius in metres, per square metre."""
        linear = self.between == "linear"
        return circle_mean(self.table, float(radius) / self.table.step, linear=linear) / self.norm

    def radial_loss(self, loss: Loss) -> float:
        """The expected loss, integrated over circles."""
        table, step = self.table, self.table.step
        lines = math.ceil((table.rings + max(table.halves)) * math.sqrt(2))  # to the corners
        if self.between == "cells":
            moments = cell_circle_moments(lines, step, loss)
            i = np.arange(-lines, lines + 1)
            total = float((moments * np.exp(table.at(i[:, None], i[None]))).sum())
            return total * step**2 / self.norm
        total = 0.0
        for r, weight in radial_rule(lines, linear=True, cuts=[cut / step for cut in loss.cuts]):
            worth = float(loss.value(np.array([r * step]))[0])
            total += weight * r * worth * circle_mean(table, r, linear=True)
        return 2 * math.pi * total * step**2 / self.norm
