"""Circular noise: any radial density, exactly sampled, certified to keep l.

The report is x + v with density F(v) = R(|v|).  On a region with an inner disk, and for a
nondecreasing l, it is l-private if and only if R(r) <= exp(l(|r - r'|)) R(r') for all
r, r' (ElSalamouny and Gambs 2018, Theorem 4), which
:func:`~whereish.solvers.radial.ratio.largest_radial_ratio` proves over all pairs.

The radius is drawn exactly (:mod:`whereish.sampling.radial`), so what is
certified is what is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import ByteArray, FloatArray, IntArray, WordArray
from whereish.errors import InvalidInput, NotPrivate, shortened
from whereish.mechanisms.calibration import probability
from whereish.mechanisms.noise.lattice_noise import PlanarNoise
from whereish.mechanisms.noise.rounded import NUMERICS, check_resolution
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import DomainLike, domain_of
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.sampling.radial import Proposals, cells_of_proposals
from whereish.solvers.radial.log_linear import LogLinear, from_callable, from_table
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.places import radial_ratio_on
from whereish.solvers.radial.ratio import RadialRatio, largest_radial_ratio
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.units import Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["CircularNoise", "Radial"]

Radial: TypeAlias = LogLinear | Callable[[float], float] | Sequence[ArrayLike]
"""Pieces; a function of the radius in metres; or a table: radii and values, in two rows."""


@dataclass(frozen=True, init=False, eq=False)
class CircularNoise(PlanarNoise):
    """Noise with density R(|v|), reported on a lattice.

    Contract: keeps l(|x - x'|) in true metres for the declared l; by default ``eps * Euclidean()``.

    Parameters
    ----------
    radial
        R up to its norm: a :class:`~whereish.solvers.radial.log_linear.LogLinear`, a table (radii,
        values) interpolated log-linearly, or a callable, which is sampled up to `reach` and
        interpolated.  The interpolant is the law.
    keeps
        What is promised.  By default eps * d with the steepest slope of ln R.
    reach
        How far a callable is sampled; needed for one, ignored otherwise.
    resolution, plane
        As for :class:`~whereish.mechanisms.noise.planar_laplace.PlanarLaplace`; a plane's scale
        factor k is charged: R must keep l(d / k) on it.

    Notes
    -----
    `quantile`, `coverage` and `mean_error` are in true metres, `cdf`, `ideal_quantile`, `tail`
    and `expected_loss` in metres of the plane.

    Raises
    ------
    InvalidInput
        If a callable comes without `reach`, or a radial with jumps without `keeps`.
    NotPrivate
        If R does not keep the promise, with the pair of radii that shows it.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.CircularNoise(([0, 100, 200], [4, 2, 1]), resolution="10 m")
    >>> noise.guarantee.metric.description
    "0.00693147 * |x - x'|"
    >>> noise.report([[0, 0]], rng=wh.SeededRandomness(1))
    Points(1 in the plane in metres, reproducible)
    """

    radial: LogLinear
    keeps: Distinguishability
    lattice: Length
    plane: Plane
    certificate: RadialRatio
    _proposals: Proposals = field(repr=False)
    words_per_draw = 4

    def __init__(
        self,
        radial: Radial,
        *,
        keeps: Distinguishability | None = None,
        reach: Length | str | None = None,
        resolution: Length | str = "1 m",
        plane: Plane | None = None,
    ) -> None:
        law = _law(radial, reach)
        self._declare_lattice(resolution)
        self._declare_plane(plane)
        check_resolution(_extent(law), self.resolution, given="for a radial that reaches this far")
        promise = _steepest(law) if keeps is None else keeps.dilated(self.plane.scale)
        certificate = largest_radial_ratio(law, promise.arrays)
        if not certificate.holds:
            r, other = certificate.worst
            raise NotPrivate(
                f"this radial does not keep {promise}: at radii {r:.6g} m and {other:.6g} m the"
                f" densities differ by {certificate.lower:.12g} times what it allows (tables are"
                f" read between their rows with a bound for rounding); keep"
                f" l.scaled({_rounded_up(certificate.upper)}), or take a flatter radial"
            )
        object.__setattr__(self, "radial", law)
        object.__setattr__(self, "keeps", promise)
        object.__setattr__(self, "certificate", certificate)
        object.__setattr__(self, "_proposals", Proposals.of(law))

    def __repr__(self) -> str:
        kind, step = type(self).__name__, Length(self.resolution)
        where, keeps = shortened(self.space.description), shortened(str(self.keeps))
        return f"{kind}({where}, lattice of {step}; keeps {keeps})"

    @property
    def guarantee(self) -> Guarantee:
        """``l(|x - x'|)`` on the plane, certified for this radial."""
        source = (
            "circular noise (ElSalamouny and Gambs 2018, Theorem 4), checked over all pairs of"
            f" radii: at most {self.certificate.upper:.12g} of what l allows"
        )
        keeps = Guarantee(self.keeps.metric, Basis.CERTIFIED, source, NUMERICS)
        return keeps.on(self.plane)

    def certified(self, ell: Distinguishability, *, on: DomainLike = None) -> RadialRatio:
        """How well the radial keeps another l: the least t for which it keeps t * l.

        `on` is the region X of Theorem 4: None for the plane, a diameter for a disk, or an
        (n, 2) array of places (:mod:`whereish.privacy.domains`).
        """
        return radial_ratio_on(self.radial, ell, domain_of(on))

    @property
    def mean_error(self) -> Length:
        """Expected distance of the ideal report in true metres, at most."""
        return self._true_mean(self.expected_loss(Loss.power(1)))

    def expected_loss(self, loss: Loss | Callable[[FloatArray], FloatArray]) -> float:
        """Psi(F, L), the expected loss of the ideal report's distance in metres of the plane."""
        if not isinstance(loss, Loss):
            loss = Loss.of(loss)
        return self.radial.expectation(loss.value, cuts=loss.cuts)

    def tail(self, radius: Length | str) -> float:
        """Probability that the ideal report lies beyond `radius`."""
        return float(self.radial.survival(max(Length.of(radius, name="radius").m, 0.0)))

    def cdf(self, radius: Length | str) -> float:
        """Probability that the ideal report lies within `radius`."""
        return 1.0 - self.tail(radius)

    def ideal_quantile(self, chance: float) -> Length:
        """The radius that holds the ideal report with probability `chance`."""
        return Length(self.radial.quantile(probability(chance)))

    def log_density(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """ln R(|z - x|), per square metre of the plane."""
        return self.radial.log_density(self._distances(reports, secrets))

    def _fast(
        self, words: WordArray, secrets: FloatArray, cells: IntArray, state: ByteArray
    ) -> int:
        p = self._proposals
        tables = (p.cumulative, p.guide, p.kind, p.start, p.end, p.drop, p.growth)
        return cells_of_proposals(
            words, secrets, *tables, self.radial.slope, self.resolution, cells, state
        )

    def _exact(self, uniforms: Sequence[LazyUniform], secret: FloatArray) -> list[arb] | int:
        choice, first, second, angle = uniforms
        radius = self._proposals.radius_ball(self.radial, choice, first, second)
        if isinstance(radius, int):
            return radius
        return self._moved_balls(secret, radius, angle)


def _law(radial: Radial, reach: Length | str | None) -> LogLinear:
    if isinstance(radial, LogLinear):
        return radial
    if callable(radial):
        if reach is None:
            raise InvalidInput(
                "a radial given as a function must come with its reach, such as reach='20 km':"
                " beyond it the last slope continues"
            )
        return from_callable(radial, reach=Length.positive(reach, name="reach").m)
    if len(radial) != 2:
        raise InvalidInput("a table radial must be two rows: radii in metres, and values")
    return from_table(radial[0], radial[1])


def _extent(radial: LogLinear) -> float:
    """The last edge, and the scale of the tail that may follow it, in metres."""
    edge = float(radial.edges[-1])
    return edge if radial.bounded else float(radial.edges[-2]) + 1 / radial.slope


def _steepest(radial: LogLinear) -> Distinguishability:
    """eps * d for the steepest slope of a continuous ln R."""
    if radial.bounded or (radial.left[1:] != radial.right[:-1]).any():
        raise InvalidInput(
            "a radial with jumps keeps no eps * d: say what it keeps with keeps=..., such as"
            " Distinguishability.location('1 km', 1.0)"
        )
    slopes = np.abs(np.diff(radial.left)) / np.diff(radial.edges[:-1])
    steepest = max(float(slopes.max(initial=0.0)), radial.slope) * (1 + 2.0**-44)
    return Distinguishability((0.0,), (0.0,), (steepest,), f"{steepest:.6g}/m * d")


def _rounded_up(factor: float) -> str:
    """Ten digits that are above `factor` by more than the certificate's own rounding."""
    digits = 10.0 ** (9 - math.floor(math.log10(factor)))
    return f"{math.ceil(factor * (1 + 1e-9) * digits) / digits:.10g}"
