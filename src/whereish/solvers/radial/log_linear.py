"""Radial laws: piecewise log-linear radials R, their masses and expectations.

Circular noise has density F(v) = R(|v|), so that the distance has the law
2 pi r R(r) dr.  Here ln R is linear on each piece [edge_k, edge_k+1), from left_k to
right_k, with jumps allowed between pieces; a last, unbounded piece falls with `slope`.
With x = right - left and w the width, a piece that starts at a has

    ∫ r R dr = e^left w (a phi(x) + w psi(x)),
    phi(x) = ∫ e^{xt} dt = (e^x - 1) / x,   psi(x) = ∫ t e^{xt} dt  over [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput

__all__ = ["LogLinear", "from_callable", "from_table"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_SERIES = np.array([1 / (math.factorial(k) * (k + 2)) for k in range(18)])
_MOST_NODES = 4096


@dataclass(frozen=True, eq=False)
class LogLinear:
    """A radial R, up to its norm: arrays of n + 1 edges and n values of ln R at either end."""

    edges: FloatArray
    """0 = edge_0 < edge_1 < ...; the last may be infinite, for a tail exp(-slope r)."""
    left: FloatArray
    """ln R just after the first edge of each piece, in any scale,"""
    right: FloatArray
    """and just before its last, in the same; that of an unbounded piece is ignored."""
    slope: float = 0.0
    """Decay of the unbounded piece, per metre."""

    def __repr__(self) -> str:
        return f"LogLinear({len(self.left)} pieces up to {self.edges[-1]:.6g} m)"

    def __post_init__(self) -> None:
        edges, left, right = (np.array(a, float) for a in (self.edges, self.left, self.right))
        if edges.ndim != 1 or len(edges) < 2 or not len(left) == len(right) == len(edges) - 1:
            raise InvalidInput("a radial must have one edge more than it has pieces, at least two")
        if edges[0] != 0 or not np.isfinite(edges[:-1]).all() or not (np.diff(edges) > 0).all():
            raise InvalidInput("the edges of a radial must start at 0 and increase")
        if math.isinf(edges[-1]):
            right[-1] = -math.inf
            if not (math.isfinite(self.slope) and self.slope > 0):
                raise InvalidInput(
                    "the radial does not integrate over the plane: beyond its last edge it must"
                    f" fall exponentially; got the slope {self.slope:g} per metre"
                )
        bounded = right[:-1] if math.isinf(edges[-1]) else right
        if not (np.isfinite(left).all() and np.isfinite(bounded).all()):
            raise InvalidInput("a radial must be finite and positive on its support")
        top = max(left.max(), bounded.max(initial=-math.inf))
        if top != left[0]:  # so that the largest value is 1; a second time changes nothing
            left, right = left - top, right - top
        elif top != 0:
            left, right = left - left[0], right - left[0]
        for name, array in (("edges", edges), ("left", left), ("right", right)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def bounded(self) -> bool:
        """Whether the radial is zero beyond its last edge."""
        return math.isfinite(self.edges[-1])

    @cached_property
    def _masses(self) -> FloatArray:
        """∫ r R dr over each piece, unnormalised."""
        return self._mass(self.edges[:-1], np.arange(len(self.left)))

    @cached_property
    def _beyond(self) -> FloatArray:
        """∫ r R dr from each edge to infinity, unnormalised."""
        return np.append(np.cumsum(self._masses[::-1])[::-1], 0.0)

    @property
    def log_norm(self) -> float:
        """ln ∫ R over the plane, in the scale in which the largest R is 1."""
        return math.log(2 * math.pi * self._beyond[0])

    @property
    def peak(self) -> float:
        """The largest density, per square metre."""
        return math.exp(-self.log_norm)

    def _pieces(self, r: FloatArray) -> NDArray[np.intp]:
        index = np.searchsorted(self.edges, r, side="right") - 1
        return np.clip(index, 0, len(self.left) - 1)

    def _shape(self, r: FloatArray, piece: NDArray[np.intp]) -> FloatArray:
        """ln R at r in the scale of the largest value, by the formula of `piece`."""
        start, end = self.edges[piece], self.edges[piece + 1]
        with np.errstate(invalid="ignore"):
            inner = (self.right[piece] - self.left[piece]) * ((r - start) / (end - start))
        tail = -self.slope * (r - start)
        return np.asarray(self.left[piece] + np.where(np.isinf(end), tail, inner))

    def _mass(self, start: FloatArray, piece: NDArray[np.intp]) -> FloatArray:
        """∫ r R dr from `start` to the end of `piece`."""
        end = self.edges[piece + 1]
        value = self._shape(start, piece)
        finite = np.isfinite(end)
        width = np.where(finite, end - start, 1.0)
        x = np.where(finite, self.right[piece] - value, 0.0)
        inner = np.exp(value) * width * (start * _phi(x) + width * _psi(x))
        if self.bounded:
            return np.asarray(inner)
        tail = np.exp(value) * (start / self.slope + 1 / self.slope**2)
        return np.asarray(np.where(finite, inner, tail))

    def log_density(self, r: ArrayLike) -> FloatArray:
        """ln R(r), per square metre, normalised; minus infinity outside the support."""
        at = np.asarray(r, float)
        values = self._shape(at, self._pieces(at)) - self.log_norm
        return np.asarray(np.where(at < self.edges[-1], values, -np.inf))

    def survival(self, r: ArrayLike) -> FloatArray:
        """P(|v| > r), accurate in the tail."""
        at = np.clip(np.asarray(r, float), 0.0, self.edges[-1])
        piece = self._pieces(at)
        return np.asarray((self._mass(at, piece) + self._beyond[piece + 1]) / self._beyond[0])

    def quantile(self, chance: float) -> float:
        """The radius with P(|v| <= r) = chance."""
        beyond = (1.0 - chance) * self._beyond[0]
        piece = int(np.searchsorted(-self._beyond, -beyond, side="right")) - 1
        piece = min(max(piece, 0), len(self.left) - 1)
        low, high = self.edges[piece], self.edges[piece + 1]
        if math.isinf(high):
            high = low + 1 / self.slope
            while self.survival(high) > 1.0 - chance:
                high += high - low
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if self.survival(middle) > 1.0 - chance else (low, middle)
        return float(high)

    def expectation(
        self, loss: Callable[[FloatArray], ArrayLike], *, cuts: Sequence[float] = ()
    ) -> float:
        """∫ loss(r) 2 pi r R(r) dr, by Gauss-Legendre on every piece.

        `cuts` are radii where the loss jumps or bends.  Pieces are split so that R falls
        by at most e on each; the tail is followed until e^-60.
        """
        edges = self._fine_edges(cuts)
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        r = middle[:, None] + half[:, None] * _NODES
        piece = self._pieces(middle)[:, None]
        weights = half[:, None] * _WEIGHTS * r * np.exp(self._shape(r, piece))
        values = np.asarray(loss(r), float)
        if not np.isfinite(values).all():
            raise InvalidInput("the loss must be a finite number at every radius")
        return float((weights * values).sum() / self._beyond[0])

    def _fine_edges(self, cuts: Sequence[float]) -> FloatArray:
        ends = self.edges.copy()
        if not self.bounded:
            ends[-1] = ends[-2] + 60 / self.slope
        drops = np.abs(self.right - self.left)
        drops[~np.isfinite(drops)] = 60.0
        parts = [
            np.linspace(a, b, max(math.ceil(min(drop, 64.0)), 1) + 1)
            for a, b, drop in zip(ends[:-1], ends[1:], drops, strict=True)
        ]
        inner = [cut for cut in cuts if 0 < cut < ends[-1]]
        return np.unique(np.concatenate([*parts, inner]))


def from_table(radii: ArrayLike, densities: ArrayLike, *, slope: float | None = None) -> LogLinear:
    """Log-linear interpolation of positive values at radii from 0, in any common scale.

    Beyond the last radius it falls with `slope` per metre, by default that of the last piece.
    """
    r, density = np.array(radii, float), np.array(densities, float)
    if r.ndim != 1 or r.shape != density.shape or len(r) < 2 or r[0] != 0:
        raise InvalidInput(
            "a table radial must be two rows of equal length >= 2, the first radius 0; got"
            f" shapes {r.shape} and {density.shape}"
        )
    if not np.isfinite(density).all() or (density <= 0).any():
        raise InvalidInput("the values of a table radial must be finite and > 0")
    logs = np.log(density)
    if slope is None:
        slope = float(logs[-2] - logs[-1]) / float(r[-1] - r[-2])
    return LogLinear(np.append(r, np.inf), logs, np.append(logs[1:], -np.inf), slope)


def from_callable(
    radial: Callable[[float], float], *, reach: float, tolerance: float = 1e-4
) -> LogLinear:
    """Log-linear interpolation of a callable, within `tolerance` in ln R at the midpoints.

    Beyond `reach` metres the last slope continues.  The interpolant is the law: what is
    certified and sampled is it, not the callable.
    """

    def log_at(r: float) -> float:
        value = float(radial(r))
        if not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"a radial must be finite and > 0 up to its reach; got {value!r}")
        return math.log(value)

    if not (math.isfinite(reach) and reach > 0):
        raise InvalidInput(f"reach must be a finite number of metres > 0; got {reach!r}")
    nodes = {r: log_at(r) for r in np.linspace(0.0, reach, 17).tolist()}
    open_pieces = list(zip(list(nodes)[:-1], list(nodes)[1:], strict=True))
    while open_pieces:
        a, b = open_pieces.pop()
        middle = (a + b) / 2
        nodes[middle] = log_at(middle)
        if len(nodes) > _MOST_NODES or b - a < 1e-9 * reach:
            raise InvalidInput(
                f"the radial must be within {tolerance:g} in ln R of at most {_MOST_NODES} linear"
                " pieces; it is not (does it jump?): give it as a table (radii, values) or as a"
                " LogLinear"
            )
        if abs(nodes[middle] - (nodes[a] + nodes[b]) / 2) > tolerance:
            open_pieces += [(a, middle), (middle, b)]
    radii = np.array(sorted(nodes))
    logs = np.array([nodes[r] for r in radii])
    slope = float(logs[-2] - logs[-1]) / float(radii[-1] - radii[-2])
    return LogLinear(np.append(radii, np.inf), logs, np.append(logs[1:], -np.inf), slope)


def _phi(x: FloatArray) -> FloatArray:
    safe = np.where(x == 0, 1.0, x)
    return np.asarray(np.where(x == 0, 1.0, np.expm1(safe) / safe))


def _psi(x: FloatArray) -> FloatArray:
    small = np.abs(x) < 1
    near, far = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series = np.polynomial.polynomial.polyval(near, _SERIES)
    return np.asarray(np.where(small, series, (np.exp(far) * (far - 1) + 1) / far**2))
