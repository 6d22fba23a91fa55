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

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable
from whereish.privacy.guarantee import Guarantee
from whereish.randomness import ForkSafeLock, Randomness, secure
from whereish.sampling.double_double import two_product
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates

if TYPE_CHECKING:
    from flint import arb

__all__ = ["DECIDED", "REJECTED", "UNDECIDED", "LazyUniform", "RoundedMechanism"]

DECIDED: Final = 0
UNDECIDED: Final = 1
REJECTED: Final = 2

ROUNDING: Final = 2.0**-48
"""Relative error allowed for a short chain of double operations: 32 units of 2^-53."""

NUMERICS: Final = "exact: the cell of the real-number mechanism on a public lattice"

_BLOCK = 8192
_WORD = 64
LARGEST_CELL: Final = 2.0**46
"""How many lattice steps from the origin a coordinate may be."""
_FINEST = 2.0**44
ARB_LOCK = ForkSafeLock()
"""Held while Arb works: its working precision is global."""


@dataclass(frozen=True, slots=True)
class LazyUniform:
    """A uniform number in [0, 1) of which the first `bits` bits are known."""

    prefix: int
    bits: int = _WORD

    def extended(self, rng: Randomness) -> LazyUniform:
        """The same number, known to 64 more bits."""
        return LazyUniform((self.prefix << _WORD) | int(rng.words(1)[0]), self.bits + _WORD)

    def split(self, bits: int) -> tuple[int, LazyUniform]:
        """The first `bits` bits as an integer, and the uniform number that follows them."""
        rest = self.bits - bits
        return self.prefix >> rest, LazyUniform(self.prefix & ((1 << rest) - 1), rest)

    def ball(self) -> arb:
        """The interval [prefix, prefix + 1] / 2^bits."""
        from flint import arb, fmpz

        return arb(arb(fmpz(2 * self.prefix + 1)), 1) * arb(2) ** (-self.bits - 1)


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
        self,
        words: NDArray[np.uint64],
        secrets: FloatArray,
        cells: IntArray,
        state: NDArray[np.uint8],
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

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One independent report for each secret: the node of its cell."""
        source = secure(rng)
        cells = self.cells(secrets, rng=source)
        return Points.trusted(self._places(cells), self.space, reproducible=source.reproducible)

    def cells(
        self,
        secrets: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
        balls_only: bool = False,
    ) -> IntArray:
        """The reports as lattice indices; `balls_only` decides every one of them in Arb."""
        source = secure(rng)
        coordinates = self.check_secrets(secrets)
        cells = np.empty((len(coordinates), self.space.dimension), np.int64)
        state = np.empty(_BLOCK, np.uint8)
        pending: NDArray[np.intp] | None = None
        while pending is None or pending.size:
            pending = self._round(coordinates, pending, cells, state, source, balls_only)
        return self._canonical(cells)

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
        state: NDArray[np.uint8],
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
            left = self._fast(words, here, block, state[: high - low])
            if left or balls_only:
                self._settle(words, here, block, state[: high - low], rng, balls_only)
                again = np.flatnonzero(state[: high - low] == REJECTED) + low
                rejected.append(again if rows is None else rows[again])
            if rows is not None:
                cells[rows[low:high]] = block
        return np.concatenate(rejected) if rejected else np.empty(0, np.intp)

    def _settle(
        self,
        words: NDArray[np.uint64],
        secrets: FloatArray,
        cells: IntArray,
        state: NDArray[np.uint8],
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


def check_resolution(extent: float, step: float, *, given: str = "at this epsilon") -> None:
    """Refuse a lattice so fine that a report's index would not fit into 64 bits.

    `extent` is the scale of the noise in metres: 400 times that is exceeded with a
    probability below 2^-512.
    """
    if not extent / step < _FINEST:
        raise InvalidInput(
            f"the resolution must be at least {extent / _FINEST:.3g} m {given}; got {step:.3g} m"
        )


# Pieces that the kernels share.  Each returns a value; its error bound is stated.


@kernel
def fraction(word: np.uint64, skip: int) -> float:
    """Midpoint of the interval of 53 bits after the first `skip` (at most 11) bits.

    In [2^-54, 1 - 2^-53], so that tables may be indexed and logarithms divided by: the
    last midpoint would round to 1 and is rounded down.  The uniform number differs from it
    by at most 2^-53: half of that is the interval's, half the rounding of the midpoint.
    """
    bits = (word >> np.uint64(11 - skip)) & np.uint64(0x1FFFFFFFFFFFFF)
    return min((np.int64(bits) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)


@kernel
def log_error(midpoint: float) -> float:
    """Bound on |ln U - ln a| for a uniform U with 53-bit midpoint a, and on rounding a.

    2^-53 / (a - 2^-53) < 2^-52 / a for a >= 2^-40; below that the linear bound is not
    worth its proof, and the draw goes to ball arithmetic.
    """
    return 2.0**-52 / midpoint if midpoint >= 2.0**-40 else math.inf


@kernel
def direction(word: np.uint64) -> tuple[float, float]:
    """Cosine and sine of a uniform angle: three bits for the octant, 53 for the rest.

    Taylor polynomials on [0, pi/4] with remainder below 5e-17; with the interval of
    the angle and the roundings, each coordinate is within 2^-50 of the truth.
    """
    phi = fraction(word, 3) * (math.pi / 4)
    q = phi * phi
    s = 1 / 6227020800 - q * (1 / 1307674368000 - q / 355687428096000)
    s = -1 / 5040 + q * (1 / 362880 + q * (-1 / 39916800 + q * s))
    s = phi + phi * q * (-1 / 6 + q * (1 / 120 + q * s))
    c = 1 / 479001600 - q * (1 / 87178291200 - q / 20922789888000)
    c = -1 / 720 + q * (1 / 40320 + q * (-1 / 3628800 + q * c))
    c = 1 - 0.5 * q + q * q * (1 / 24 + q * c)
    if word >> np.uint64(63):
        s, c = c, s
    if (word >> np.uint64(62)) & np.uint64(1):
        s = -s
    if (word >> np.uint64(61)) & np.uint64(1):
        c = -c
    return c, s


@kernel
def nearest_node(coordinate: float, step: float) -> tuple[float, float]:
    """A number n of steps next to `coordinate`, and what is left: coordinate - n * step.

    What is left is at most 0.52 steps, off by at most 2^-52 steps: n * step is product +
    low, exactly (Dekker), and coordinate - product is exact or that small.  So errors of a
    cell do not grow with the secret's coordinates, nor does the time that they cost.
    """
    n = np.rint(coordinate * (1 / step))
    product, low = two_product(n, step)
    return n, (coordinate - product) - low


@kernel
def near_border(coordinate: float, floor: float, error: float) -> bool:
    """Whether an error this large could move `coordinate` into another cell.

    Written so that NaN and infinity count as near.
    """
    offset = coordinate - floor
    return not (offset > error and offset < 1 - error)


def direction_ball(uniform: LazyUniform) -> tuple[arb, arb]:
    """The angle of :func:`direction`, as balls around its cosine and sine."""
    octant, rest = uniform.split(3)
    s, c = (rest.ball() / 4).sin_cos_pi()
    if octant & 4:
        s, c = c, s
    return -c if octant & 1 else c, -s if octant & 2 else s


def half() -> arb:
    """One half: cells are centred on their nodes."""
    from flint import arb

    return arb(0.5)
