"""Steps between nodes that meet the jumps of l."""

from __future__ import annotations

import math

import numpy as np

from whereish.privacy.distinguishability import Distinguishability

__all__ = ["aligned_step", "jumps_of"]


def jumps_of(ell: Distinguishability) -> tuple[float, ...]:
    """The distances > 0 at which l jumps."""
    starts = np.asarray(ell.starts[1:])
    return tuple(starts[ell.after(starts) > ell(starts) * (1 + 1e-12)].tolist())


def aligned_step(wanted: float, marks: tuple[float, ...]) -> float:
    """A step of about `wanted` of which the marks are multiples, as nearly as they can be.

    It is rounded up to 24 bits, so that its multiples and their differences are exact and
    no multiple falls short of its mark.
    """
    best = wanted
    if marks:
        fewest = math.ceil(marks[0] / wanted)
        candidates = marks[0] / np.arange(fewest, 2 * fewest + 1)
        multiples = np.asarray(marks[:64])[:, None] / candidates
        off = np.abs(multiples - np.round(multiples)).max(axis=0)
        best = float(candidates[np.argmax(off <= off.min() + 1e-9)])
    mantissa, exponent = math.frexp(best)
    return math.ldexp(math.ceil(math.ldexp(mantissa, 24) * (1 - 2.0**-40)), exponent - 24)
