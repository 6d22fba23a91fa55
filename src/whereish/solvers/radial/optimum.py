"""The optimal circular radial for a distinguishability function, with its gap.

See :mod:`whereish.solvers.radial.node_lp` for the mathematics.  Lengths are measured here in
units of 1/s, s the largest rate at which a tail may fall (s d <= l(d) for all d).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate, SolverError
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.node_lp import (
    NodeSolution,
    best_nodes,
    closure,
    essential_offsets,
    hat_moments,
    lattice_value,
)
from whereish.solvers.radial.ratio import RadialRatio, largest_radial_ratio
from whereish.solvers.radial.steps import aligned_step, jumps_of
from whereish.threads import one_blas_thread

__all__ = ["RadialOptimum", "Tail", "checked_decay", "optimal_radial"]

Tail: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs (q, rho): P(|v| > q) <= rho for distances q in metres."""

_STEP = 0.03  # between nodes, for smooth l and loss
_STAIR_STEP = 0.01  # where l jumps and few of its constraints matter: a staircase
_FEW_OFFSETS = 8
_JUMP_STEP = 0.004  # where the loss jumps the lower bound is off by a share of the step
_PER_JUMP = 32  # least steps to the first jump of l, if they need not be far smaller
_DEPTH = 24.0  # the tail begins where R has fallen by e^-24
_MOST_NODES = 8000
_RESERVE = 1e-9  # of l, so that roundings do not break the certificate
_SLIVER = 1e-9  # of a step: marks this close to a lattice point are taken to lie on it
_SLICE = 0.00125  # of unknown curvature: the bound loses about this share


@dataclass(frozen=True)
class RadialOptimum:
    """A radial that keeps l, its loss, and a proven lower bound of every such loss."""

    radial: LogLinear
    loss: float
    lower_bound: float
    ratio: RadialRatio

    @property
    def gap(self) -> float:
        """(loss - lower bound) / loss."""
        return (self.loss - self.lower_bound) / self.loss


@dataclass(frozen=True)
class _Problem:
    """All in units of 1/decay: step, node count, loss, bound and tails."""

    ell: Distinguishability
    unit: float  # metres
    step_m: float
    count: int
    loss: Loss
    bound: float
    tail_radii: FloatArray
    tail_limits: FloatArray

    @property
    def step(self) -> float:
        return self.step_m / self.unit

    @property
    def nodes(self) -> FloatArray:
        return np.asarray(self.step * np.arange(self.count), np.float64)

    def value(self, r: FloatArray) -> FloatArray:
        return self.loss.value(r * self.unit)

    @property
    def cuts(self) -> list[float]:
        return [c / self.unit for c in self.loss.cuts]

    def levels_above(self, reserve: float) -> FloatArray:
        """l at multiples of the step, or its least value on the step that ends there.

        So a line through two neighbouring values stays below l, unless l is convex there.
        """
        d = self.step_m * np.arange(self.count)
        levels = self.ell(d)
        for jump in jumps_of(self.ell):
            k = int(np.searchsorted(d, jump))
            if k < self.count and d[k] > jump:
                levels[k] = min(levels[k], float(self.ell(jump)))
        return np.asarray(levels * (1 - reserve))

    def tail_decay(self, levels: FloatArray) -> float:
        """How fast the tail may fall under these levels at multiples of the step."""
        return float((levels[1:] / self.nodes[1:]).min()) * (1 - 1e-12)

    def levels_below(self, step: float) -> FloatArray:
        """l at multiples of a step a little below, rounded up."""
        return np.asarray(self.ell(step * self.unit * np.arange(self.count)) * (1 + 2.0**-48))

    def log_scale(self, levels: FloatArray) -> FloatArray:
        """About ln R: flat as far as the bound M makes it, then as fast as chains allow."""
        flat = 0.0 if math.isinf(self.bound) else 1 / math.sqrt(math.pi * self.bound)
        falling = np.maximum(np.arange(self.count) - math.floor(flat / self.step), 0)
        return -closure(levels)[falling]


