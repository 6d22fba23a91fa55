"""The exact rounded sampler: what is proven is what is sampled.

A continuous mechanism adds real-valued noise; doubles are not the reals, and the
gaps between them give the secret away (Mironov, CCS 2012).  Here a mechanism
reports the cell of a public lattice in which the *real* report lies, exactly as if
it had been computed without error.  Rounding is then post-processing of the ideal
mechanism, so its theorem holds as it stands, without a bound on the radius.

How: each uniform number is an infinite bit string of which only a prefix is
drawn, so it is an interval.

1. A compiled kernel maps the first 53 bits of each uniform to a cell together with
   a bound on its error: the width of the intervals through the derivative of the
   map, plus all roundings.  Where the error cannot reach a cell's border the cell
   is decided.
2. The others go to ball arithmetic (Arb): all 64 bits first, then 64 more, until the
   cell is certain.  Their share is about 2^-45 times the noise over the lattice's step,
   whatever the secret's coordinates are.  On the globe, where cells are narrow near the
   poles, double-doubles decide nearly all of them first
   (``benchmarks.bench_sampler`` prints the shares).

Some laws are sampled by rejection.  A rejected attempt is independent of the
secret and of the report that is accepted later, so neither shows in the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import ByteArray, FloatArray, IntArray, WordArray
from whereish.compiled import is_numba_loaded
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable
from whereish.privacy.guarantee import Guarantee
from whereish.randomness import Randomness, secure
from whereish.sampling.lazy_uniform import ARB_LOCK, DECIDED, REJECTED, UNDECIDED, LazyUniform
from whereish.sampling.words_ahead import WordsAhead
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates, one_place
from whereish.threads import checked_threads, in_threads

if TYPE_CHECKING:
    from flint import arb

__all__ = ["LARGEST_CELL", "NUMERICS", "RoundedMechanism", "check_resolution"]

NUMERICS: Final = "exact: the cell of the real-number mechanism on a public lattice"

_BLOCK = 8192
_AHEAD = 4  # blocks for each thread whose words are drawn ahead
LARGEST_CELL: Final = 2.0**46
"""How many lattice steps from the origin a coordinate may be."""
_FINEST = 2.0**44


class RoundedMechanism(Composable, ABC):
    """A continuous mechanism that reports cells of a public lattice, exactly.

    A subclass describes its map from uniforms to the real report twice: compiled,
    with error bounds (:meth:`_fast`), and in balls (:meth:`_exact`).
    """

    words_per_draw: int

    @property
    @abstractmethod
    def space(self) -> Space:
        """Where secrets and reports live."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised about every report."""

    @property
    @abstractmethod
    def resolution(self) -> float:
        """The lattice's step, in the units of the space's coordinates."""

    @abstractmethod
    def _fast(
        self, words: WordArray, secrets: FloatArray, cells: IntArray, state: ByteArray
    ) -> int:
        """Fill `cells` and `state`; return how many rows are not DECIDED."""

    @abstractmethod
    def _exact(self, uniforms: Sequence[LazyUniform], secret: FloatArray) -> list[arb] | int:
        """Balls around the real report's cell coordinates (floor gives the cell).

        REJECTED or UNDECIDED instead, where the attempt fails or more bits are needed.
        """

    def _canonical(self, cells: IntArray) -> IntArray:
        """One name for each cell (longitudes wrap; a pole is one cell)."""
        return cells

    def _places(self, cells: IntArray) -> FloatArray:
        """Coordinates of the cells' nodes."""
        return np.asarray(cells * self.resolution, dtype=np.float64)

    def report(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        threads: int | None = 1,
    ) -> Points:
        """One independent report for each secret: the node of its cell.

        `threads` share out large arrays (None: as many as there are cores, or
        ``WHEREISH_THREADS``).  The reports are the same, word for word, whatever their number.
        """
        source = secure(rng)
        if (bounds := self._plain_bounds) is not None:
            place = one_place(secrets, bounds)
            if place is not None:
                node = np.array([self._one_node(place, source)])
                return Points.trusted(node, self.space, reproducible=source.reproducible)
        cells = self.cells(secrets, rng=source, threads=threads)
        return Points.trusted(self._places(cells), self.space, reproducible=source.reproducible)

    @property
    def _plain_bounds(self) -> tuple[float, float] | None:
        """Sizes of coordinates within which every pair of numbers is a secret.

        None where more must be looked at than sizes.
        """
        return None

    def _node(self, cell: tuple[int, int]) -> tuple[float, float]:
        """The coordinates that :meth:`_canonical` and :meth:`_places` give one cell."""
        x, y = self._places(self._canonical(np.array([cell])))[0].tolist()
        return x, y

    def report_one(
        self, secret: tuple[float, float], *, rng: Randomness | None = None
    ) -> tuple[float, float]:
        """The report of one secret that is known to be one, as plain numbers.

        The same words go through the same kernel as in :meth:`report`, so the law and every
        seeded draw are the same; what is left out are the checks and the arrays around it.
        """
        return self._one_node(secret, secure(rng))

    def _one_node(self, secret: tuple[float, float], source: Randomness) -> tuple[float, float]:
        secrets = np.array([secret])
        cells, state = np.empty((1, 2), np.int64), np.empty(1, np.uint8)
        while True:
            words = source.words(self.words_per_draw)
            balls = _are_for_balls(1)
            if not balls and not self._fast(words, secrets, cells, state):
                break
            self._settle(words, secrets, cells, state, source, balls)
            if state[0] != REJECTED:
                break
        return self._node(tuple(cells[0].tolist()))

    def cells(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        balls_only: bool = False,
        threads: int | None = 1,
    ) -> IntArray:
        """The reports as lattice indices; `balls_only` decides every one of them in Arb."""
        source, count = secure(rng), checked_threads(threads)
        coordinates = self.check_secrets(secrets)
        balls_only = balls_only or _are_for_balls(len(coordinates))
        cells = np.empty((len(coordinates), self.space.dimension), np.int64)
        state = np.empty(_BLOCK, np.uint8)
        pending: NDArray[np.intp] | None = None
        while pending is None or pending.size:
            if count > 1 and not balls_only:
                pending = self._round_in_threads(coordinates, pending, cells, source, count)
                continue
            pending = self._round(coordinates, pending, cells, state, source, balls_only)
        return self._canonical(cells)

    def warm(self) -> None:
        """Load or compile the kernel now: no report waits for it, and balls draw none alone."""
        words = np.full(self.words_per_draw, 2**63, np.uint64)
        cells, state = np.empty((1, self.space.dimension), np.int64), np.empty(1, np.uint8)
        self._fast(words, np.zeros((1, self.space.dimension)), cells, state)

    def check_secrets(self, secrets: Points | ArrayLike) -> FloatArray:
        """The coordinates of secrets in the declared region and within reach of the lattice."""
        coordinates = checked_coordinates(secrets, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(coordinates)
        if coordinates.size and np.abs(coordinates).max() / self.resolution > LARGEST_CELL:
            raise InvalidInput(
                "coordinates must lie within 2^46 lattice steps of the origin: declare a coarser"
                " resolution, or check the unit of the coordinates"
            )
        return coordinates

    def cell_of(self, places: ArrayLike) -> IntArray:
        """Lattice indices of the cells that hold these places."""
        index = np.floor(np.asarray(places, float) / self.resolution + 0.5).astype(np.int64)
        return self._canonical(np.atleast_2d(index))

    def _round(
        self,
        secrets: FloatArray,
        rows: NDArray[np.intp] | None,
        cells: IntArray,
        state: ByteArray,
        rng: Randomness,
        balls_only: bool,
    ) -> NDArray[np.intp]:
        """One attempt for each of `rows` (None: all); the rejected rows come back."""
        count = len(secrets) if rows is None else len(rows)
        rejected: list[NDArray[np.intp]] = []
        for low in range(0, count, _BLOCK):
            high = min(low + _BLOCK, count)
            words = rng.words(self.words_per_draw * (high - low))
            if rows is None:
                block, here = cells[low:high], secrets[low:high]
            else:
                here = secrets[rows[low:high]]
                block = np.empty((high - low, cells.shape[1]), np.int64)
            if balls_only or self._fast(words, here, block, state[: high - low]):
                self._settle(words, here, block, state[: high - low], rng, balls_only)
                again = np.flatnonzero(state[: high - low] == REJECTED) + low
                rejected.append(again if rows is None else rows[again])
            if rows is not None:
                cells[rows[low:high]] = block
        return np.concatenate(rejected) if rejected else np.empty(0, np.intp)

    def _round_in_threads(
        self,
        secrets: FloatArray,
        rows: NDArray[np.intp] | None,
        cells: IntArray,
        rng: Randomness,
        threads: int,
    ) -> NDArray[np.intp]:
        """As :meth:`_round`, with the words of several blocks drawn ahead.

        Where ball arithmetic needs further words, these are the next ones: the words that
        later blocks were given go back, and these blocks are drawn again.
        """
        stream = WordsAhead(rng)
        waiting = deque(range(0, len(secrets) if rows is None else len(rows), _BLOCK))
        rejected: list[NDArray[np.intp]] = []
        index = np.arange(len(secrets)) if rows is None else rows

        def attempt(job: tuple[int, WordArray]) -> tuple[FloatArray, IntArray, ByteArray, int]:
            low, words = job
            here = secrets[index[low : low + _BLOCK]]
            block, state = (
                np.empty((len(here), cells.shape[1]), np.int64),
                np.empty(len(here), "u1"),
            )
            return here, block, state, self._fast(words, here, block, state)

        while waiting:
            wave = [waiting.popleft() for _ in range(min(_AHEAD * threads, len(waiting)))]
            sizes = [self.words_per_draw * len(index[low : low + _BLOCK]) for low in wave]
            words = [stream.words(size) for size in sizes]
            done = in_threads(attempt, zip(wave, words, strict=True), threads=threads)
            for k, (low, (here, block, state, left)) in enumerate(zip(wave, done, strict=True)):
                at, given = index[low : low + _BLOCK], sum(sizes[k + 1 :])
                if left:
                    stream.put_back(words[k + 1 :])
                    self._settle(words[k], here, block, state, stream, False)
                    rejected.append(at[np.flatnonzero(state == REJECTED)])
                cells[at] = block
                if left and len(stream) < given:
                    waiting.extendleft(reversed(wave[k + 1 :]))
                    break
                if left:
                    stream.words(given)
        return np.concatenate(rejected) if rejected else np.empty(0, np.intp)

    def _settle(
        self,
        words: WordArray,
        secrets: FloatArray,
        cells: IntArray,
        state: ByteArray,
        rng: Randomness,
        balls_only: bool,
    ) -> None:
        """Decide in ball arithmetic what the kernel left open."""
        per = self.words_per_draw
        open_rows = range(len(secrets)) if balls_only else np.flatnonzero(state == UNDECIDED)
        for i in open_rows:
            uniforms = [LazyUniform(int(word)) for word in words[per * i : per * (i + 1)]]
            cell = self._decide(uniforms, secrets[i], rng)
            state[i] = REJECTED if cell is None else DECIDED
            if cell is not None:
                cells[i] = cell

    def _decide(
        self, uniforms: list[LazyUniform], secret: FloatArray, rng: Randomness
    ) -> list[int] | None:
        """The cell, with as many bits as it takes; None where the attempt is rejected."""
        from flint import ctx

        while True:
            with ARB_LOCK, ctx.workprec(max(u.bits for u in uniforms) + 128):
                report = self._exact(uniforms, secret)
                if isinstance(report, list):
                    floors = [coordinate.floor().unique_fmpz() for coordinate in report]
                    if all(floor is not None for floor in floors):
                        return [int(floor) for floor in floors]
                elif report == REJECTED:
                    return None
            uniforms = [u.extended(rng) for u in uniforms]


class _Balls:
    """How many draws of this process may still go to balls alone.

    So many take less time than it takes to load a compiled kernel, let alone to compile it.
    """

    left = 2000


def _are_for_balls(count: int) -> bool:
    """Whether so few reports were drawn that loading the kernel would take longer.

    The cells are the same: where the kernel decides, so do the balls, from the same words,
    since their intervals are 2^11 times as narrow (``tests/mechanisms/noise/test_few.py``).
    """
    if count > _Balls.left or is_numba_loaded():
        return False
    _Balls.left -= count
    return True


def check_resolution(extent: float, step: float, *, given: str = "at this epsilon") -> None:
    """Refuse a lattice so fine that a report's index would not fit into 64 bits.

    `extent` is the scale of the noise in metres: 400 times that is exceeded with a
    probability below 2^-512.
    """
    if not extent / step < _FINEST:
        raise InvalidInput(
            f"the resolution must be at least {extent / _FINEST:.3g} m {given}; got {step:.3g} m"
        )
