"""Laplace noise on the globe: longitude and latitude in, anywhere on Earth.

The report has density C exp(-eps d(x, z)) for the great-circle distance d on the
sphere of radius R = b²/a.  The sphere looks the same from everywhere, so C does not
depend on x, and the triangle inequality gives eps * d.  Since d is at most the WGS84
geodesic distance (see :mod:`whereish.space.sphere`), eps is kept in true metres: no
projection, and poles and antimeridian are places like any other.

With a = eps R the angle t = d/R has density proportional to sin t exp(-a t) on
[0, pi].  For a >= 1 it is drawn as Gamma(2, 1/a) and accepted with probability
sin(t)/t; for a < 1 as a uniform point of the sphere, accepted with exp(-a t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import ByteArray, FloatArray, IntArray, WordArray
from whereish.compiled import kernel
from whereish.errors import InvalidInput
from whereish.mechanisms.calibration import Calibrated, Place, probability
from whereish.mechanisms.noise.globe_offsets import cell_at, cosine_sine, finer_offsets, offsets
from whereish.mechanisms.noise.rounded import NUMERICS, RoundedMechanism
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.norms import GreatCircle
from whereish.randomness import Randomness, secure
from whereish.sampling.lazy_uniform import (
    DECIDED,
    REJECTED,
    UNDECIDED,
    LazyUniform,
    direction_ball,
    half,
)
from whereish.sampling.words import ROUNDING, direction, fraction, log_errors, near_border
from whereish.space.points import Points, checked_coordinates
from whereish.space.sphere import FARTHEST_M, RADIUS_M, Sphere, true_metres
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["GlobeLaplace", "cells_of", "drawn", "drawn_finer", "undecided_shares"]


@dataclass(frozen=True, init=False)
class GlobeLaplace(RoundedMechanism, Calibrated):
    """Laplace noise on the sphere, reported in decimal degrees.

    Parameters
    ----------
    epsilon
        Privacy level in true metres, such as "ln(4)/200 m".
    decimals
        Reports are multiples of 10^-decimals degrees; 5 is about a metre.

    Notes
    -----
    Contract: keeps ``eps * GreatCircle()``, tightly, hence ``eps * Geodesic()``.
    Longitudes are reported in [-180, 180); a pole is reported with longitude 0.
    `quantile`, `coverage` and `mean_error` are in true metres; `cdf`, `ideal_quantile` and
    `log_density` speak of the ideal report on the sphere, whose metres are up to 1% longer.

    Raises
    ------
    InvalidInput
        If epsilon is not > 0 per length, or `decimals` is out of range.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.GlobeLaplace("ln(4)/200 m")
    >>> noise.report([[2.33316, 48.85412]], rng=wh.SeededRandomness(1))
    Points(1 in the globe (longitude, latitude in degrees), reproducible)
    >>> round(noise.mean_error.m)
    291
    """

    epsilon: Epsilon
    decimals: int
    words_per_draw = 4

    def __init__(self, epsilon: Epsilon | str, *, decimals: int = 5) -> None:
        if not isinstance(decimals, int) or not 0 <= decimals <= 9:
            raise InvalidInput(f"decimals must be a whole number from 0 to 9; got {decimals!r}")
        object.__setattr__(self, "epsilon", Epsilon.of(epsilon))
        object.__setattr__(self, "decimals", decimals)

    @property
    def space(self) -> Sphere:
        """The globe."""
        return Sphere()

    @property
    def resolution(self) -> float:
        """Lattice step in degrees."""
        return float(10.0**-self.decimals)

    @property
    def guarantee(self) -> Guarantee:
        """``eps * GreatCircle()``, at most eps times true WGS84 metres."""
        source = "Laplace noise on the sphere of radius b²/a (homogeneity, triangle inequality)"
        return Guarantee(self.epsilon * GreatCircle(), Basis.THEOREM, source, NUMERICS)

    @property
    def _rate(self) -> float:
        """Eps R, rounded down so that it never promises less noise than eps."""
        return math.nextafter(self.epsilon.per_m * RADIUS_M, 0.0)

    @property
    def mean_error(self) -> Length:
        """Expected distance of the ideal report in true metres, at most: at the poles.

        On the sphere it is R (2a / (1 + a²) + pi / (e^{a pi} + 1)), and elsewhere up to 1%
        smaller.  Rounding adds at most :attr:`rounding`.
        """
        a = self._rate
        angle = 2 * a / (1 + a * a) + math.pi * _logistic(-a * math.pi)
        return Length(true_metres() * RADIUS_M * angle)

    @property
    def rounding(self) -> Length:
        """Half a diagonal of the largest cell, in true metres."""
        half = math.radians(0.5 / 10.0**self.decimals)
        return Length(math.sqrt(2) * half * true_metres() * RADIUS_M)

    def stretch(self, reach: float, at: Place | None) -> float:
        """True metres for each metre of the sphere, within `reach` of the place `at`."""
        if at is None:
            return true_metres()
        latitude = checked_coordinates([at], self.space)[0, 1]
        return true_metres(abs(latitude) + math.degrees(reach / RADIUS_M))

    def quantile(self, chance: float, *, at: Place | None = None) -> Length:
        """A radius in true metres that holds the report with at least probability `chance`.

        Everywhere on Earth; or, up to 1% smaller, around the place `at` (longitude,
        latitude), whose latitude may then be read off the radius.
        """
        return min(super().quantile(chance, at=at), Length(FARTHEST_M), key=lambda r: r.m)

    def cdf(self, radius: Length | str) -> float:
        """Probability that the ideal report lies within great-circle distance `radius`."""
        angle = Length.of(radius, name="radius").m / RADIUS_M
        return 1.0 - self._beyond(min(max(angle, 0.0), math.pi))

    def _beyond(self, t: float) -> float:
        """Probability of an angle above t, accurate in the tail."""
        a = self._rate
        tail, edge = math.exp(-a * t), math.exp(-a * math.pi)
        return (tail * (math.cos(t) + a * math.sin(t)) + edge) / (1 + edge)

    def ideal_quantile(self, chance: float) -> Length:
        """The great-circle radius that holds the ideal report with probability `chance`."""
        beyond = 1.0 - probability(chance)
        low, high = 0.0, math.pi
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if self._beyond(middle) > beyond else (low, middle)
        return Length(RADIUS_M * high)

    def log_density(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """ln C - eps d, per square metre; C = (1 + a²) / (2 pi R² (1 + e^{-a pi}))."""
        z = checked_coordinates(reports, self.space)
        x = checked_coordinates(secrets, self.space)
        a = self._rate
        area = 2 * math.pi * RADIUS_M**2 * (1 + math.exp(-a * math.pi))
        return math.log((1 + a * a) / area) - self.epsilon.per_m * GreatCircle()(z, x)

    def _places(self, cells: IntArray) -> FloatArray:
        # Division, unlike multiplication by 1e-5, gives the double nearest to the decimal.
        return np.asarray(cells / 10.0**self.decimals)

    @property
    def _plain_bounds(self) -> tuple[float, float]:
        return 360.0, 90.0

    def _node(self, cell: tuple[int, int]) -> tuple[float, float]:
        degree: int = 10**self.decimals
        column, row = (cell[0] + 180 * degree) % (360 * degree) - 180 * degree, cell[1]
        return 0.0 if abs(row) == 90 * degree else column / degree, row / degree

    def _canonical(self, cells: IntArray) -> IntArray:
        turn = 360 * 10**self.decimals
        cells[:, 0] = (cells[:, 0] + turn // 2) % turn - turn // 2
        cells[np.abs(cells[:, 1]) == turn // 4, 0] = 0
        return cells

    def _fast(
        self, words: WordArray, secrets: FloatArray, cells: IntArray, state: ByteArray
    ) -> int:
        return cells_of(words, secrets, self._rate, 10.0**self.decimals, cells, state)

    def _exact(self, uniforms: Sequence[LazyUniform], secret: FloatArray) -> list[arb] | int:
        from flint import arb

        first, second, angle, chance = uniforms
        if self._rate < 1:
            t = 2 * first.ball().sqrt().asin()
            accept = (-arb(self._rate) * t).exp()
        else:
            t = -(first.ball() * second.ball()).log() / arb(self._rate)
            if t > arb.pi():
                return REJECTED
            accept = t.sinc()
        if chance.ball() > accept:
            return REJECTED
        if not chance.ball() < accept:
            return UNDECIDED
        return self._moved_balls(secret, t, angle)

    def _moved_balls(self, secret: FloatArray, t: arb, angle: LazyUniform) -> list[arb]:
        """Balls around the cell coordinates of the secret, moved by the angle `t`."""
        from flint import arb

        north, east = direction_ball(angle)
        lon, lat = arb(float(secret[0])), arb(float(secret[1]))
        sin_lat, cos_lat = (lat / 180).sin_cos_pi()
        sin_t, cos_t = t.sin_cos()
        along = cos_t * cos_lat - sin_t * north * sin_lat
        across = sin_t * east
        up = cos_t * sin_lat + sin_t * north * cos_lat
        level = (along * along + across * across).sqrt()
        per_radian, per_degree = 180 / arb.pi(), arb(10) ** self.decimals
        return [
            (lon + per_radian * arb.atan2(across, along)) * per_degree + half(),
            per_radian * arb.atan2(up, level) * per_degree + half(),
        ]


def undecided_shares(
    mechanism: GlobeLaplace, latitude: float, *, draws: int = 100_000, rng: Randomness | None = None
) -> tuple[float, float]:
    """The shares of accepted draws from this latitude that two stages leave open.

    Doubles leave the first to double-doubles, these leave the second to ball arithmetic.  A
    cell is left open where its border is within the error on either side; the mean of these
    widths over `draws` tells shares far below 1 / draws.
    """
    words = secure(rng).words(4 * draws)
    first, second = _open_shares(words, latitude, mechanism._rate, 10.0**mechanism.decimals)
    return float(first), float(second)


@kernel
def _open_shares(
    words: WordArray, latitude: float, rate: float, per_degree: float
) -> tuple[float, float]:
    count, first, second = 0, 0.0, 0.0
    pole = np.int64(90 * per_degree)
    for i in range(words.size // 4):
        draw = words[4 * i : 4 * i + 4]
        _, accepted, _, _, wide, row, _, high = drawn(draw, 0.0, latitude, rate, per_degree)
        if accepted:
            count += 1
            share = min(2 * high + (0.0 if abs(row) == pole else 2 * wide), 1.0)
            first += share
            if rate >= 1:
                _, _, wide, row, _, high = drawn_finer(draw, 0.0, latitude, rate, per_degree)
                share = min(2 * high + (0.0 if abs(row) == pole else 2 * wide), 1.0)
            second += share
    return first / max(count, 1), second / max(count, 1)


def _logistic(x: float) -> float:
    """1 / (1 + e^-x) for x <= 0."""
    return math.exp(x) / (1 + math.exp(x))


@kernel
def drawn(
    words: WordArray, longitude: float, latitude: float, rate: float, per_degree: float
) -> tuple[bool, bool, np.int64, float, float, np.int64, float, float]:
    """The report that four words draw, in doubles.

    Whether it is surely rejected; whether it is surely accepted; then for longitude and for
    latitude the cell, the place in it and the error of that place, in cells.
    """
    a, b = fraction(words[0], 0), fraction(words[1], 0)
    if rate < 1:
        t = 2 * math.asin(math.sqrt(a))
        u, ahead = cosine_sine(t)
        spread = a * (1 - a)
        slip = ROUNDING / math.sqrt(spread) if spread > 2.0**-40 else math.inf
        accept = math.exp(-rate * t)
    else:
        scale = 1 / rate
        t = -math.log(a * b) * scale
        u, ahead = cosine_sine(t)
        slip = log_errors(a, b) * scale + ROUNDING * t
        accept = ahead / t if t < math.pi else 0.0
    chance, margin = fraction(words[3], 0), slip + 2 * ROUNDING
    if chance > accept + margin:
        return True, False, np.int64(0), 0.0, 0.0, np.int64(0), 0.0, 0.0
    north, east = direction(words[2])
    to_east, wrong_east, to_north, wrong_north = offsets(latitude, u, ahead, slip, north, east)
    column, at_lon, error_lon = cell_at(longitude, (to_east, 0.0), wrong_east, per_degree)
    row, at_lat, error_lat = cell_at(latitude, (to_north, 0.0), wrong_north, per_degree)
    return False, chance < accept - margin, column, at_lon, error_lon, row, at_lat, error_lat


@kernel
def drawn_finer(
    words: WordArray, longitude: float, latitude: float, rate: float, per_degree: float
) -> tuple[np.int64, float, float, np.int64, float, float]:
    """The cells of an accepted report, in double-doubles; for rates of at least 1."""
    to_east, wrong_east, to_north, wrong_north = finer_offsets(words, latitude, rate)
    column, at_lon, error_lon = cell_at(longitude, to_east, wrong_east, per_degree)
    row, at_lat, error_lat = cell_at(latitude, to_north, wrong_north, per_degree)
    return column, at_lon, error_lon, row, at_lat, error_lat


@kernel
def _is_open(
    at_lon: float, error_lon: float, row: np.int64, at_lat: float, error_lat: float, pole: np.int64
) -> bool:
    """Whether an error could move the report to another cell."""
    # At a pole every longitude names the same cell.
    at_pole = abs(row) == pole
    return near_border(at_lat, 0.0, error_lat) or (
        not at_pole and near_border(at_lon, 0.0, error_lon)
    )


@kernel
def cells_of(
    words: WordArray,
    secrets: FloatArray,
    rate: float,
    per_degree: float,
    cells: IntArray,
    state: ByteArray,
) -> int:
    """Cells of the point at angle t and direction (north, east) from the secret."""
    left, draws = 0, words.reshape(-1, 4)
    pole = np.int64(90 * per_degree)
    for i in range(secrets.shape[0]):
        draw, lon, lat = draws[i], secrets[i, 0], secrets[i, 1]
        rejected, accepted, column, at_lon, error_lon, row, at_lat, error_lat = drawn(
            draw, lon, lat, rate, per_degree
        )
        is_open = _is_open(at_lon, error_lon, row, at_lat, error_lat, pole)
        if accepted and is_open and rate >= 1:
            column, at_lon, error_lon, row, at_lat, error_lat = drawn_finer(
                draw, lon, lat, rate, per_degree
            )
            is_open = _is_open(at_lon, error_lon, row, at_lat, error_lat, pole)
        cells[i, 0], cells[i, 1] = column, row
        sure = accepted and not is_open
        state[i] = REJECTED if rejected else DECIDED if sure else UNDECIDED
        left += not sure
    return left
