"""Planar Laplace noise: the mechanism of geo-indistinguishability.

The report is x + v with density eps² / (2 pi) exp(-eps |v|) (Andrés, Bordenabe,
Chatzikokolakis, Palamidessi, CCS 2013, section 4.1).  It keeps eps * Euclidean by
the triangle inequality: the density at z changes by the factor
exp(eps (|z - x'| - |z - x|)) <= exp(eps |x - x'|).

The radius is Gamma(2, 1/eps), the sum of two exponential numbers, so
r = -(ln U1 + ln U2) / eps: no Lambert W.  :func:`_cells` and
:meth:`PlanarLaplace._exact` compute the cell of x + r (cos t, sin t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import ByteArray, Cells, FloatArray, IntArray, WordArray
from whereish.compiled import kernel
from whereish.mechanisms.calibration import Calibrated, probability
from whereish.mechanisms.noise.lattice_noise import PlanarNoise
from whereish.mechanisms.noise.rounded import NUMERICS, check_resolution
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.norms import Euclidean
from whereish.randomness import secure
from whereish.sampling.lazy_uniform import DECIDED, LazyUniform
from whereish.sampling.words import fraction, log_errors, moved_cell
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PlanarLaplace"]


@dataclass(frozen=True, init=False)
class PlanarLaplace(PlanarNoise, Calibrated):
    """Planar Laplace noise on a declared plane, reported on a lattice.

    Parameters
    ----------
    epsilon
        Privacy level in true metres, such as "ln(4)/200 m".
    resolution
        Step of the public lattice of reports.
    plane
        Where secrets live; its largest scale factor k is charged, so that the noise
        has level eps/k on the plane and the promise holds in true metres.

    Notes
    -----
    Contract: keeps ``eps/k * Euclidean()`` on the plane's coordinates, tightly.
    `quantile` and `coverage` speak of the rounded report, `mean_error` of the ideal one, in
    true metres: on a projection the smallest scale factor around the region is counted as well.
    `ideal_quantile`, `cdf` and `log_density` are in metres of the plane.  A place `at` has the
    plane's coordinates.

    Raises
    ------
    InvalidInput
        If epsilon is not > 0 per length, or the resolution is too fine.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.PlanarLaplace("ln(4)/200 m")
    >>> round(noise.mean_error.m), round(noise.quantile(0.95).m)
    (289, 685)
    >>> noise.report([[0, 0], [1000, 0]], rng=wh.SeededRandomness(1))
    Points(2 in the plane in metres, reproducible)
    """

    epsilon: Epsilon
    lattice: Length
    plane: Plane
    words_per_draw = 3

    def _check_declared(self) -> None:
        check_resolution(2 / self.level, self.resolution)

    @property
    def level(self) -> float:
        """Eps/k, the level of the noise per metre of the plane."""
        if self.plane.scale == 1.0:
            return self.epsilon.per_m
        return math.nextafter(self.epsilon.per_m / self.plane.scale, 0.0)

    @property
    def guarantee(self) -> Guarantee:
        """``eps/k * Euclidean()`` on the plane: eps in true metres."""
        source = "planar Laplace (Andrés et al. 2013, section 4.1)"
        if self.plane.scale != 1.0:
            source += f", scale factor {self.plane.scale:.6f} of {self.plane.crs} charged"
        keeps = Guarantee(self.level * Euclidean(), Basis.THEOREM, source, NUMERICS)
        return keeps.on(self.plane)

    @property
    def mean_error(self) -> Length:
        """Expected distance of the ideal report in true metres, at most: 2/eps on the plane."""
        return self._true_mean(2 / self.level)

    def cdf(self, radius: Length | str) -> float:
        """Probability that the ideal report lies within `radius`: 1 - (1 + eps r) e^{-eps r}."""
        from scipy.special import gammainc

        return float(gammainc(2.0, self.level * max(Length.of(radius, name="radius").m, 0.0)))

    def ideal_quantile(self, chance: float) -> Length:
        """The radius that holds the ideal report with probability `chance`."""
        from scipy.special import gammaincinv

        return Length(float(gammaincinv(2.0, probability(chance))) / self.level)

    def log_density(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """ln(eps² / 2 pi) - eps |z - x|, per square metre of the plane."""
        distance = self._distances(reports, secrets)
        return math.log(self.level**2 / (2 * math.pi)) - self.level * distance

    def reaches(self, reports: FloatArray, secrets: FloatArray) -> NDArray[np.bool_]:
        """Whether the sampler, run from these secrets, can report these very nodes.

        A witness is made and run: both exponential numbers are half the distance to
        the node, and the angle is the node's.
        """
        offset = np.asarray(reports, float) - np.asarray(secrets, float)
        half_radius = np.hypot(offset[:, 0], offset[:, 1]) * self.level / 2
        words = np.empty((len(offset), 3), np.uint64)
        words[:, :2] = np.minimum(np.exp(-half_radius) * 2.0**64, 2.0**64 - 2048)[:, None]
        words[:, 2] = _angle_words(offset)
        cells = np.empty((len(offset), 2), np.int64)
        state = np.empty(len(offset), np.uint8)
        self._fast(words.ravel(), np.ascontiguousarray(secrets, float), cells, state)
        hit = (cells == self.cell_of(reports)).all(axis=1) & (state == DECIDED)
        for i in np.flatnonzero(~hit):
            uniforms = [LazyUniform(int(word)) for word in words[i]]
            cell = self._decide(uniforms, np.asarray(secrets[i], float), secure())
            hit[i] = cell is not None and bool((self.cell_of(reports[i])[0] == cell).all())
        on_lattice = (self._places(self.cell_of(reports)) == reports).all(axis=1)
        return np.asarray(hit & on_lattice)

    def _fast(
        self, words: WordArray, secrets: FloatArray, cells: IntArray, state: ByteArray
    ) -> int:
        return _cells(words, secrets, self.level, self.resolution, (cells, state))

    def _exact(self, uniforms: Sequence[LazyUniform], secret: FloatArray) -> list[arb] | int:
        from flint import arb

        first, second, angle = uniforms
        radius = -(first.ball() * second.ball()).log() / arb(self.level)
        return self._moved_balls(secret, radius, angle)


def _angle_words(offset: FloatArray) -> WordArray:
    """The words that :func:`direction` turns into the directions of `offset`."""
    x, y = np.abs(offset[:, 0]), np.abs(offset[:, 1])
    steep = y > x
    phi = np.arctan2(np.where(steep, x, y), np.where(steep, y, x))
    bits = np.minimum(phi / (math.pi / 4) * 2.0**61, 2.0**61 - 256).astype(np.uint64)
    flags = (steep, offset[:, 1] < 0, offset[:, 0] < 0)
    for shift, flag in zip((63, 62, 61), flags, strict=True):
        bits |= flag.astype(np.uint64) << np.uint64(shift)
    return np.asarray(bits, np.uint64)


@kernel
def _cells(words: WordArray, secrets: FloatArray, level: float, step: float, out: Cells) -> int:
    """Cells of x + r (cos t, sin t), with the error of the doubles bounded.

    The logarithm is off by at most :func:`log_errors`, which also covers the rounding of the
    product a b; :func:`moved_cell` covers the rest.
    """
    cells, state = out
    left, scale = 0, 1 / level
    for i in range(secrets.shape[0]):
        a, b = fraction(words[3 * i], 0), fraction(words[3 * i + 1], 0)
        radius, slip = -math.log(a * b) * scale, log_errors(a, b) * scale
        cells[i, 0], cells[i, 1], sure = moved_cell(
            secrets[i, 0], secrets[i, 1], radius, slip, words[3 * i + 2], step
        )
        state[i] = not sure
        left += not sure
    return left
