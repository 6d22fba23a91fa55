"""Distinguishability functions: how well points at distance d may be told apart.

l-privacy (ElSalamouny and Gambs, "Optimal noise functions for location privacy on
continuous regions", Int. J. of Information Security 17, 2018): for all points i, j at
distance d and all events S

    ln P(K(i) in S) - ln P(K(j) in S) <= l(d).

A function here is nondecreasing and piecewise linear, with jumps allowed, so that
every question about it is answered at finitely many corners.  On the piece
(start_k, start_k+1] it is level_k + slope_k (d - start_k): at a jump the lower value
counts, and l(0) = 0.  The last level may be infinite: no promise beyond that distance.
A curved function is replaced by a piecewise linear one below it, which promises more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, shortened
from whereish.privacy.metric import Metric, rounded_up
from whereish.privacy.minorants import ROUNDING, SHAPES
from whereish.privacy.norms import Euclidean
from whereish.privacy.regularity import Check, extends_to_plane, is_regular
from whereish.space.points import Space, plain_numbers
from whereish.units import Epsilon, Length

__all__ = ["DistanceLevel", "Distinguishability"]

_EXACT_STEPS = 256
_NODES_PER_E_FOLD = 50  # a chord of the square root is then within 1.3e-5 of it


@dataclass(frozen=True)
class Distinguishability:
    """A nondecreasing, piecewise linear function l, in nats, of the distance in metres.

    Use a named constructor, :meth:`table` or :meth:`of`.

    >>> l = Distinguishability.location("1 km", 0.5)
    >>> l([0.0, 500.0, 1000.0, 1001.0]).tolist()
    [0.0, 0.5, 0.5, inf]
    """

    starts: tuple[float, ...]
    levels: tuple[float, ...]
    slopes: tuple[float, ...]
    text: str = field(default="piecewise linear", compare=False)

    def __post_init__(self) -> None:
        for name in ("starts", "levels", "slopes"):
            numbers = plain_numbers(getattr(self, name), f"the {name} of l")
            object.__setattr__(self, name, tuple(numbers.tolist()))
        starts, levels, slopes = map(np.asarray, (self.starts, self.levels, self.slopes))
        if not (len(starts) == len(levels) == len(slopes) > 0) or starts[0] != 0:
            raise InvalidInput("l must have as many starts, levels and slopes, the first start 0")
        if not np.isfinite(starts).all() or (np.diff(starts) <= 0).any():
            raise InvalidInput("the pieces of l must start at finite, increasing distances")
        if np.isnan(levels).any() or np.isnan(slopes).any():
            raise InvalidInput("l must be a number at every distance; got NaN")
        if (levels < 0).any():
            raise InvalidInput(f"l must be >= 0 at every distance; got {levels.min():g}")
        if not np.isfinite(levels[:-1]).all() or not np.isfinite(slopes).all():
            raise InvalidInput("l may be infinite only on its last piece")
        ends = levels[:-1] + slopes[:-1] * np.diff(starts)
        falls = np.flatnonzero(ends > levels[1:] * (1 + ROUNDING) + 1e-290)
        if (slopes < 0).any() or falls.size:
            at = starts[np.flatnonzero(slopes < 0)[0] if not falls.size else falls[0] + 1]
            raise InvalidInput(
                f"l must not decrease with distance; it falls after {Length(float(at))}"
            )

    # -- families ---------------------------------------------------------------

    @classmethod
    def linear(cls, epsilon: Epsilon | str) -> Distinguishability:
        """l(d) = eps d: geo-indistinguishability."""
        eps = Epsilon.of(epsilon)
        return cls((0.0,), (0.0,), (eps.per_m,), f"{eps} * d")

    @classmethod
    def location(cls, distance: Length | str, level: float) -> Distinguishability:
        """(D, eps)-location privacy: eps up to D, unlimited beyond."""
        reach = Length.positive(distance, name="distance")
        text = f"{_level(level):g} up to {reach}, unlimited beyond"
        return cls((0.0, reach.m), (level, math.inf), (0.0, 0.0), text)

    @classmethod
    def capped(cls, epsilon: Epsilon | str, level: float) -> Distinguishability:
        """min(eps d, level): points however far apart keep some doubt."""
        eps = Epsilon.of(epsilon)
        starts = (0.0, _level(level) / eps.per_m)
        return cls(starts, (0.0, level), (eps.per_m, 0.0), f"min({eps} * d, {level:g})")

    @classmethod
    def stairs(cls, step: Length | str, level: float, *, base: float = 0.0) -> Distinguishability:
        """Affine in steps: base + level * ceil(d / step) for d > 0.

        From the 256th step on its linear lower bound base + level * d / step is used.
        """
        width = Length.positive(step, name="step")
        if not (math.isfinite(base) and base >= 0):
            raise InvalidInput(f"base must be a finite number >= 0; got {base!r}")
        count = np.arange(_EXACT_STEPS)
        starts = [*(count * width.m).tolist(), _EXACT_STEPS * width.m]
        levels = [*(base + _level(level) * (count + 1)).tolist(), base + level * _EXACT_STEPS]
        slopes = [0.0] * _EXACT_STEPS + [level / width.m]
        text = f"{base:g} + {level:g} * ceil(d / {width})"
        return cls(tuple(starts), tuple(levels), tuple(slopes), text)

    @classmethod
    def square_root(
        cls, level: float, distance: Length | str, *, reach: Length | str = "1000 km"
    ) -> Distinguishability:
        """level * sqrt(d / distance), by chords below it up to `reach`, constant beyond."""
        unit, far = Length.positive(distance, name="distance"), Length.positive(reach, name="reach")
        _level(level)
        found = cls.of(lambda d: level * math.sqrt(d / unit.m), reach=far, shape="concave")
        return cls(
            found.starts, found.levels, found.slopes, f"{level:g} * sqrt(d / {unit}) up to {far}"
        )

    @classmethod
    def unlimited(cls) -> Distinguishability:
        """No promise between different points: the region is a single point."""
        return cls((0.0,), (math.inf,), (0.0,), "unlimited")

    @classmethod
    def table(
        cls,
        distances: Sequence[float] | FloatArray,
        levels: Sequence[float] | FloatArray,
        *,
        beyond: Literal["unlimited", "constant", "linear"] = "constant",
    ) -> Distinguishability:
        """Linear interpolation of levels at distances in metres, from (0, levels[0]).

        A first level above zero is a jump at 0.  `beyond` the last distance there is no
        promise, the last level, or the last slope.
        """
        d, ell = np.array(distances, float), np.array(levels, float)
        if d.ndim != 1 or d.shape != ell.shape or len(d) < 2 or d[0] != 0:
            raise InvalidInput(
                "a table of l must be two rows of equal length >= 2, the first distance 0; got"
                f" shapes {d.shape} and {ell.shape}"
            )
        if beyond not in ("unlimited", "constant", "linear"):
            raise InvalidInput(f"beyond must be unlimited, constant or linear; got {beyond!r}")
        if np.isnan(ell).any():
            raise InvalidInput("l must be a number at every distance; got NaN")
        if not np.isfinite(d).all() or (np.diff(d) <= 0).any():
            raise InvalidInput("the distances of a table must be finite and increasing")
        if np.isinf(ell).any():
            raise InvalidInput("the levels of a table must be finite; say beyond='unlimited'")
        slopes = np.diff(ell) / np.diff(d)
        last = {"unlimited": 0.0, "constant": 0.0, "linear": float(slopes[-1])}[beyond]
        levels_after = [*ell[:-1].tolist(), math.inf if beyond == "unlimited" else float(ell[-1])]
        text = f"a table of {len(d)} distances up to {Length(float(d[-1]))}, {beyond} beyond"
        return cls(tuple(d.tolist()), tuple(levels_after), (*slopes.tolist(), last), text)

    @classmethod
    def of(
        cls,
        function: Callable[[float], float],
        *,
        reach: Length | str,
        shape: Literal["concave", "convex", "monotone"],
        smallest: Length | str = "1 mm",
    ) -> Distinguishability:
        """A piecewise linear function below a callable, on distances up to `reach`.

        The callable is taken at its word for `shape`, and checked at the nodes: chords
        lie below a concave function, the continuations of neighbouring chords below a
        convex one, and a staircase below any nondecreasing one.  Beyond `reach` the last
        value stays (an infinite one included).
        """
        far = Length.positive(reach, name="reach").m
        near = min(Length.positive(smallest, name="smallest").m, far / 2)
        count = math.ceil(_NODES_PER_E_FOLD * math.log(far / near)) + 1
        nodes = np.concatenate([[0.0], np.geomspace(near, far, count)])
        values = np.array([float(function(float(d))) for d in nodes[1:]])
        if np.isnan(values).any():
            at = Length(float(nodes[1:][np.isnan(values)][0]))
            raise InvalidInput(f"l must be a number at every distance; got NaN at {at}")
        if (values < 0).any():
            raise InvalidInput(f"l must be >= 0 at every distance; got {values.min():g}")
        if (np.diff(values) < 0).any():
            at = Length(float(nodes[1:][np.flatnonzero(np.diff(values) < 0)[0]]))
            raise InvalidInput(f"l must not decrease with distance; it falls after {at}")
        finite = np.isfinite(values)
        d, ell = nodes[1:][finite], values[finite]
        limit = float(nodes[1:][~finite][0]) if not finite.all() else None
        if len(d) < 2 or shape not in SHAPES:
            raise InvalidInput(
                f"l must be finite at two nodes, and shape one of {', '.join(SHAPES)};"
                f" got {len(d)} nodes and {shape!r}"
            )
        text = f"a {shape} function up to {Length(far)}"
        pieces = list(SHAPES[shape](d * 1.0, ell * (1 - ROUNDING)))
        if limit is not None:
            pieces.append((limit, math.inf, 0.0))
        starts, levels, slopes = zip(*pieces, strict=True)
        return cls(starts, levels, slopes, text)

    def restricted(self, distance: Length | str) -> Distinguishability:
        """The same promise up to D and none beyond: the D-restricted family."""
        reach = Length.positive(distance, name="distance")
        keep = [k for k, start in enumerate(self.starts) if start < reach.m]
        parts = ([*(row[k] for k in keep)] for row in (self.starts, self.levels, self.slopes))
        starts, levels, slopes = parts
        if math.isfinite(levels[-1]):
            starts, levels, slopes = [*starts, reach.m], [*levels, math.inf], [*slopes, 0.0]
        text = f"{self.text}, unlimited beyond {reach}"
        return Distinguishability(tuple(starts), tuple(levels), tuple(slopes), text)

    def scaled(self, factor: float) -> Distinguishability:
        """factor * l."""
        if not (math.isfinite(factor) and factor > 0):
            raise InvalidInput(f"l must be scaled by a finite number > 0; got {factor!r}")
        levels = tuple(factor * level for level in self.levels)
        slopes = tuple(factor * slope for slope in self.slopes)
        return Distinguishability(self.starts, levels, slopes, f"{factor:g} * ({self.text})")

    def dilated(self, factor: float) -> Distinguishability:
        """The function d -> l(d / factor): on a plane that stretches by at most `factor`."""
        if factor == 1.0:
            return self
        if not (math.isfinite(factor) and factor > 0):
            raise InvalidInput(f"l must be dilated by a finite number > 0; got {factor!r}")
        starts = tuple(math.nextafter(start * factor, math.inf) for start in self.starts[1:])
        slopes = [math.nextafter(slope / factor, 0.0) for slope in self.slopes]
        for k, (low, high) in enumerate(itertools.pairwise((0.0, *starts))):
            # Where a piece is short, its rounded ends must not lift it above the next.
            rise = self.levels[k + 1] - self.levels[k]
            slopes[k] = min(slopes[k], math.nextafter(rise / (high - low), 0.0))
        text = f"{self.text}, with d / {factor:.9g} for d"
        return Distinguishability((0.0, *starts), self.levels, tuple(slopes), text)

    # -- values -----------------------------------------------------------------

    def __call__(self, distance: ArrayLike) -> FloatArray:
        """l at distances in metres; at a jump the lower value."""
        return self._at(np.asarray(distance, float), "left")

    def after(self, distance: ArrayLike) -> FloatArray:
        """The limit of l from above: the upper value at a jump."""
        return self._at(np.asarray(distance, float), "right")

    def _at(self, d: FloatArray, side: Literal["left", "right"]) -> FloatArray:
        if np.isnan(d).any() or (d < 0).any():
            raise InvalidInput("distances must be numbers >= 0")
        index = np.searchsorted(self.starts, d, side=side) - 1
        piece = np.maximum(index, 0)
        starts, levels, slopes = (np.asarray(row)[piece] for row in self.arrays)
        with np.errstate(invalid="ignore"):
            values = levels + slopes * (d - starts)
        values = np.where(np.isinf(levels), np.inf, values)
        return np.asarray(np.where(index < 0, 0.0, values))

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Starts, levels and slopes, for the solvers."""
        return np.asarray(self.starts), np.asarray(self.levels), np.asarray(self.slopes)

    @property
    def decay(self) -> float:
        """The largest s with s d <= l(d) everywhere: how fast a tail exp(-s r) may fall."""
        ends = np.asarray(self.starts[1:])
        rates = (self(ends) / ends).tolist()
        if self.levels[0] == 0:
            rates.append(self.slopes[0])
        if math.isfinite(self.levels[-1]):
            rates.append(self.slopes[-1])
        return min(rates, default=math.inf)

    @property
    def metric(self) -> Metric:
        """l(|x - x'|), the metric to promise; eps * Euclidean where l is linear."""
        if self.starts == (0.0,) and self.levels == (0.0,) and self.slopes[0] > 0:
            return self.slopes[0] * Euclidean()
        return DistanceLevel(self)

    # -- checks -----------------------------------------------------------------

    def is_regular(self) -> Check:
        """Whether l(a + b) <= l(a) + l(b), which makes l(|x - x'|) a metric; else a pair."""
        return is_regular(self)

    def extends_to_plane(self, d0: Length | str) -> Check:
        """Whether l(d0 + d) >= l(d0) + l(d) for all d; else such a d.

        Then what keeps l on a region of diameter d0 has a counterpart on the whole plane.
        """
        return extends_to_plane(self, Length.positive(d0, name="d0").m)

    def __str__(self) -> str:
        return f"l(d) = {self.text}"

    def __repr__(self) -> str:
        return f"Distinguishability({shortened(self.text)}; {len(self.starts)} linear pieces)"


