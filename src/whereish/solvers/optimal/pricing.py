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
from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.column import Columns, Lapack, price_outputs
from whereish.solvers.optimal.barrier.directions import shares
from whereish.solvers.optimal.barrier.entering import near_active_pairs
from whereish.solvers.optimal.barrier.factors import NO_FACTOR
from whereish.solvers.optimal.barrier.rows import RowLists, Rows
from whereish.solvers.optimal.interior_point import Candidate
from whereish.threads import Workers

__all__ = ["Pricer", "PricingResult"]

_MOST_ROUNDS = 8
_PARTS = 32  # of the outputs, each for one thread at a time
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class PricingResult:
    """Outputs that can help; if there are none, how far mu must be lowered."""

    candidates: list[Candidate]
    shortfall: float


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
        absent = list(absent)
        candidates: list[Candidate] = []
        left = [z for z in absent if not self._is_excluded(z, mu, tolerance)]
        for turn in range(_MOST_ROUNDS):
            if not left:
                break
            found, left = self._round(mu, left, tolerance, last=turn == _MOST_ROUNDS - 1)
            candidates += found
        candidates.sort(key=lambda one: one.output)
        out = {one.output for one in candidates}
        lacks = [-self._shown(z, mu, self._proofs[z]) for z in absent if z not in out]
        return PricingResult(candidates, max([0.0, *lacks]) * self._total)

    def _is_excluded(self, output: int, mu: FloatArray, tolerance: float) -> bool:
        """Whether an earlier proof still holds."""
        proof = self._proofs.get(output)
        return proof is not None and self._shown(output, mu, proof) >= -tolerance

    def _shown(self, output: int, mu: FloatArray, proof: _Proof) -> float:
        """min_x (c - mu - G' y)_x / w_x, lowered by what rounding may have added."""
        cost = self.cost[output]
        off = proof.rounding + 8 * _EPS * (cost + np.abs(mu))
        lower = float(((cost - mu - proof.pulled - off) / self.weight).min())
        return lower - 8 * _EPS * abs(lower)

    def _round(
        self, mu: FloatArray, outputs: list[int], tolerance: float, *, last: bool
    ) -> tuple[list[Candidate], list[int]]:
        """Candidates among the outputs, and those that lean on rows which they have only now."""
        rows = self.lists.rows(np.array(outputs))
        columns = self._columns(mu, outputs, rows, tolerance)
        excluded = columns.lower >= -tolerance
        pulled, rounding = rows.pull(columns.y, mu.size), rows.rounding(columns.y, mu.size)
        candidates, left = [], []
        for at, z in enumerate(outputs):
            if excluded[at]:
                self._proofs[z] = _Proof(pulled[at], rounding[at])
            elif columns.private[at] or last or not self._leans(z, columns.k[at]):
                y = columns.y[rows.start[at] : rows.start[at + 1]]
                candidates.append(Candidate(z, columns.k[at], y))
            else:
                left.append(z)
        return candidates, left

    def _columns(self, mu: FloatArray, outputs: list[int], rows: Rows, tolerance: float) -> Columns:
        """The cheapest columns on the rows at hand."""
        count, n = len(outputs), mu.size
        lapack = Lapack(address("dpotrf"), address("dtpsv"), address("dgesv"))
        cost, closeness = self.cost[outputs], self.lists.closeness
        lower, k, private = np.empty(count), np.empty((count, n)), np.empty(count, np.bool_)
        columns = Columns(lower, k, np.empty(rows.size), private)

        def price(some: tuple[int, int]) -> bool:
            return price_outputs(
                lapack, cost, mu, self.weight, closeness, *rows, tolerance, some, columns
            )

        if not all(self.team.map(price, shares(count, _PARTS))):
            raise SolverError(NO_FACTOR)
        return columns

    def _leans(self, output: int, k: FloatArray) -> bool:
        """Whether a column leans on rows that its output does not have; they are added."""
        keys, _ = near_active_pairs(k[None, :], self.lists.closeness, 1e-3, 2)
        new = self.lists.missing(output, keys)
        if new.size:
            self.lists.add(output, new)
        return bool(new.size)
