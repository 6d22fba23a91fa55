"""Where a trace probably is now, and how surely: a filter on public reports.

Everything here is a function of the public transcript, so it costs no privacy.  The person's
velocity is taken for an Ornstein-Uhlenbeck process: its size is one of :data:`SPEEDS`, and it
forgets itself within one of :data:`TURNS_S`.  A way of moving lasts about :data:`DWELL_S`, a stay
about :data:`STAY_S`; then another begins, with a velocity of its own.  Each way (:data:`MODES` of
them) has a Kalman filter, and they are mixed by how well they foretold the noisy reports
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

__all__ = ["DWELL_S", "MODES", "SPEEDS", "STAY_S", "TURNS_S", "Motion", "Past", "moved", "smoothed"]

SPEEDS: Final = tuple(30.0 * 3.0**-size for size in range(7))
"""Metres a second on each axis: from a motorway to somebody at home. Each 1.2 times as likely."""
TURNS_S: Final = (60.0, 600.0, 6000.0)
"""Seconds after which a velocity is forgotten: streets turn, trips end, some go on."""
DWELL_S: Final = 14_400.0
"""Seconds for which people move alike.  A way that changes faster than a few reports come cannot
be told from their noise, and reports that chase it are spent in vain."""
STAY_S: Final = 40_000.0
"""The same for the slowest two, of less than 0.15 m/s: a night, a day at work."""
PAUSE: Final = 5.0
"""A pause is at least so many times as long as the steps before it, on average."""
UNTIMED_S: Final = 10.0
"""Seconds between two points that carry no time."""

# One way of moving in each row: variance of the velocity on an axis, turn, share, dwell.
_WAYS: Final = np.array(
    [
        (speed**2, turn, 1.2**size, STAY_S if speed < 0.15 else DWELL_S)
        for size, speed in enumerate(SPEEDS)
        for turn in TURNS_S
    ]
)
_WAYS[:, 2] /= _WAYS[:, 2].sum()
MODES: Final = len(_WAYS)

_TAIL: Final = 8.0  # heavier than Gaussian, as the noise is: (1 + s/8)^-5 instead of e^{-s/2}
_LEAST: Final = 1e-100  # no way of moving is ever ruled out for good
_METRES: Final = RADIUS_M * math.pi / 180  # a degree of latitude


@dataclass
class Motion:
    """The state of the filter after the reports seen so far, in metres around an anchor.

    `chance` of each mode; `mean` (mode, axis, position or velocity); `spread` (mode: variance
    of the position, covariance with the velocity, variance of the velocity), alike on both axes.
    """

    space: Surface
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
        self.chance = _WAYS[:, 2].copy()
        self.mean = np.zeros((MODES, 2, 2))
        self.spread = np.zeros((MODES, 3))
        self._expected = np.zeros(3)

    def advance(self, seconds: float | None) -> None:
        """To the next point."""
        long = max(self.pause_s, PAUSE * self.step)
        self.paused = seconds is not None and seconds >= long
        self.points += 1
        self.seconds += UNTIMED_S if seconds is None else min(seconds, long)
        state = self.chance, self.mean, self.spread
        _advance(*state, _WAYS, self.step, self.paused, self._expected)

    def learn(self, place: FloatArray, noise: float) -> None:
        """A report of the place where the person is now, with noise of this variance on an axis."""
        if math.hypot(self._expected[0], self._expected[1]) > 100_000:  # a flat frame is local
            self._moved_to(self.place)
        seen = _difference(self.space, place, self.anchor) * self.unit
        _learn(self.chance, self.mean, self.spread, seen, noise)

    def distance(self, place: FloatArray) -> float:
        """Metres from a place to :attr:`place`."""
        apart = _difference(self.space, place, self.anchor) * self.unit - self._expected[:2]
        return math.hypot(*apart)

    def restart(self, place: FloatArray, noise: float) -> None:
        """A noisy report of a place that has nothing to do with what was foretold."""
        self.learn(place, noise)  # for the chances: who is far off moves fast
        self.begin(place, noise)

    def forget(self, place: FloatArray, noise: float) -> None:
        """The same after a pause, which tells nothing of how the person moves now."""
        self.chance[:] = _WAYS[:, 2]
        self.begin(place, noise)

    def begin(self, place: FloatArray, noise: float) -> None:
        """Know nothing but a noisy report of the place, and how the person may move."""
        self._frame(place)
        self.mean[:] = 0
        self.spread[:, 0] = noise
        self.spread[:, 1] = 0
        self.spread[:, 2] = _WAYS[:, 0]

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
    def found(self) -> tuple[float, float]:
        """Mean variance of the velocity on an axis, and mean turn of what moves."""
        squares = self.chance * _WAYS[:, 0]
        square = float(squares.sum())
        return square, float(squares @ _WAYS[:, 1]) / square

    def _frame(self, place: FloatArray) -> None:
        self.anchor = np.array(place, dtype=np.float64)
        self.unit = _unit(self.space, self.anchor)

    def _moved_to(self, anchor: FloatArray) -> None:
        old, unit = self.anchor.copy(), self.unit.copy()
        self._frame(anchor)
        self.mean[:, :, 0] = (self.mean[:, :, 0] / unit + (old - anchor)) * self.unit


@dataclass(frozen=True)
class Past:
    """What a filter found at each report.

    Its kind, size and turn of the motion, pauses before it, and the variance of its noise on an
    axis.  Kinds are 0 for a prediction, 1 for a noisy report, 2 for one that starts anew.
    """

    places: FloatArray
    kinds: FloatArray
    squares: FloatArray
    turns: FloatArray
    paused: FloatArray
    noise: FloatArray


def smoothed(motion: Motion, past: Past) -> FloatArray:
    """The most likely whole trace, given its noisy reports and how the person moved."""
    count = len(past.kinds)
    places = np.zeros((count, 2))
    for low, high in pairwise([*np.flatnonzero(past.kinds == 2), count]):
        part = slice(low, high)
        anchor = past.places[low]
        unit = _unit(motion.space, anchor)
        seen = _difference(motion.space, past.places[part], anchor) * unit
        kinds = past.kinds[part]
        squares, turns = (_known_later(x[part], kinds) for x in (past.squares, past.turns))
        pauses, noise = past.paused[part], past.noise[part]
        within = _smooth(seen, kinds, squares, turns, pauses, motion.step, noise)
        places[part] = anchor + within / unit
    return places


def _known_later(found: FloatArray, kinds: FloatArray) -> FloatArray:
    """How the person moved before a report is known best right after it."""
    known = found.copy()
    for i in range(len(found) - 2, -1, -1):
        if kinds[i] == 0:
            known[i] = known[i + 1]
    return known


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
def moved(seconds: float, turn: float, square: float) -> tuple[float, float, float, float, float]:
    """(velocity kept, path of one metre a second, growth of three variances) in so many seconds."""
    kept = np.exp(-seconds / turn)
    path = turn * (1.0 - kept)
    position = square * turn * (2.0 * seconds - turn * (3.0 - 4.0 * kept + kept * kept))
    both, speed = square * turn * (1.0 - kept) ** 2, square * (1.0 - kept * kept)
    return kept, path, max(position, 0.0), both, speed


@kernel
def _advance(
    chance: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    ways: FloatArray,
    seconds: float,
    paused: bool,
    expected: FloatArray,
) -> None:
    """Mix the modes, move each; leave the expected place and its mean square error."""
    count = len(chance)
    changed, east, north, width = 0.0, 0.0, 0.0, 0.0  # those who begin to move in another way
    for k in range(count):
        part = chance[k] * (1.0 - np.exp(-seconds / ways[k, 3]))
        changed += part
        east += part * mean[k, 0, 0]
        north += part * mean[k, 1, 0]
    if changed > 0.0:
        east, north = east / changed, north / changed
        for k in range(count):
            part = chance[k] * (1.0 - np.exp(-seconds / ways[k, 3])) / changed
            off_e, off_n = mean[k, 0, 0] - east, mean[k, 1, 0] - north
            width += part * (spread[k, 0] + (off_e * off_e + off_n * off_n) / 2)
    expected[:] = 0.0
    for j in range(count):
        square, turn, share, dwell = ways[j]
        total = changed * share + chance[j] * np.exp(-seconds / dwell)
        new = changed * share / total
        old = 1.0 - new
        off_e, off_n = east - mean[j, 0, 0], north - mean[j, 1, 0]
        going, rising = mean[j, 0, 1], mean[j, 1, 1]
        position = new * width + old * spread[j, 0] + new * old * (off_e**2 + off_n**2) / 2
        both = old * spread[j, 1] - new * old * (off_e * going + off_n * rising) / 2
        speed = new * square + old * spread[j, 2] + new * old * (going**2 + rising**2) / 2
        going, rising = old * going, old * rising
        if paused:
            going, rising, both, speed = 0.0, 0.0, 0.0, square
        kept, path, grown, grown_both, grown_speed = moved(seconds, turn, square)
        chance[j] = total
        spread[j, 0] = position + 2 * path * both + path * path * speed + grown
        spread[j, 1] = kept * (both + path * speed) + grown_both
        spread[j, 2] = kept * kept * speed + grown_speed
        mean[j, 0, 0] += new * off_e + path * going
        mean[j, 1, 0] += new * off_n + path * rising
        mean[j, 0, 1], mean[j, 1, 1] = kept * going, kept * rising
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
        likely = (1.0 + (off * off).sum() / (_TAIL * width)) ** -5 / width
        chance[j] = max(chance[j] * likely, _LEAST)
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
    turns: FloatArray,
    paused: FloatArray,
    seconds: float,
    noise: FloatArray,
) -> FloatArray:
    """Kalman filter forth and Rauch-Tung-Striebel back, one motion, both axes alike."""
    count = len(seen)
    mean, spread = np.zeros((count, 2, 2)), np.zeros((count, 3))
    foretold, width = np.zeros((count, 2, 2)), np.zeros((count, 3))
    mean[0, :, 0] = seen[0]
    spread[0, 0], spread[0, 2] = noise[0], squares[0]
    for i in range(1, count):
        decay, path, grown, grown_both, grown_speed = moved(seconds, turns[i], squares[i])
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
            total = width[i, 0] + noise[i]
            mean[i, :, 0] += width[i, 0] / total * off
            mean[i, :, 1] += width[i, 1] / total * off
            spread[i, 0] -= width[i, 0] * width[i, 0] / total
            spread[i, 1] -= width[i, 0] * width[i, 1] / total
            spread[i, 2] -= width[i, 1] * width[i, 1] / total
    for i in range(count - 2, -1, -1):
        position, both, speed = spread[i]
        decay = np.exp(-seconds / turns[i + 1])
        path = turns[i + 1] * (1.0 - decay)
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
