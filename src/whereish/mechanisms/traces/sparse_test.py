"""A run of private looks that pays for the one that fails, not for those that hold.

Is the person still near what was foretold?  Asked with fresh Laplace noise each time
(:mod:`~whereish.mechanisms.traces.noisy_test`) every answer costs.  The sparse vector technique
(Dwork, Naor, Reingold, Rothblum, Vadhan, STOC 2009) hides the threshold instead, once for a
whole run: with d_i = d(x_i, g_i) the distance of the i-th place to its public guess,

    look i fails when  d_i + N_i >= l + R,    R ~ Exp(a),   N_i ~ Exp(b / 2),

R drawn once a run, N_i afresh, and a run ends with its first failure.

Theorem.  A run keeps a d_inf on its places while no look has failed, and (a + b) d_inf with
its failure; guesses may depend on the answers, and on anything public.
Proof.  Let x' move each place by at most t, so that |d_i - d'_i| <= t.  Given the transcript the
guesses are fixed, and the run's likelihood is the integral over r >= 0 of

    a e^{-a r}  prod_{held} F(l + r - d_i)  [G(l + r - d_k)  if look k failed],

F the distribution function of N and G = 1 - F.  Put r = r' - t.  Then l + r - d_i <= l + r' - d'_i
and F grows, so each F is at most that of x' at r'.  Further l + r - d_k >= l + r' - d'_k - 2t and
G(y - 2t) <= e^{b t} G(y), for G(y) = min(1, e^{-b y / 2}).  The density is e^{a t} times that at
r'.  So the likelihood is at most e^{(a + b) t} times the same integral for x' over r' >= t.  QED
The noise of one sign suffices, since the threshold is only ever moved up.  Runs, and noisy
reports between their looks, multiply in the likelihood of a transcript: their levels add.

Answers are those of real numbers: R and N_i are -ln U over their rate for uniforms of which ever
more bits are drawn until the comparison is certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whereish.arrays import FloatArray
from whereish.mechanisms.traces.noisy_test import distance_ball, level_on
from whereish.randomness import Randomness
from whereish.sampling.lazy_uniform import ARB_LOCK, LazyUniform

if TYPE_CHECKING:
    from whereish.mechanisms.traces.transcript import Guard, Surface

__all__ = ["SparseRun"]


@dataclass
class SparseRun:
    """One run: its hidden threshold, and the looks that it answers.

    Contract: its answers keep ``opening * d_inf`` until one fails, then
    ``(opening + failing) * d_inf`` (over a plane's stretch).
    """

    guard: Guard
    space: Surface
    rng: Randomness = field(repr=False)
    _hidden: LazyUniform = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._hidden = LazyUniform(int(self.rng.words(1)[0]))

    def fails(self, secret: FloatArray, guess: FloatArray) -> bool:
        """Whether the look says that the place is no longer near the guess."""
        from flint import arb, ctx

        opening = level_on(self.space, self.guard.opening)
        failing = level_on(self.space, self.guard.failing)
        fresh = LazyUniform(int(self.rng.words(1)[0]))
        while True:
            with ARB_LOCK, ctx.workprec(fresh.bits + self._hidden.bits + 128):
                hidden = -self._hidden.ball().log() / arb(opening)
                noise = -fresh.ball().log() * 2 / arb(failing)
                distance = distance_ball(self.space, secret, guess)
                margin = distance + noise - hidden - arb(self.guard.threshold.m)
                if margin > 0:
                    return True
                if margin < 0:
                    return False
            fresh, self._hidden = fresh.extended(self.rng), self._hidden.extended(self.rng)
