"""The rounds after which a law between cells is certified, and nearly all of the map is used.

Rounds look at the slopes at points of all squares, which are nearly the largest and cheap: shares
of edges (:mod:`~whereish.solvers.splines.shares`) fall where these exceed eps and, in the first
rounds, rise where there is room.  A proof then says by how much the points fall short, square by
square; rounds go on with that, and after a second proof all edges fall or rise alike until no more
than `_MARGIN` of the map is left.  The slopes are at most the edges' prices per length, so that a
small enough share of all edges passes: rounds end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.eikonal.cells import BuiltLaw, RoundProgress
from whereish.solvers.splines.bound import SplineSlopes
from whereish.solvers.splines.points import point_grid
from whereish.solvers.splines.shares import EdgeShares

__all__ = ["PROOF_BAR", "Search", "settled"]

PROOF_BAR = 0.985
"""Slopes above that share of eps are bounded sharply in a proof, which says how much is used."""

_RISING = (6, 4)  # rounds in which shares may rise, before the first proof and after it
_LOCAL_ROUNDS = 20  # then all edges fall alike
_ROUNDS = 60
_DAMPED = 0.5
_UNKNOWN = 0.001  # what points lack of the proven slopes, before these are known
_AIM = 1e-3  # below 1: so far shares fall, so that rounds end
_MARGIN = 4e-4  # of the map that need not be used
_MOST_MISSING = 0.05  # what a proof can bound no better is left to the last scalings,
_FALL = 0.8  # by so much at most, each
_SCALINGS = 40


@dataclass(frozen=True)
class Search:
    """What a search asks of a law: its slopes at points, a proof of them, and that of shares."""

    points: Callable[[BuiltLaw], FloatArray]
    proof: Callable[[BuiltLaw], SplineSlopes]
    at: Callable[[EdgeShares, BuiltLaw], BuiltLaw]


def settled(built: BuiltLaw, search: Search, progress: RoundProgress | None) -> BuiltLaw:
    """The law after the rounds, certified."""
    shares = EdgeShares.whole(built.used.shape)
    missing = np.full(built.used.shape, _UNKNOWN)
    for rising in _RISING:
        for number in range(_ROUNDS):
            slopes = search.points(built) + missing[:, :, None, None]
            worst = float(slopes.max())
            if progress is not None:
                progress(built.law.rounds, worst)
            if number >= rising and worst <= 1.0:
                break
            left = EdgeShares.left_by(point_grid(slopes) / (1.0 - _AIM))
            left = left.damped(_DAMPED if number < rising else 0.0)
            shares = shares.times(left if number < _LOCAL_ROUNDS else 1.0 / worst)
            built = search.at(shares, built)
        found = search.proof(built)
        short = found.factors - slopes.max(axis=(2, 3))
        missing = missing + np.where(found.factors > PROOF_BAR, short, 0.0)
        missing = np.minimum(missing, _MOST_MISSING)
    return _scaled(built, found, shares, search)


def _scaled(built: BuiltLaw, found: SplineSlopes, shares: EdgeShares, search: Search) -> BuiltLaw:
    """The law with all edges at one more share, so that it is certified and uses the map."""
    certified: BuiltLaw | None = None
    for _ in range(_SCALINGS):
        worst = float(found.factors.max())
        if worst <= 1.0:
            better = certified is None or worst > (certified.gradient_factor or 0.0)
            if better:
                certified = replace(built, gradient_factor=worst, acceptance=found.acceptance)
            if worst > 1.0 - _MARGIN or not better:
                break
        elif certified is not None:
            break
        shares = shares.times(max((1.0 - _MARGIN / 4) / max(worst, PROOF_BAR), _FALL))
        built = search.at(shares, built)
        found = search.proof(built)
    if certified is None:
        raise SolverError("lowering the privacy map for places between cells did not settle")
    return certified
