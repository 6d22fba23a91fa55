"""Narrow maps on places, with a prior: the law of landmarks beside the eikonal law.

The table (:mod:`~whereish.solvers.tables.between`) takes seconds where the rounds of the eikonal
law (:mod:`~whereish.solvers.eikonal.settling`) take minutes on fine maps, so it comes first.  Then
the law from which these rounds start is judged: it keeps its edges, not yet the slopes between
nodes, and what lowers slopes takes error.  (On 83 narrow maps that seeds drew the moved reports of
the law after the rounds had 0.976 to 1.33 times the error of those before, 1.02 in the median.)
Where the table is better than that
law by more than rounds have ever gained, it is taken and no round is made; else both laws are
finished and compared.

Laws are judged at their nodes, by the same few hundred of them, with a quarter of every cell's
prior at each of its corners.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.eikonal.between import law_between
from whereish.solvers.eikonal.cells import (
    BuiltLaw,
    Comparison,
    RoundProgress,
    Search,
    simple_errors,
)
from whereish.solvers.eikonal.squared_error import Judged, judged, judged_table
from whereish.solvers.splines.lattice import lattice_of
from whereish.solvers.tables.between import landmarks_between

__all__ = ["law_on_places_of"]

_SURELY = 0.97
"""Of the error of moved reports before the rounds: what the eikonal law is not expected to reach
after them."""

_NEIGHBOURS = 16  # of the exponential law on cells, with which laws are compared


def law_on_places_of(
    eps: FloatArray,
    cell: tuple[float, float],
    *,
    finer: bool = False,
    prior: FloatArray | None = None,
    **search: Unpack[Search],
) -> BuiltLaw:
    """As :func:`~whereish.solvers.eikonal.between.law_between`, or the law of landmarks.

    The latter where a prior is given, the map is narrow and without a frame, and its moved reports
    have less error.
    """
    contest = None if prior is None else _Contest(eps, cell, prior, search.get("progress"))
    own = law_between(
        eps,
        cell,
        finer=finer,
        prior=prior,
        instead=None if contest is None else contest.won_at_once,
        **search,
    )
    return own if contest is None or own.table is not None else contest.better(own)


@dataclass
class _Contest:
    """The law of landmarks of a map, once it is found."""

    eps: FloatArray
    cell: tuple[float, float]
    prior: FloatArray
    progress: RoundProgress | None
    table: BuiltLaw | None = None

    def won_at_once(self, first: BuiltLaw, prices: FloatArray) -> BuiltLaw | None:
        """The law of landmarks, if that is surely better than what rounds make of the first."""
        if first.frame:
            return None
        self.table = landmarks_between(
            first, self.eps, self.cell, prices, self.prior, self.progress
        )
        if self.table is None:
            return None
        ours, other = self._judged(self.table), self._judged(first)
        if ours.moved > _SURELY * other.moved:
            return None
        found = self._comparison(other, ours)
        share = other.moved / ours.moved if ours.moved > 0 else 1.0
        return replace(self.table, comparison=replace(found, chosen="landmarks", unsettled=share))

    def better(self, own: BuiltLaw) -> BuiltLaw:
        """The law whose moved reports have less error."""
        if self.table is None:
            return own
        ours, other = self._judged(self.table), self._judged(own)
        found = self._comparison(other, ours)
        if ours.moved >= other.moved:
            return replace(own, comparison=found)
        table = replace(self.table, law=own.law)
        return replace(table, comparison=replace(found, chosen="landmarks"))

    def _judged(self, built: BuiltLaw) -> Judged:
        lattice = lattice_of(self.eps.shape, built.used.shape)
        prior = lattice.shares(self.prior.reshape(self.eps.shape)).sum(axis=1)
        sides = lattice.sides(self.cell, self.eps.shape)
        places = np.indices(built.used.shape).reshape(2, -1).T * np.asarray(sides)
        if built.table is not None:
            return judged_table(built.table, places, prior)
        return judged(built.law, built.secrets, places, prior)

    def _comparison(self, own: Judged, ours: Judged) -> Comparison:
        errors = simple_errors(self.eps, self.cell, _NEIGHBOURS, 0, self.prior)
        spread = sum(side**2 for side in self.cell) / 12  # of a place within its cell
        return Comparison(
            "eikonal",
            own.drawn,
            errors["exponential"] + spread,
            errors["constant"] + spread,
            ours.drawn,
        )
