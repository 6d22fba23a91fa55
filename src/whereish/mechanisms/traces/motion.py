"""Where a trace probably is now, and how surely: a filter on public reports.

Everything here is a function of the public transcript, so it costs no privacy.  The person's
velocity is taken for an Ornstein-Uhlenbeck process that forgets itself within :data:`TURN_S`;
its size is one of :data:`MODES`, and changes about once in :data:`DWELL_S`.  Each size has a
Kalman filter of its own, and they are mixed by how well they foretold the noisy reports
(interacting multiple models: Blom and Bar-Shalom, IEEE TAC 1988).  The clock counts points, each
as long as they are on average: errors are averaged over points, and where a recording pauses,
people mostly stay, and a guard looks whether they did.

:func:`smoothed` runs back over a finished trace with the sizes that the filter found
(Rauch, Tung, Striebel, 1965): between two noisy reports it interpolates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.mechanisms.traces.transcript import Surface
from whereish.space.sphere import RADIUS_M, Sphere

__all__ = ["DWELL_S", "MODES", "TOP_M_S", "TURN_S", "Motion", "Past", "smoothed"]

MODES: Final = 6
TOP_M_S: Final = 10.0
"""Velocities have 10, 3.3, 1.1, ..., 0.04 m/s on each axis: from a car to somebody at home."""
TURN_S: Final = 300.0
"""Seconds after which a velocity is forgotten: streets turn, buses stop."""
DWELL_S: Final = 1800.0
"""Seconds for which people move alike: a walk, a drive, a stay."""
PAUSE: Final = 5.0
"""A pause is at least so many times as long as the steps before it, on average."""
UNTIMED_S: Final = 10.0
"""Seconds between two points that carry no time."""

_LAPLACE_VARIANCE: Final = 3.0  # of one coordinate of planar Laplace noise of level 1
_TAIL: Final = 4.0  # heavier than Gaussian, as the noise is: (1 + s/4)^-3 instead of e^{-s/2}
_METRES: Final = RADIUS_M * math.pi / 180  # a degree of latitude


@dataclass
class Motion:
    """The state of the filter after the reports seen so far, in metres around an anchor.

    `chance` of each mode; `mean` (mode, axis, position or velocity); `spread` (mode: variance
    of the position, covariance with the velocity, variance of the velocity), alike on both axes.
    """

    space: Surface
    epsilon: float
    pause_s: float
    chance: FloatArray = field(init=False)
    mean: FloatArray = field(init=False)
    spread: FloatArray = field(init=False)
    anchor: FloatArray = field(init=False)
    unit: FloatArray = field(init=False)
    points: int = 0
    seconds: float = 0.0
    paused: bool = False
    _expected: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.chance = np.array([_share(mode) for mode in range(MODES)])
        self.mean = np.zeros((MODES, 2, 2))
        self.spread = np.zeros((MODES, 3))
        self._expected = np.zeros(3)

    def advance(self, seconds: float | None) -> None:
        """To the next point."""
        long = max(self.pause_s, PAUSE * self.step)
        self.paused = seconds is not None and seconds >= long
        self.points += 1
        self.seconds += UNTIMED_S if seconds is None else min(seconds, long)
        pace = _pace(self.step, self.paused)
        _advance(self.chance, self.mean, self.spread, pace, self._expected)

    def learn(self, place: FloatArray) -> None:
        """A noisy report of the place where the person is now."""
        if math.hypot(self._expected[0], self._expected[1]) > 100_000:  # a flat frame is local
            self._moved_to(self.place)
        seen = _difference(self.space, place, self.anchor) * self.unit
        _learn(self.chance, self.mean, self.spread, seen, _LAPLACE_VARIANCE / self.epsilon**2)

    def distance(self, place: FloatArray) -> float:
        """Metres from a place to :attr:`place`."""
        apart = _difference(self.space, place, self.anchor) * self.unit - self._expected[:2]
        return math.hypot(*apart)

    def restart(self, place: FloatArray) -> None:
        """A noisy report of a place that has nothing to do with what was foretold."""
        self._frame(place)
        self.mean[:] = 0
        self.spread[:, 0] = _LAPLACE_VARIANCE / self.epsilon**2
        self.spread[:, 1] = 0
        self.spread[:, 2] = [_square(mode) for mode in range(MODES)]

    @property
    def step(self) -> float:
        """Seconds between two points, on average so far; a pause counts as the shortest one."""
        return self.seconds / max(self.points, 1)

    @property
    def place(self) -> FloatArray:
        """The place expected at the point to which it was advanced."""
        return np.asarray(self.anchor + self._expected[:2] / self.unit)

    @property
    def error(self) -> float:
        """Root mean square distance of the person from :attr:`place`, in metres."""
        return math.sqrt(self._expected[2])

    @property
    def square(self) -> float:
        """Mean over the modes of the variance of the velocity."""
        return math.fsum(self.chance[mode] * _square(mode) for mode in range(MODES))

    def _frame(self, place: FloatArray) -> None:
        self.anchor = np.array(place, dtype=np.float64)
        self.unit = _unit(self.space, self.anchor)

    def _moved_to(self, anchor: FloatArray) -> None:
        old, unit = self.anchor.copy(), self.unit.copy()
        self._frame(anchor)
        self.mean[:, :, 0] = (self.mean[:, :, 0] / unit + (old - anchor)) * self.unit


@dataclass(frozen=True)
class Past:
    """What a filter found at each report: its kind, the motion, whether a pause came before.

    Kinds are 0 for a prediction, 1 for a noisy report, 2 for one that starts anew.
    """

    places: FloatArray
    kinds: FloatArray
    squares: FloatArray
    paused: FloatArray


def smoothed(motion: Motion, past: Past) -> FloatArray:
    """The most likely whole trace, given its noisy reports and how the person moved."""
    count = len(past.kinds)
    places = np.zeros((count, 2))
    noise = _LAPLACE_VARIANCE / motion.epsilon**2
    pace = _pace(motion.step, False)
    for low, high in pairwise([*np.flatnonzero(past.kinds == 2), count]):
        part = slice(low, high)
        anchor = past.places[low]
        unit = _unit(motion.space, anchor)
        seen = _difference(motion.space, past.places[part], anchor) * unit
        squares = _known_later(past.squares[part], past.kinds[part])
        within = _smooth(seen, past.kinds[part], squares, past.paused[part], pace[:2], noise)
        places[part] = anchor + within / unit
    return places


def _known_later(squares: FloatArray, kinds: FloatArray) -> FloatArray:
    """How the person moved before a report is known best right after it."""
    known = squares.copy()
    for i in range(len(squares) - 2, -1, -1):
        if kinds[i] == 0:
            known[i] = known[i + 1]
    return known


def _pace(step: float, paused: bool) -> tuple[float, float, float, float]:
    """(seconds moved, share of the velocity kept, chance to move on alike, whether paused)."""
    return step, math.exp(-step / TURN_S), math.exp(-step / DWELL_S), float(paused)


@kernel
def _share(mode: int) -> float:
    """How much of their time people move like this: each half as fast, twice as much."""
    return 2.0**mode / (2.0**MODES - 1.0)


@kernel
def _square(mode: int) -> float:
    """Variance of one axis of the velocity in a mode, in square metres a second."""
    return (TOP_M_S * 3.0**-mode) ** 2


def _unit(space: Surface, place: FloatArray) -> FloatArray:
    """Metres a unit of each coordinate around a place; near a pole only roughly."""
    if not isinstance(space, Sphere):
        return np.ones(2)
    return np.array([_METRES * max(math.cos(math.radians(place[1])), 1e-3), _METRES])


def _difference(space: Surface, places: FloatArray, anchor: FloatArray) -> FloatArray:
    apart = np.asarray(places, dtype=np.float64) - anchor
    if isinstance(space, Sphere):  # the short way round
        apart[..., 0] = (apart[..., 0] + 180.0) % 360.0 - 180.0
    return apart


@kernel
def _moved(seconds: float, decay: float, square: float) -> tuple[float, float, float, float]:
    """(path of one metre a second, growth of the three variances) within so many seconds."""
    path = TURN_S * (1.0 - decay)
    position = square * TURN_S * (2.0 * seconds - TURN_S * (3.0 - 4.0 * decay + decay * decay))
    return path, position, square * TURN_S * (1.0 - decay) ** 2, square * (1.0 - decay * decay)


@kernel
def _advance(
    chance: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    pace: tuple[float, float, float, float],
    expected: FloatArray,
) -> None:
    """Mix the modes, move each; leave the expected place and its mean square error."""
    seconds, decay, stay, paused = pace
    count = len(chance)
    before, centre, width = chance.copy(), mean.copy(), spread.copy()
    expected[:] = 0.0
    for j in range(count):
        total, east, north, going, rising = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(count):
            part = ((1.0 - stay) * _share(j) + (stay if k == j else 0.0)) * before[k]
            total += part
            east += part * centre[k, 0, 0]
            going += part * centre[k, 0, 1]
            north += part * centre[k, 1, 0]
            rising += part * centre[k, 1, 1]
        east, north, going, rising = east / total, north / total, going / total, rising / total
        position, both, speed = 0.0, 0.0, 0.0
        for k in range(count):
            part = ((1.0 - stay) * _share(j) + (stay if k == j else 0.0)) * before[k] / total
            off_e, off_n = centre[k, 0, 0] - east, centre[k, 1, 0] - north
            drift_e, drift_n = centre[k, 0, 1] - going, centre[k, 1, 1] - rising
            position += part * (width[k, 0] + (off_e * off_e + off_n * off_n) / 2)
            both += part * (width[k, 1] + (off_e * drift_e + off_n * drift_n) / 2)
            speed += part * (width[k, 2] + (drift_e * drift_e + drift_n * drift_n) / 2)
        square = _square(j)
        if paused > 0.0:
            going, rising, both, speed = 0.0, 0.0, 0.0, square
        path, grown, grown_both, grown_speed = _moved(seconds, decay, square)
        chance[j] = total
        spread[j, 0] = position + 2 * path * both + path * path * speed + grown
        spread[j, 1] = decay * (both + path * speed) + grown_both
        spread[j, 2] = decay * decay * speed + grown_speed
        mean[j, 0, 0], mean[j, 0, 1] = east + path * going, decay * going
        mean[j, 1, 0], mean[j, 1, 1] = north + path * rising, decay * rising
        for axis in range(2):
            expected[axis] += total * mean[j, axis, 0]
    for j in range(count):
        off_e, off_n = mean[j, 0, 0] - expected[0], mean[j, 1, 0] - expected[1]
        far = 2 * spread[j, 0] + off_e * off_e + off_n * off_n
        expected[2] += chance[j] * far


@kernel
def _learn(
    chance: FloatArray, mean: FloatArray, spread: FloatArray, seen: FloatArray, noise: float
) -> None:
    for j in range(len(chance)):
        position, both, _ = spread[j]
        width = position + noise
        off = seen - mean[j, :, 0]
        chance[j] *= (1.0 + (off * off).sum() / (_TAIL * width)) ** -3 / width
        mean[j, :, 0] += position / width * off
        mean[j, :, 1] += both / width * off
        spread[j, 0] -= position * position / width
        spread[j, 1] -= position * both / width
        spread[j, 2] -= both * both / width
    chance /= chance.sum()


@kernel
def _smooth(
    seen: FloatArray,
    told: FloatArray,
    squares: FloatArray,
    paused: FloatArray,
    pace: tuple[float, float],
    noise: float,
) -> FloatArray:
    """Kalman filter forth and Rauch-Tung-Striebel back, one motion, both axes alike."""
    count = len(seen)
    seconds, decay = pace
    path = TURN_S * (1.0 - decay)
    mean, spread = np.zeros((count, 2, 2)), np.zeros((count, 3))
    foretold, width = np.zeros((count, 2, 2)), np.zeros((count, 3))
    mean[0, :, 0] = seen[0]
    spread[0, 0], spread[0, 2] = noise, squares[0]
    for i in range(1, count):
        _, grown, grown_both, grown_speed = _moved(seconds, decay, squares[i])
        position, both, speed = spread[i - 1]
        drift = mean[i - 1, :, 1].copy()
        if paused[i] > 0.0:
            drift[:] = 0.0
            both, speed = 0.0, squares[i]
        width[i, 0] = position + 2 * path * both + path * path * speed + grown
        width[i, 1] = decay * (both + path * speed) + grown_both
        width[i, 2] = decay * decay * speed + grown_speed
        foretold[i, :, 0] = mean[i - 1, :, 0] + path * drift
        foretold[i, :, 1] = decay * drift
        mean[i], spread[i] = foretold[i], width[i]
        if told[i] > 0.0:
            off = seen[i] - foretold[i, :, 0]
            total = width[i, 0] + noise
            mean[i, :, 0] += width[i, 0] / total * off
            mean[i, :, 1] += width[i, 1] / total * off
            spread[i, 0] -= width[i, 0] * width[i, 0] / total
            spread[i, 1] -= width[i, 0] * width[i, 1] / total
            spread[i, 2] -= width[i, 1] * width[i, 1] / total
    for i in range(count - 2, -1, -1):
        position, both, speed = spread[i]
        if paused[i + 1] > 0.0:  # the velocity was forgotten: it tells nothing back
            towards, across, behind, along = position, 0.0, both, 0.0
        else:
            towards, across = position + path * both, decay * both
            behind, along = both + path * speed, decay * speed
        a, b, c = width[i + 1]
        whole = a * c - b * b
        if not whole > 0.0:
            continue
        off = mean[i + 1, :, 0] - foretold[i + 1, :, 0]
        turn = mean[i + 1, :, 1] - foretold[i + 1, :, 1]
        mean[i, :, 0] += (
            (towards * c - across * b) * off + (across * a - towards * b) * turn
        ) / whole
        mean[i, :, 1] += ((behind * c - along * b) * off + (along * a - behind * b) * turn) / whole
    return mean[:, :, 0].copy()
