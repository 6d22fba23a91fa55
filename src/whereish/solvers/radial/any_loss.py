"""The optimal radial for a loss that may also fall with the distance.

Circles lose nothing for any loss of the distance (Theorem 5), so radials suffice; but they need
not decrease, and the constraints R(r) <= exp(l(|r - r'|)) R(r') count in both directions.  As in
:mod:`whereish.solvers.radial.node_lp`, with c = 2 pi r L(r) and w = 2 pi r:

*From above*: R is log-linear between nodes j h, and its values obey one pair of constraints for
each offset that chains do not imply.  The solved values are closed upwards,
x_j <- max_i x_i exp(-l^(|i - j| h)) with l^ the largest subadditive function below l, and the
interpolant is certified over all pairs of radii.

*From below*: on each lattice {t + j h} the values of any feasible R obey the same constraints, and
each is at most b_j, since R(r) times the integral of w(s) exp(-l^(|r - s|)) is at most 1 (and at
most M).  For any multipliers lambda, tau >= 0 and any multipliers y >= 0 of the constraints,

    loss >= lambda - sum tau_q rho_q + integral over t in [0, h] of sum_j min(f_j + (A'y)_j, 0) b_j,

f = c - lambda w + sum tau_q w [r > q], where f is replaced on slices of t by something smaller.
Beyond the nodes f is not negative.  No solver's tolerance enters: any y will do.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.node_lp import closure, hat_moments
from whereish.solvers.radial.optimum import RadialOptimum, Tail, checked_decay
from whereish.solvers.radial.programme import least_cost
from whereish.solvers.radial.ratio import largest_radial_ratio
from whereish.solvers.radial.steps import aligned_step, jumps_of
from whereish.threads import one_blas_thread

__all__ = ["optimal_radial_any"]

_STEP = 0.04  # of 1/decay
_PER_JUMP = 24  # steps to the first jump of l
_DEPTH = 22.0
_MOST_NODES = 2500
_RESERVE = 1e-9
_SLICES = 16
_SHRINK = 1 - 2.0**-22  # of the step below, so that multiples fall short of jumps of l
_ROUND = 2.0**-44
_PRICES = (1.0, 0.97)
_ENOUGH = 0.99
_ROUNDING = 1e-9  # of the quadrature of the loss reached


@dataclass(frozen=True)
class _Nodes:
    """The nodes, the constraints between them, and what is minimised; in metres."""

    step: float
    count: int
    levels: FloatArray  # l at multiples of the step
    hull: FloatArray

    @property
    def radii(self) -> FloatArray:
        return np.asarray(self.step * np.arange(self.count), np.float64)

    @classmethod
    def of(cls, step: float, count: int, levels: FloatArray) -> _Nodes:
        return cls(step, count, levels, closure(levels))

    def rows(self, slope: float | None = None) -> csr_array:
        """x_i <= e^{l(kh)} x_{i+k} and x_{i+k} <= e^{l(kh)} x_i, unless chains imply them.

        With a slope, also against the tail x_N e^{-slope q h} beyond the last node N; the other
        direction follows, since l does not decrease.
        """
        i, j, factor = [], [], []
        for k in range(1, self.count):
            level = self.levels[k]
            half = k // 2
            chained = math.inf
            if k > 1:
                parts = self.hull[1 : half + 1] + self.hull[k - 1 : k - half - 1 : -1]
                chained = float(parts.min())
            if not math.isfinite(level) or level >= chained * (1 - 1e-12):
                continue
            start = np.arange(self.count - k)
            i += [start, start + k]
            j += [start + k, start]
            factor.append(np.full(2 * len(start), math.exp(level)))
            if slope is not None:
                late = np.arange(max(self.count - k, 0), self.count - 1)
                beyond = late + k - (self.count - 1)
                i.append(late)
                j.append(np.full(len(late), self.count - 1))
                factor.append(np.exp(level - slope * self.step * beyond))
        first, second = np.concatenate(i), np.concatenate(j)
        scale = np.concatenate(factor)
        index = np.arange(len(first))
        data = np.concatenate([np.ones(len(first)), -scale])
        at = (np.tile(index, 2), np.concatenate([first, second]))
        return csr_array(coo_array((data, at), (len(first), self.count)))

    def largest(self, bound: float) -> FloatArray:
        """b_j: what privacy and a mass of at most 1 leave for R between node j and the next.

        Of radii r in step j and s in step m the distance is at most (|j - m| + 1) h.
        """
        weight = 2 * math.pi * self.radii * self.step
        spread = np.exp(-np.append(self.hull[1:], self.hull[-1]))  # the farther end of each step
        total = np.convolve(weight, spread)[: self.count]
        beyond = np.convolve(weight[::-1], spread)[: self.count][::-1]
        mass = total + beyond - weight * spread[0]
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(1 / mass, bound) * (1 + 2.0**-40))


@one_blas_thread()
def optimal_radial_any(
    ell: Distinguishability, loss: Loss, *, bound: float = math.inf, tail: Tail = ()
) -> RadialOptimum:
    """As :func:`~whereish.solvers.radial.optimum.optimal_radial`, for any loss."""
    decay = checked_decay(ell, bound, tail)
    if math.isinf(decay):
        raise InvalidInput(
            "where l promises nothing between different points a loss that falls has its least"
            " value at the least loss itself: give an l that is finite at some distance"
        )
    nodes = _nodes(ell, loss, decay, tail, bound)
    share = 1 - _RESERVE
    limits = np.array([limit for _, limit in tail])
    tightened, cap = limits.copy(), bound
    for _ in range(12):
        scaled = _Nodes.of(nodes.step, nodes.count, nodes.levels * share)
        slope = min(decay, _slope(scaled)) * share
        x, prices = _solved(scaled, loss, cap, tail, tightened, slope)
        radial = _interpolant(scaled, x, slope)
        ratio = largest_radial_ratio(radial, ell.arrays)
        over = np.array([float(radial.survival(q)) for q, _ in tail]) / np.maximum(limits, 1e-300)
        peak = radial.peak / bound
        if ratio.upper <= 1 and (over <= 1).all() and peak <= 1:
            reached = radial.expectation(loss.value, cuts=loss.cuts)
            below = _from_below(ell, nodes, loss, bound, tail, prices, reached)
            if below > reached * (1 + _ROUNDING):
                raise SolverError("the bound from below is above the loss reached: one is wrong")
            return RadialOptimum(radial, reached, min(below, reached), ratio)
        share /= max(ratio.upper * (1 + _RESERVE), 1.0)
        tightened = tightened / np.where(over > 1, over * (1 + 1e-6), 1.0)
        cap /= peak * (1 + 1e-9) if peak > 1 else 1.0
        if not share > 0.5:
            break
    raise SolverError(f"no piecewise log-linear radial was found that keeps {ell} and its limits")


def _nodes(
    ell: Distinguishability,
    loss: Loss,
    decay: float,
    tail: Tail,
    bound: float,
) -> _Nodes:
    flat = 0.0 if math.isinf(bound) else 1 / math.sqrt(math.pi * bound)
    reach = max([0.0, *loss.cuts, *(q for q, _ in tail)]) + flat + _DEPTH / decay
    marks = jumps_of(ell)
    wanted = min([_STEP / decay, *(mark / _PER_JUMP for mark in marks)])
    wanted = max(wanted, reach / _MOST_NODES)
    step = aligned_step(wanted, marks or ell.starts[1:])
    count = math.ceil(reach / step) + 1
    d = step * np.arange(count)
    levels = ell(d)
    for mark in marks:  # the least value on the step that a jump divides
        k = int(np.searchsorted(d, mark))
        if k < count and d[k] > mark:
            levels[k] = min(levels[k], float(ell(mark)))
    return _Nodes.of(step, count, np.asarray(levels))


def _slope(nodes: _Nodes) -> float:
    """How fast the tail may fall under the levels."""
    finite = np.isfinite(nodes.levels[1:])
    return float((nodes.levels[1:][finite] / nodes.radii[1:][finite]).min()) * (1 - 1e-12)


def _functional(nodes: _Nodes, worth: Any, cuts: list[float], slope: float) -> FloatArray:
    """∫ 2 pi r worth(r) hat_j dr, the last hat with its tail."""
    r, end = nodes.radii, float(nodes.radii[-1])

    def density(at: FloatArray) -> FloatArray:
        return np.asarray(2 * math.pi * at * worth(at))

    moments = hat_moments(r, density, cuts)
    far = np.linspace(end, end + 60 / slope, 241)
    moments[-1] += hat_moments(far, lambda at: density(at) * np.exp(slope * (end - at)), []).sum()
    return moments


def _solved(
    nodes: _Nodes,
    loss: Loss,
    bound: float,
    tail: Tail,
    limits: FloatArray,
    slope: float,
) -> tuple[FloatArray, tuple[float, FloatArray]]:
    """Values at the nodes, and the prices of the mass and of the tails."""
    upper = nodes.largest(bound)
    cuts = list(loss.cuts)
    cost = _functional(nodes, loss.value, cuts, slope)
    mass = _functional(nodes, np.ones_like, [], slope)
    tails = np.array(
        [_functional(nodes, lambda r, q=q: 1.0 * (r > q), [q], slope) for q, _ in tail]
    ).reshape(-1, nodes.count)
    matrix = nodes.rows(slope)
    found = _linear_programme(cost * upper, matrix, upper, mass * upper, tails * upper, limits)
    if found.status == 2:
        raise InvalidInput(_why_empty(nodes, bound, tail, slope))
    if found.status != 0:
        raise SolverError(f"the radial linear programme failed: {found.message}")
    count = len(limits)
    prices = np.maximum(-found.ineqlin.marginals[len(found.ineqlin.marginals) - count :], 0.0)
    return found.x * upper, (float(found.eqlin.marginals[0]), prices if count else np.empty(0))


def _linear_programme(
    cost: FloatArray,
    matrix: csr_array,
    upper: FloatArray,
    mass: FloatArray | None,
    tails: FloatArray,
    limits: FloatArray,
) -> Any:
    """linprog on values in shares of their upper bounds."""
    scaled: Any = matrix.multiply(upper[None]).tocsr()
    sizes = np.abs(scaled).max(axis=1).toarray().ravel()
    scaled = csr_array(scaled.multiply((1 / sizes)[:, None]))
    found = least_cost(cost, scaled, np.ones(len(cost)), mass=mass, tails=(tails, limits))
    if found.status == 0:
        found.ineqlin.marginals[: len(sizes)] /= sizes
    return found


def _why_empty(nodes: _Nodes, bound: float, tail: Tail, slope: float) -> str:
    """Which limit leaves Omega(M, rho) empty, as far as one alone shows it."""
    within = "" if math.isinf(bound) else f" with density at most {bound:.4g} per m²"
    upper = nodes.largest(bound)
    mass = _functional(nodes, np.ones_like, [], slope)
    for q, limit in tail:
        beyond = _functional(nodes, lambda r, q=q: 1.0 * (r > q), [q], slope)
        least = _linear_programme(
            beyond * upper, nodes.rows(slope), upper, mass * upper, np.empty((0, 0)), np.empty(0)
        )
        if least.status == 0:
            value = float(beyond @ (least.x * upper))
            if value > limit:
                return (
                    f"no noise{within} that keeps l has P(|v| > {q:.6g} m) <= {limit:g}: the least"
                    f" possible is {value:.6g}; loosen the tail, the bound M or l"
                )
    return "the bound M and the tail cannot all be met together: loosen one of them, or l"


def _interpolant(nodes: _Nodes, x: FloatArray, slope: float) -> LogLinear:
    """Log-linear through the nodes, closed under the constraints."""
    g = np.log(np.maximum(x, x.max() * 1e-200))
    offsets = np.abs(np.arange(nodes.count)[:, None] - np.arange(nodes.count)[None])
    g = (g[None] - nodes.hull[offsets]).max(axis=1)
    for k in np.flatnonzero(np.isfinite(nodes.levels))[1:]:  # the tail beyond the last node
        late = np.arange(max(nodes.count - k, 0), nodes.count)
        beyond = late + k - (nodes.count - 1)
        g[-1] = max(g[-1], (g[late] - nodes.levels[k] + slope * nodes.step * beyond).max())
    bends = np.abs(np.diff(np.diff(g, append=g[-1] - slope * nodes.step))) > 1e-12 * (
        1 + np.abs(g[1:])
    )
    keep = np.concatenate([[True], bends])
    left = g[keep]
    return LogLinear(
        np.append(nodes.radii[keep], np.inf), left, np.append(left[1:], -np.inf), slope
    )


def _from_below(
    ell: Distinguishability,
    nodes: _Nodes,
    loss: Loss,
    bound: float,
    tail: Tail,
    prices: tuple[float, FloatArray],
    reached: float,
) -> float:
    """The dual bound over all lattices t + j h, on slices of t."""
    step = nodes.step * _SHRINK
    below = _Nodes.of(step, nodes.count, ell(step * np.arange(nodes.count)) * (1 + 2.0**-48))
    price, rates = prices
    radii = np.array([q for q, _ in tail])
    limits = np.array([limit for _, limit in tail])
    end = float(loss.value(below.radii[-1:])[0]) + float(rates.sum())
    if price > end or max([0.0, *loss.cuts, *radii.tolist()]) > below.radii[-1]:
        raise SolverError("the nodes do not reach far enough for the lower bound")
    marks = np.array([*loss.cuts, *radii.tolist()]) % step
    times = np.unique(np.concatenate([np.linspace(0, step, _SLICES + 1), marks]))
    times = times[np.append(True, np.diff(times) > 1e-12 * step)]
    times[-1] = step
    upper, matrix = below.largest(bound), below.rows()
    best = 0.0  # no loss is negative
    for factor in _PRICES:  # any price will do; a smaller one may bound more
        lam = price * factor
        total = lam - float(rates @ limits)
        for a, b in itertools.pairwise(times.tolist()):
            f = _smaller(loss, below, a, b, lam, radii, rates)
            total += (b - a) * _box_minimum(f, matrix, upper)
        best = max(best, total)
        if best >= _ENOUGH * reached:
            break
    return best


def _smaller(
    loss: Loss,
    nodes: _Nodes,
    a: float,
    b: float,
    price: float,
    radii: FloatArray,
    rates: FloatArray,
) -> FloatArray:
    """Below f on [a, b] + j h: L is monotone there, and no tail radius lies inside."""
    inside = (b - a) * 1e-9
    low, high = nodes.radii + a + inside, nodes.radii + b - inside
    least = np.minimum(loss.value(low), loss.value(high)) - price
    least = least + ((low[:, None] > radii) @ rates if len(rates) else 0.0)
    worth = 2 * math.pi * np.where(least >= 0, low, high) * least
    return np.asarray(worth - _ROUND * (np.abs(worth) + 2 * math.pi * high * abs(price)))


def _box_minimum(f: FloatArray, matrix: csr_array, upper: FloatArray) -> float:
    """A proven lower bound of min f x over 0 <= x <= upper that obey the constraints."""
    found = _linear_programme(f * upper, matrix, upper, None, np.empty((0, 0)), np.empty(0))
    y = np.zeros(matrix.shape[0])
    if found.status == 0:
        y = np.maximum(-found.ineqlin.marginals, 0.0)
    sizes: Any = abs(matrix)
    moved: NDArray[Any] = matrix.T @ y
    spread = np.abs(f) + sizes.T @ y
    residual = f + moved - 2.0**-46 * spread
    return float(np.minimum(residual, 0.0) @ upper)