@dataclass(frozen=True)
class DistanceLevel(Metric):
    """l(|x - x'|) for a distinguishability function l."""

    function: Distinguishability
    kind = "distance-level"

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        return self.function(Euclidean()(x, y))

    @property
    def description(self) -> str:
        """The function, of the distance."""
        return f"l(|x - x'|) with {self.function}"

    def fits(self, space: Space) -> bool:
        """Where the distance does."""
        return Euclidean().fits(space)

    def stretched(self, scale: float) -> Metric:
        """l(d / scale)."""
        return DistanceLevel(self.function.dilated(scale))

    def _ratio_to(self, other: Metric) -> float:
        """Corner values suffice: a quotient of linear functions has no inner maximum."""
        mine = self.function
        if isinstance(other, Euclidean):
            theirs = Distinguishability((0.0,), (0.0,), (1.0,))
        elif isinstance(other, DistanceLevel):
            theirs = other.function
        else:
            return math.inf
        corners = sorted({*mine.starts, *theirs.starts})
        worst = 0.0
        for d in corners:
            if d > 0:
                worst = max(worst, _quotient(float(mine(d)), float(theirs(d))))
            worst = max(worst, _quotient(float(mine.after(d)), float(theirs.after(d))))
        if mine.levels[0] == theirs.levels[0] == 0:
            worst = max(worst, _quotient(mine.slopes[0], theirs.slopes[0]))
        if math.isfinite(mine.levels[-1]) and math.isfinite(theirs.levels[-1]):
            worst = max(worst, _quotient(mine.slopes[-1], theirs.slopes[-1]))
        return worst

    def to_json(self) -> dict[str, Any]:
        """The pieces; an infinite level is written as null."""
        levels = [level if math.isfinite(level) else None for level in self.function.levels]
        return {
            "kind": self.kind,
            "starts": list(self.function.starts),
            "levels": levels,
            "slopes": list(self.function.slopes),
            "text": self.function.text,
        }

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        levels = tuple(math.inf if v is None else float(v) for v in data["levels"])
        starts, slopes = (tuple(float(v) for v in data[k]) for k in ("starts", "slopes"))
        # Words are not believed: they might say another function than the pieces.
        far = Length(starts[-1])
        text = f"{len(starts)} linear pieces, the last from {far} on"
        return cls(Distinguishability(starts, levels, slopes, text))


def _level(value: float) -> float:
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise InvalidInput(f"a value of l must be a finite number > 0, in nats; got {value!r}")
    return float(value)


def _quotient(a: float, b: float) -> float:
    """a / b with 0 / 0 = 0 and anything below an infinite promise counted as 0."""
    if a == 0 or (math.isinf(b) and not math.isinf(a)):
        return 0.0
    if math.isinf(a) or b == 0:
        return 1.0 if a == b else math.inf
    return rounded_up(Fraction(a) / Fraction(b))
