"""Pricing: whether an absent output could lower the cost of the programme.

Given duals mu for the row sums, an absent output z can help only if some
d-private column k has negative reduced cost (c_z - mu) . k.  Over the cone of
d-private columns, normalised by w . k = 1,

    v_z = min (c_z - mu) . k   subject to  G k >= 0,  w . k = 1,

and for any y >= 0, v_z >= min_x ((c_z - mu - G' y)_x / w_x).  If v_z >= -t for
all absent outputs, lowering mu to mu - t w makes it feasible for the whole
dual programme, so the bound sum(mu) of the present outputs becomes
sum(mu) - t * sum(w) for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    Part,
    SharedRows,
    corrected_direction,
)
from whereish.solvers.optimal.barrier.entering import near_active_pairs
from whereish.solvers.optimal.barrier.factors import OutputFactors
from whereish.solvers.optimal.barrier.rows import RowLists, Rows, feasible_multipliers
from whereish.solvers.optimal.interior_point import Candidate
from whereish.threads import Workers

__all__ = ["Pricer", "PricingResult"]

_MOST_ITERATIONS = 60
_MOST_ROUNDS = 8


@dataclass(frozen=True)
class PricingResult:
    """Outputs that can help; if there are none, how far mu must be lowered."""

    candidates: list[Candidate]
    shortfall: float


@dataclass(frozen=True)
class _Column:
    lower: float
    k: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class _Proof:
    """G' y of the multipliers that excluded an output, and what rounding may have added to it."""

    pulled: FloatArray
    rounding: FloatArray


class Pricer:
    """Prices absent outputs, and remembers the proofs that excluded them."""

    def __init__(
        self,
        cost: FloatArray,
        lists: RowLists,
        weight: FloatArray,
        team: Workers | None = None,
    ) -> None:
        """`team` are the threads that share the work; None is the caller's alone."""
        self.team = team or Workers()
        self.cost = cost
        self.lists = lists
        self.weight = weight
        self._total = math.nextafter(math.fsum(weight), math.inf)
        self._proofs: dict[int, _Proof] = {}

    def price(self, mu: FloatArray, absent: Iterable[int], tolerance: float) -> PricingResult:
        """Price the `absent` outputs to within `tolerance`, in units of cost."""

        def price_one(output: int) -> Candidate | float:
            proof = self._proofs.get(output)
            if proof is not None:
                lower = self._shown(output, mu, proof)
                if lower >= -tolerance:
                    return lower
            return self._price_one(output, mu, tolerance)

        found = self.team.map(price_one, list(absent))
        candidates = [one for one in found if isinstance(one, Candidate)]
        lacks = [-one for one in found if not isinstance(one, Candidate)]
        return PricingResult(candidates, max([0.0, *lacks]) * self._total)

    def _shown(self, output: int, mu: FloatArray, proof: _Proof) -> float:
        """min_x (c - mu - G' y)_x / w_x, lowered by what rounding may have added."""
        cost = self.cost[output]
        off = proof.rounding + 8 * np.finfo(float).eps * (cost + np.abs(mu))
        lower = float(((cost - mu - proof.pulled - off) / self.weight).min())
        return lower - 8 * float(np.finfo(float).eps) * abs(lower)

    def _price_one(self, output: int, mu: FloatArray, tolerance: float) -> Candidate | float:
        """A candidate, or the lower bound that excludes the output."""
        reduced = self.cost[output] - mu
        closeness = self.lists.closeness
        for _ in range(_MOST_ROUNDS):
            rows = self.lists.rows(np.array([output]))
            found = _cheapest_column(reduced, self.weight, rows, 0.1 * tolerance)
            if found.lower >= -tolerance:
                n = reduced.size
                proof = _Proof(rows.pull(found.y, n)[0], rows.rounding(found.y, n)[0])
                self._proofs[output] = proof
                return self._shown(output, mu, proof)
            private = (closeness * found.k).max(axis=1)
            if reduced @ private < -tolerance * (self.weight @ private):
                break
            # The column leans on rows that it does not have: add them and look again.
            keys, _ = near_active_pairs(found.k[None, :], closeness, 1e-3, 2)
            new = self.lists.missing(output, keys)
            if new.size == 0:
                break
            self.lists.add(output, new)
        return Candidate(output, found.k, found.y)


def _cheapest_column(
    reduced: FloatArray, weight: FloatArray, rows: Rows, tolerance: float
) -> _Column:
    """Interior point for min reduced . k over G k >= 0, weight . k = 1, on the rows at hand."""
    n = reduced.size
    factors = OutputFactors(1, n)
    k = np.full((1, n), 1.0 / weight.sum())
    ratio = reduced / weight
    tau = min(float(ratio.min()), 0.0) - 0.3 * float(np.abs(ratio).mean()) - 1e-12
    y = feasible_multipliers(reduced - tau * weight, rows)
    lower, best_y = -np.inf, y
    for _ in range(_MOST_ITERATIONS):
        pulled = rows.pull(y, n)
        bound = float(((reduced - pulled[0]) / weight).min())
        if bound > lower:
            lower, best_y = bound, y
        upper = float(reduced @ k[0])
        decided = lower >= 0 or (upper < 0 and upper - lower < 0.5 * abs(upper))
        if decided or upper - lower < tolerance:
            break
        slack = rows.slack(k)
        move = corrected_direction(
            SharedRows.alone(rows),
            AtRows(slack, y, np.zeros(y.size)),
            system=_OneOutput(factors, rows, y / slack, weight=weight, k=k[0]),
            dual_residual=(reduced - tau * weight)[None, :] - pulled,
            corrections=2,
        )
        k = k + 0.95 * move.steps.primal * move.dk
        y = y + 0.95 * move.steps.dual * move.moves.dy
        tau += 0.95 * move.steps.dual * float(move.dmu[0])
    return _Column(lower, k[0], best_y)


class _OneOutput:
    """The Newton system of one column with weight . k = 1, whose multiplier is one number."""

    def __init__(
        self,
        factors: OutputFactors,
        rows: Rows,
        barrier: FloatArray,
        *,
        weight: FloatArray,
        k: FloatArray,
    ) -> None:
        factors.factor_alone(rows, barrier, (0, 1))
        self._factors, self._weight = factors, weight
        self._along = weight[None, :].copy()
        factors.solve(self._along, (0, 1))
        self._missing = 1.0 - float(weight @ k)

    def free(self, q: FloatArray, part: Part) -> FloatArray:
        return self._factors.solve(q, part)

    def couple(self, sums: FloatArray) -> FloatArray:
        curvature = self._weight @ self._along[0]
        return np.array([(self._missing - self._weight @ sums) / curvature])

    def follow(self, dmu: FloatArray, dk: FloatArray, part: Part) -> None:
        dk += dmu[0] * self._along