@one_blas_thread()
def optimal_radial(
    ell: Distinguishability, loss: Loss, *, bound: float = math.inf, tail: Tail = ()
) -> RadialOptimum:
    """Minimise the expected loss over circular noise that keeps l.

    Parameters
    ----------
    bound
        The largest density M allowed, per square metre.
    tail
        Pairs (q, rho): P(|v| > q) <= rho for distances q in metres.
    """
    decay = checked_decay(ell, bound, tail)
    if math.isinf(decay):
        return _disk(ell, loss, bound, tail)
    problem = _problem(ell, loss, bound, tail, decay)
    radial, solution = _from_above(problem)
    ratio = largest_radial_ratio(radial, ell.arrays)
    if ratio.upper > 1:
        raise NotPrivate(f"this radial needs {ratio.upper:.9g} times the promised l; please report")
    reached = radial.expectation(loss.value, cuts=loss.cuts)
    return RadialOptimum(radial, reached, _from_below(problem, solution), ratio)


def checked_decay(ell: Distinguishability, bound: float, tail: Tail) -> float:
    """How fast a tail may fall under l, once M, rho and l are such that noise can exist."""
    if not bound > 0:
        raise InvalidInput(f"the bound M must be > 0 per square metre; got {bound!r}")
    for q, limit in tail:
        if not (q > 0 and math.isfinite(q) and 0 <= limit <= 1):
            raise InvalidInput("a tail must be pairs (distance > 0, probability in [0, 1])")
    decay = ell.decay
    if decay <= 0:
        if ell.levels[0] == 0 and ell.slopes[0] == 0:
            why = "it allows no difference at short distances, and by chains of them none at all"
        else:
            why = (
                "it grows more slowly than any multiple of the distance; restrict it to the"
                " region's diameter with .restricted(...)"
            )
        raise InvalidInput(f"no noise that integrates over the plane keeps {ell}: {why}")
    return decay


def _problem(
    ell: Distinguishability,
    loss: Loss,
    bound: float,
    tail: Tail,
    decay: float,
) -> _Problem:
    unit = 1 / decay
    flat = 0.0 if math.isinf(bound) else 1 / math.sqrt(math.pi * bound)
    reach = flat * decay + _DEPTH + max([*loss.cuts, *(q for q, _ in tail)], default=0.0) * decay
    jumps = jumps_of(ell)
    for step in (_JUMP_STEP,) if loss.cuts else (_STAIR_STEP, _STEP) if jumps else (_STEP,):
        least = min([step, *(jump * decay / _PER_JUMP for jump in jumps)])
        wanted = max(least, step / 2, reach / _MOST_NODES)
        step_m = aligned_step(wanted * unit, jumps or ell.starts[1:])
        offsets, _ = essential_offsets(ell(step_m * np.arange(math.ceil(reach / wanted))))
        if len(offsets) <= _FEW_OFFSETS:
            break
    count = math.ceil(reach / (step_m * decay)) + 1
    radii = np.array([q * decay for q, _ in tail])
    limits = np.array([limit for _, limit in tail])
    return _Problem(ell, unit, step_m, count, loss, bound / decay**2, radii, limits)


def _from_above(problem: _Problem) -> tuple[LogLinear, NodeSolution]:
    """Solve at the nodes; tighten M, rho and l until the interpolant itself keeps them."""
    bound, limits, share = problem.bound, problem.tail_limits, 1 - _RESERVE
    for _ in range(12):
        solution = _solve_nodes(problem, bound, limits, share)
        radial = _interpolant(problem, solution, share)
        ratio = largest_radial_ratio(radial, problem.ell.arrays)
        peak = radial.peak * problem.unit**2 / problem.bound
        if len(limits):
            over = radial.survival(problem.tail_radii * problem.unit) / problem.tail_limits
        else:
            over = np.zeros(0)
        if ratio.upper <= 1 and peak <= 1 and (over <= 1).all():
            return radial, solution
        share /= max(ratio.upper * (1 + _RESERVE), 1.0) if ratio.upper > 1 else 1.0
        bound /= peak * (1 + 1e-9) if peak > 1 else 1.0
        limits = limits / np.where(over > 1, over * (1 + 1e-6), 1.0)
        if not share > 0.5:
            break
    raise SolverError(
        f"no piecewise log-linear radial was found that keeps {problem.ell} and its limits:"
        " loosen the bound M or the tail a little"
    )


