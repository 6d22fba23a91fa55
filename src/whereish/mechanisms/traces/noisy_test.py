"""A private test of whether a public guess lies near the secret place.

The answer is yes when d(x, g) <= l + N, where g is the guess, l the threshold and N
has the Laplace law of scale 1/eps.  For a fixed g the map x -> d(x, g) is
1-Lipschitz, so moving the secret by d(x, x') moves the quantity that N hides by at
most that much: each answer, yes or no, keeps eps * d (the test of Chatzikokolakis,
Palamidessi and Stronati, PETS 2014).

The answer is computed as the real-number test would give it.  The distance is a ball
around the distance of the doubles as they stand, N a sign and -ln U / eps for a
uniform U of which ever more bits are drawn until the comparison is certain.  Nothing
but the answer leaves: neither N nor the distance is ever a double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.traces.transcript import Surface
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Euclidean, GreatCircle
from whereish.randomness import Randomness, secure
from whereish.sampling.lazy_uniform import ARB_LOCK, LazyUniform
from whereish.space.plane import Plane
from whereish.space.points import Points, checked_coordinates
from whereish.space.sphere import RADIUS_M, Sphere
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from flint import arb

__all__ = ["NoisyTest", "distance_ball", "level_on", "metric_on"]


def metric_on(space: Surface) -> Metric:
    """The metric of places that mechanisms on this space keep multiples of."""
    return GreatCircle() if isinstance(space, Sphere) else Euclidean()


def level_on(space: Surface, epsilon: Epsilon) -> float:
    """`epsilon` per true metre as a level per unit of :func:`metric_on`, rounded down.

    A plane that stretches by up to k takes eps/k.
    """
    if isinstance(space, Sphere) or space.scale == 1.0:
        return epsilon.per_m
    return math.nextafter(epsilon.per_m / space.scale, 0.0)


@dataclass(frozen=True)
class NoisyTest:
    """Whether a guess holds: d(x, g) <= threshold + Laplace noise of scale 1/eps.

    Contract: each answer keeps ``eps * Euclidean()`` (eps/k on a plane that
    stretches by k) or ``eps * GreatCircle()`` on the globe, tightly.
    """

    epsilon: Epsilon
    threshold: Length
    space: Surface

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Epsilon.of(self.epsilon))
        object.__setattr__(self, "threshold", Length.positive(self.threshold, name="threshold"))
        if not isinstance(self.space, Plane | Sphere):
            raise InvalidInput(
                f"space must be a Plane or the Sphere; got {type(self.space).__name__}"
            )

    @property
    def level(self) -> float:
        """The level of the noise per unit of distance in the space."""
        return level_on(self.space, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What each answer keeps."""
        return Guarantee(
            self.level * metric_on(self.space),
            Basis.THEOREM,
            "noisy threshold test (the distance to a public guess is 1-Lipschitz)",
            "exact: decided in ball arithmetic on lazily drawn bits",
        ).on(self.space)

    def chance(self, distance: Length | str) -> float:
        """Probability that a guess at this distance from the secret holds."""
        margin = self.level * (self.threshold.m - Length.of(distance, name="distance").m)
        return 1 - math.exp(-margin) / 2 if margin >= 0 else math.exp(margin) / 2

    def holds(
        self,
        secret: Points | ArrayLike,
        guess: Points | ArrayLike,
        *,
        rng: Randomness | None = None,
    ) -> bool:
        """One private answer about one secret."""
        x = checked_coordinates(secret, self.space)
        g = checked_coordinates(guess, self.space)
        if isinstance(self.space, Plane):
            self.space.check_region(x)  # beyond it the scale says nothing, and it was charged
        if len(x) != 1 or len(g) != 1:
            raise InvalidInput(
                f"a test takes one secret and one guess; got {len(x)} and {len(g)} points"
            )
        return self._decide(x[0], g[0], secure(rng))

    def _decide(self, secret: FloatArray, guess: FloatArray, rng: Randomness) -> bool:
        from flint import arb, ctx

        uniform = LazyUniform(int(rng.words(1)[0]))
        while True:
            with ARB_LOCK, ctx.workprec(uniform.bits + 128):
                negative, rest = uniform.split(1)
                size = -rest.ball().log() / arb(self.level)
                gap = distance_ball(self.space, secret, guess) - arb(self.threshold.m)
                margin = (-size if negative else size) - gap
                # A ball that touches zero (or knows nothing) is neither: more bits.
                if margin > 0:
                    return True
                if margin < 0:
                    return False
            uniform = uniform.extended(rng)


def distance_ball(space: Surface, x: FloatArray, y: FloatArray) -> arb:
    """A ball around the distance of two places, their doubles taken as exact."""
    from flint import arb

    if not isinstance(space, Sphere):
        across, up = (arb(float(a)) - arb(float(b)) for a, b in zip(x, y, strict=True))
        return (across * across + up * up).sqrt()
    # |u - v|²/4 and |u + v|²/4 of the unit vectors, each a sum of squares.
    (lon_x, lat_x), (lon_y, lat_y) = ((arb(float(c)) for c in place) for place in (x, y))
    sin_lon, cos_lon = ((lon_x - lon_y) / 360).sin_cos_pi()
    sin_less, cos_less = ((lat_x - lat_y) / 360).sin_cos_pi()
    sin_plus, cos_plus = ((lat_x + lat_y) / 360).sin_cos_pi()
    apart = (sin_less * cos_lon) ** 2 + (cos_plus * sin_lon) ** 2
    along = (cos_less * cos_lon) ** 2 + (sin_plus * sin_lon) ** 2
    return 2 * arb(RADIUS_M) * arb.atan2(apart.sqrt(), along.sqrt())
