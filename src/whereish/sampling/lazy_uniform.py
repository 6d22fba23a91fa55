"""Uniform numbers of which only a prefix is drawn, as balls.

A uniform number is an infinite bit string, known as far as it is needed: an interval.  The
compiled pieces of :mod:`whereish.sampling.words` know its first 53 bits; :class:`LazyUniform`
gives the same interval as a ball, and more bits where those do not tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from whereish.randomness import ForkSafeLock, Randomness

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "ARB_LOCK",
    "DECIDED",
    "REJECTED",
    "UNDECIDED",
    "LazyUniform",
    "direction_ball",
    "half",
]

DECIDED: Final = 0
UNDECIDED: Final = 1
REJECTED: Final = 2

ARB_LOCK = ForkSafeLock()
"""Held while Arb works: its working precision is global."""

_WORD = 64


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


# Pieces that the kernels share.  Each returns a value; its error bound is stated.


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