def _solve_nodes(problem: _Problem, bound: float, limits: FloatArray, share: float) -> NodeSolution:
    nodes, end = problem.nodes, problem.nodes[-1]
    every = problem.levels_above(1 - share)
    offsets, levels = essential_offsets(every)
    decay = min(problem.tail_decay(every), share)

    def functional(weight: Loss | None, beyond: float = 0.0) -> FloatArray:
        """∫ 2 pi r [r > beyond] L(r) hat_j, the last with the tail e^{-decay (r - end)}."""

        def density(r: FloatArray) -> FloatArray:
            level = problem.value(r) if weight is not None else np.ones_like(r)
            return np.asarray(2 * math.pi * r * level * (r > beyond))

        cuts = [*problem.cuts, beyond]
        moments = hat_moments(nodes, density, cuts)
        far = np.linspace(end, end + 60, 241)
        far = np.unique(np.concatenate([far, [c for c in cuts if end < c < far[-1]]]))
        moments[-1] += hat_moments(far, lambda r: density(r) * np.exp(decay * (end - r)), []).sum()
        return moments

    cost, mass = functional(problem.loss), functional(None)
    tails = np.array([functional(None, q) for q in problem.tail_radii]).reshape(-1, len(nodes))
    try:
        return best_nodes(
            step=problem.step,
            offsets=offsets,
            levels=levels,
            decay=decay,
            log_scale=problem.log_scale(every),
            cost=cost,
            mass=mass,
            bound=bound,
            tail_mass=tails,
            tail_limits=limits,
        )
    except InvalidInput:
        raise InvalidInput(_why_infeasible(problem)) from None


def _why_infeasible(problem: _Problem) -> str:
    """Which tail limit cannot be met, as far as one alone shows it."""
    none = replace(problem, tail_radii=np.empty(0), tail_limits=np.empty(0))
    for q, limit in zip(problem.tail_radii, problem.tail_limits, strict=True):
        threshold = Loss.threshold(f"{float(q) * problem.unit!r} m")
        least = _solve_nodes(
            replace(none, loss=threshold), problem.bound, np.empty(0), 1 - _RESERVE
        ).loss
        if least > limit:
            density = problem.bound / problem.unit**2
            within = "" if math.isinf(density) else f" with density at most {density:.4g} per m²"
            return (
                f"no noise{within} that keeps {problem.ell} has P(|v| > {q * problem.unit:.6g} m)"
                f" <= {limit:g}: the least possible is {least:.6g}; loosen the tail, the bound M"
                " or l"
            )
    return "the tail limits cannot all be met together: loosen one of them, the bound M or l"


def _interpolant(problem: _Problem, solution: NodeSolution, share: float) -> LogLinear:
    """Log-linear through the nodes, closed under the constraints; collinear nodes dropped."""
    g = _closed(problem, solution.log_values, share)
    decay = min(problem.tail_decay(problem.levels_above(1 - share)), share)
    slopes = np.diff(g, append=g[-1] - decay * problem.step)
    bends = np.abs(np.diff(slopes)) > 1e-12 * (1 + np.abs(g[1:]))
    keep = np.concatenate([[True], bends])
    radii = problem.step_m * np.flatnonzero(keep)
    left = g[keep]
    return LogLinear(
        np.append(radii, np.inf), left, np.append(left[1:], -np.inf), decay / problem.unit
    )


def _closed(problem: _Problem, g: FloatArray, share: float) -> FloatArray:
    """The least decreasing majorant of the solver's values that obeys every constraint."""
    levels = problem.levels_above(1 - share)
    offsets, steps = essential_offsets(levels)
    decay = min(problem.tail_decay(levels), share)
    g = np.maximum.accumulate(g[::-1])[::-1].copy()
    for j in range(1, len(g)):
        reach = offsets <= j
        if reach.any():
            g[j] = max(g[j], (g[j - offsets[reach]] - steps[reach]).max())
    for k, level in zip(offsets, steps, strict=True):  # the tail beyond the last node
        inside = np.arange(max(len(g) - k, 0), len(g))
        beyond = inside + k - (len(g) - 1)
        g[-1] = max(g[-1], (g[inside] - level + decay * problem.step * beyond).max())
    return np.maximum.accumulate(g[::-1])[::-1].copy()


