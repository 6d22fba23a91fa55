"""Exact selection by the exponential mechanism over a finite public list.

Candidate j is chosen for secret s with probability proportional to
exp(-rate * cost[s, j]) (McSherry and Talwar, FOCS 2007), where costs are whole numbers
and the rate is a fraction.  If moving between two secrets changes no cost by more than
c, the choice keeps 2 * rate * c: once for the weight, once for the normaliser.

Sampling is by rejection, so that no normaliser is ever computed: draw j uniformly
(whole words, modulo, the biased end thrown away), keep it with probability
exp(-rate * (cost[s, j] - least cost of s)).  That coin is -ln U > gamma for a uniform U
of which 64 bits are drawn; doubles decide with a bound on their error, and the few that
are too close to call go to ball arithmetic with more bits.  The law is therefore exactly
the stated one.  How many rounds it takes depends on the secret: this is for data that
is published later, not for answers that are timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.randomness import Randomness, secure
from whereish.sampling.lazy_uniform import ARB_LOCK, LazyUniform
from whereish.sampling.thresholds import uniform_below

__all__ = ["ExponentialSelection"]

_WORD: Final = 2.0**64
_SLACK: Final = 2.0**-48


@dataclass(frozen=True, eq=False)
class ExponentialSelection:
    """P(j | s) proportional to exp(-rate * costs[s, j]), exactly.

    Parameters
    ----------
    costs
        One row for each secret, one column for each candidate; whole numbers >= 0.
    rate
        A fraction >= 0.
    """

    costs: IntArray = field(repr=False)
    rate: Fraction

    def __post_init__(self) -> None:
        costs = np.asarray(self.costs)
        if costs.ndim != 2 or not costs.size or not np.issubdtype(costs.dtype, np.integer):
            raise InvalidInput("costs must be a matrix of whole numbers with at least one entry")
        if (costs < 0).any() or (costs > 2**40).any():
            raise InvalidInput("costs must lie between 0 and 2^40")
        rate = Fraction(self.rate)
        if rate < 0:
            raise InvalidInput(f"rate must be at least 0; got {float(rate):g}")
        above = costs.astype(np.int64) - costs.min(axis=1, keepdims=True)
        above.setflags(write=False)
        object.__setattr__(self, "costs", above)
        object.__setattr__(self, "rate", rate)

    def probabilities(self) -> FloatArray:
        """The matrix of P(j | s), in doubles (for errors and tests; never for sampling)."""
        weights = np.exp(-float(self.rate) * self.costs)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, secrets: ArrayLike, *, rng: Randomness | None = None) -> NDArray[np.intp]:
        """A candidate for each of `secrets` (row numbers)."""
        source = secure(rng)
        rows = np.asarray(secrets, dtype=np.intp)
        if rows.ndim != 1 or (rows.size and (rows.min() < 0 or rows.max() >= len(self.costs))):
            raise InvalidInput(f"secrets must be row numbers from 0 to {len(self.costs) - 1}")
        chosen = np.empty(len(rows), np.intp)
        pending = np.arange(len(rows))
        while pending.size:
            candidates = uniform_below(np.full(len(pending), self.costs.shape[1]), source)
            kept = self._coins(self.costs[rows[pending], candidates], source)
            chosen[pending[kept]] = candidates[kept]
            pending = pending[~kept]
        return chosen

    def draw_among(
        self,
        secrets: ArrayLike,
        candidates: IntArray,
        starts: IntArray,
        counts: IntArray,
        *,
        rng: Randomness | None = None,
    ) -> NDArray[np.intp]:
        """A candidate for each secret out of a list of its own.

        That of secret i are candidates[starts[i] : starts[i] + counts[i]], column numbers; the
        weights are the same as for :meth:`draw`.
        """
        source = secure(rng)
        rows = np.asarray(secrets, dtype=np.intp)
        if rows.size and counts.min() < 1:
            raise InvalidInput("every secret must have at least one candidate")
        chosen = np.empty(len(rows), np.intp)
        pending = np.arange(len(rows))
        while pending.size:
            drawn = starts[pending] + uniform_below(counts[pending], source)
            columns = candidates[drawn]
            kept = self._coins(self.costs[rows[pending], columns], source)
            chosen[pending[kept]] = columns[kept]
            pending = pending[~kept]
        return chosen

    def _coins(self, above: IntArray, rng: Randomness) -> NDArray[np.bool_]:
        """Heads with probability exp(-rate * above)."""
        words = rng.words(len(above))
        middle = (words.astype(np.float64) + 0.5) / _WORD
        drawn = -np.log(np.minimum(middle, 1.0))
        wanted = float(self.rate) * above
        # Half an interval through the derivative of ln, conversion, and all roundings.
        error = 2.0**-63 / middle + _SLACK * (1 + drawn + wanted)
        heads = drawn > wanted
        close = ~(np.abs(drawn - wanted) > error) | (words < 2**16)
        for i in np.flatnonzero(close & (above > 0)):
            heads[i] = self._exact_coin(LazyUniform(int(words[i])), int(above[i]), rng)
        return np.asarray(heads | (above == 0))

    def _exact_coin(self, uniform: LazyUniform, above: int, rng: Randomness) -> bool:
        from flint import arb, ctx, fmpq

        gamma = self.rate * above
        if gamma == 0:
            return True
        while True:
            with ARB_LOCK, ctx.workprec(uniform.bits + 128):
                margin = -uniform.ball().log() - arb(fmpq(gamma.numerator, gamma.denominator))
                if margin > 0:
                    return True
                if margin < 0:
                    return False
            uniform = uniform.extended(rng)