def _from_below(problem: _Problem, solution: NodeSolution) -> float:
    """The dual bound of :mod:`whereish.solvers.radial.node_lp`, over all lattices t + j h."""
    step = problem.step * (1 - 2.0**-22)
    levels = problem.levels_below(step)
    offsets, steps = essential_offsets(levels)
    hull = closure(levels)
    nodes = np.asarray(step * np.arange(problem.count), np.float64)
    rings = np.diff(nodes**2) / 2
    implied = 1 / (2 * math.pi * float((np.exp(-hull[1:]) * rings).sum()))
    bound = min(problem.bound, implied) * (1 + 2.0**-40)
    price, prices = solution.mass_price, solution.tail_prices
    if price - prices.sum() > float(problem.value(nodes[-1:])[0]):
        raise SolverError("the nodes do not reach far enough for the lower bound")
    marks = np.array([*problem.cuts, *problem.tail_radii])
    offset = marks % step
    inner = offset[(offset > _SLIVER * step) & (offset < (1 - _SLIVER) * step)]
    slices = 1 if problem.loss.slope is not None else math.ceil(step / _SLICE)
    times = np.unique(np.concatenate([np.linspace(0, step, slices + 1), inner]))
    total = price - float(prices @ problem.tail_limits)
    # Where a mark is next to an end of the slices, f may be off by its jump in between.
    jumps = problem.value(marks + step) + prices.sum()
    total -= float((2 * math.pi * _SLIVER * step * bound * (marks + step) * jumps).sum())
    for a, b in itertools.pairwise(times):
        for t in (a, b):
            f = _minorant(problem, nodes, float(a), float(b), float(t), price, prices)
            value = lattice_value(
                f,
                step=step,
                offsets=offsets,
                levels=steps,
                added=solution.added,
                log_scale=problem.log_scale(levels),
                bound=bound,
            )
            total += (b - a) / 2 * value
    return total


def _minorant(
    problem: _Problem,
    nodes: FloatArray,
    a: float,
    b: float,
    t: float,
    price: float,
    prices: FloatArray,
) -> FloatArray:
    """A function below f on [a, b] + j h and linear there, at t."""
    r, middle = nodes + t, nodes + (a + b) / 2
    if problem.loss.slope is not None:
        slope = problem.loss.slope(middle * problem.unit)
        cost = middle * problem.value(middle) + slope * (r - middle)
    else:
        cost = r * problem.value(nodes + a)
    tails = (middle[:, None] > problem.tail_radii) @ prices if len(prices) else 0.0
    f = 2 * math.pi * (cost - price * r + tails * r)
    return np.asarray(f - 2.0**-44 * 2 * math.pi * (np.abs(cost) + abs(price) * r))


def _disk(ell: Distinguishability, loss: Loss, bound: float, tail: Tail) -> RadialOptimum:
    """A single point has nothing to hide: the uniform disk of density M is optimal.

    No density below M puts more mass within any radius (the bathtub principle).
    """
    if math.isinf(bound):
        raise InvalidInput(
            "where l promises nothing the least loss is not attained (it shrinks to no noise at"
            " all): give a bound M on the density"
        )
    radius = 1 / math.sqrt(math.pi * bound)
    radial = LogLinear(np.array([0.0, radius]), np.zeros(1), np.zeros(1))
    for q, limit in tail:
        if radial.survival(q) > limit:
            raise InvalidInput(
                f"no noise with density at most {bound:.4g} per m² has P(|v| > {q:.6g} m) <="
                f" <= {limit:g}: the least possible is {float(radial.survival(q)):.6g}"
            )
    reached = radial.expectation(loss.value, cuts=loss.cuts)
    return RadialOptimum(radial, reached, reached, largest_radial_ratio(radial, ell.arrays))
