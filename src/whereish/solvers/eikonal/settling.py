"""The rounds after which a law between cells is certified, and nearly all of the map is used.

Rounds look at the slopes at points of all squares, which are nearly the largest and cheap: shares
of edges (:mod:`~whereish.solvers.splines.shares`) fall where these exceed eps and, in the first
rounds, rise where there is room.  A proof then says by how much the points fall short, square by
square; a few more rounds rise and fall with that, and others only fall, until no slope at a point
exceeds eps.  Proofs and rounds that fall follow in turn until one certifies the law.  If that does
not end, all edges fall alike: the slopes are at most the edges' prices per length, so that a small
enough share of all edges passes.

Prices are multiples of a quantum, and an edge that falls by one moves the shortest paths of some
reports elsewhere, too: where cells are small, the last tenths of a per cent take as many rounds as
all before.  With many nodes these rounds end sooner, and the quantum itself falls by what is left:
then all distances fall alike, and no path moves.  There, too, an edge takes those around
along when it falls, and none rises by more than those around it: paths are long, and what differs
from edge to edge bends them.

Most rounds look at the points that mattered before.  Where weights are solved for, the means of the
gradients there are carried on from the last look at all points, with what the sums of the nodes
have changed since; rounds that only fall hold the weights, and look only around what fell.  None of
that decides anything: the proof looks at everything.  Where it finds more than points did, further
rounds and another proof may use more of the map than making all prices fall by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.eikonal.cells import BuiltLaw, RoundProgress
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.splines.bound import SplineSlopes
from whereish.solvers.splines.points import point_grid
from whereish.solvers.splines.shares import EdgeShares, spread
from whereish.solvers.splines.slopes import PointSlopes

__all__ = ["SHARP_BAR", "Search", "proof_bar", "settled"]

SHARP_BAR = 0.995
"""Of eps: slopes above that are bounded sharply in a proof, which says how much is used."""

_MANY_BAR = 0.9997  # likewise with many nodes, where that costs as much as the rest of the proof
_RISING = (6, 4)  # rounds in which shares may rise, before the first proof and after it
_MANY = 2**13  # nodes: a proof then costs more than it tells before rounds fall
_MANY_RISING = 4  # rounds in which shares may rise then
_FEW = 3e-3  # of the squares: the rounds after the first proof lower these, and no others
_NEARLY = 2e-3  # above eps: slopes at points at which rounds end then; the quantum pays for it
_NEARLY_THERE = 1.008  # of eps: so steep the first law may be at most, if no rounds are to follow,
_HARDLY_ANY = 0.02  # of the squares are too steep: rises that make it more are taken back
_FEW_QUANTA = 500  # of which its cheapest edge may have so many at most
_WORTH = 5e-3  # above eps in a proof: that much of the map is worth further rounds,
_TRIES = 2  # and a proof after them, until there have been so many
_HELD = 3  # rounds, while shares rise, for which the points that matter are held
_LOCAL_ROUNDS = 40  # that fall; then all edges fall alike
_SOLVED = range(2, 2)  # rounds of falling with weights solved again, surely and at most
_MANY_SOLVED = range(2, 12)  # likewise with many nodes: after the first two,
_MUCH = 1.008  # while slopes exceed that share of eps
_IN_MANY = 2e-3  # of the squares
_HELD_WEIGHTS = range(0)  # likewise after a proof
_MANY_ROUNDS = (14, 6)  # of falling with many nodes, before the first proof and after it
_ROUNDS = 60
_PROOFS = 5  # after which all edges fall alike
_DAMPED = 0.5
_UNKNOWN = 0.001  # what points lack of the proven slopes, before these are known
_AIM = 1e-3  # below 1: what shares rise and fall to
_FALL_AIM = 1.4e-3  # likewise while they only fall, so that rounds end
_SAFE = 5e-4  # more is taken to be missing where a proof has failed
_MARGIN = 4e-4  # of the map that need not be used
_MOST_MISSING = 0.05  # what a proof can bound no better is left to the last scalings,
_MUCH_MISSING = 0.01  # in whose squares all points are looked at
_FALL = 0.8  # by so much at most, each
_FURTHER = 1.1  # the power of what is too much, since slopes fall by a little less than prices
_SCALINGS = 40


@dataclass(frozen=True)
class Search:
    """What a search asks of a law.

    Attributes
    ----------
    points : its slopes at points.
    proof : the law in integers and proven slopes, sharp above :func:`proof_bar`.
    at : the law of shares of edges, found from another.
    most : shares beyond which no edge rises.
    progress : told every round and its largest slope.
    """

    points: PointSlopes
    proof: Callable[[BuiltLaw], tuple[BuiltLaw, SplineSlopes]]
    at: Callable[[EdgeShares, BuiltLaw, bool], BuiltLaw]
    most: EdgeShares
    progress: RoundProgress | None


def proof_bar(nodes: int) -> float:
    """Share of eps above which the slopes of a law at so many nodes are bounded sharply."""
    return SHARP_BAR if nodes < _MANY else _MANY_BAR


def settled(built: BuiltLaw, search: Search) -> BuiltLaw:
    """The law after the rounds, certified."""
    state = _State(built, search)
    if built.used.size >= _MANY:
        return _settled_with_many(state, search)
    state.rise(_RISING[0])
    state.learn(search.proof(state.built)[1])
    state.rise(_RISING[1])
    for number in range(_PROOFS):
        state.fall(_SOLVED if number == 0 else _HELD_WEIGHTS)
        exact, found = search.proof(state.built)
        if found.factors.max() <= 1.0:
            break
        state.learn(found)
    return _scaled(exact, found, state.shares, search)


def _settled_with_many(state: _State, search: Search) -> BuiltLaw:
    """As :func:`settled` for many nodes, on which a proof costs more than a tenth of a per cent.

    Shares fall until slopes at points are nearly eps, twice, with a proof in between; then the
    quantum of all prices falls by what is left.  That changes no path, so that slopes fall by as
    much wherever they are, and the next proof nearly always succeeds.  If much is left, in squares
    of which points knew nothing, rounds and proof are tried again, and the better law is kept.
    Where edges have few quanta and the first law is nearly there, its quantum falls at once.
    """
    built, found = _nearly_there(state, search) or _after_rounds(state, search)
    for number in range(_SCALINGS):
        worst = float(found.factors.max())
        if worst <= 1.0:
            return replace(built, gradient_factor=worst, acceptance=found.acceptance)
        share = max((1.0 - _MARGIN / 2) ** (2**number) / worst**_FURTHER, _FALL)
        built, found = search.proof(_at_quantum(built, share))
    raise SolverError("lowering the privacy map for places between cells did not settle")


def _nearly_there(state: _State, search: Search) -> tuple[BuiltLaw, SplineSlopes] | None:
    """The law that rounds would start from, with its proof, if it is hardly too steep.

    On smooth maps of small cells alone: an edge falls by a quantum at least, which is half a per
    cent of one of 0.06 nats, and other weights, for which equations are solved less well, are worse
    by more.  On larger cells rounds use up to a per cent more of the map.
    """
    cheapest = int(state.built.law.metric.weights.min())
    if cheapest > _FEW_QUANTA or float(state.slopes().max()) > _NEARLY_THERE:
        return None
    proven = search.proof(_at_quantum(state.built, 1.0 - _NEARLY))
    return proven if float(proven[1].factors.max()) <= _NEARLY_THERE else None


def _after_rounds(state: _State, search: Search) -> tuple[BuiltLaw, SplineSlopes]:
    """The law after the rounds, about certified, with its proof."""
    state.rise(_MANY_RISING)
    state.fall(_MANY_SOLVED, _MANY_ROUNDS[0], above=_NEARLY, few=_FEW)
    state.learn(search.proof(state.built)[1])
    share, most = 1.0 - _NEARLY, 0.0
    for left in reversed(range(_TRIES)):
        # What is beside these may then be pushed over in turn: the last rounds lower that, too.
        beside = 1.0 if left else 0.0
        state.fall(_HELD_WEIGHTS, _MANY_ROUNDS[1], above=_NEARLY, least=beside)
        tried = search.proof(_at_quantum(state.built, share))
        steepest = float(tried[1].factors.max())
        kept = state.shares.mean() / max(steepest, 1.0)
        if kept > most:
            most, best = kept, tried
        if steepest <= 1.0 + _WORTH or not left:
            break
        state.correct(tried[1].factors / share)
    return best


def _at_quantum(built: BuiltLaw, share: float) -> BuiltLaw:
    """The law with a share of its quantum."""
    law = built.law
    metric = GraphMetric(law.metric.weights, share * law.metric.quantum)
    return replace(built, law=replace(law, metric=metric))


class _State:
    """The law of a search, the shares of its edges, and what points are known to lack."""

    def __init__(self, built: BuiltLaw, search: Search) -> None:
        self.built, self.shares = built, EdgeShares.whole(built.used.shape)
        self._search = search
        self._many = built.used.size >= _MANY
        self._missing = np.full(built.used.shape, _UNKNOWN)
        self._last = np.zeros(0)
        self._solved = False
        # A law, whether all of its squares were looked at, and its slopes at points.
        self._known: tuple[BuiltLaw, bool, FloatArray] | None = None

    def slopes(self) -> FloatArray:
        """Slopes at all points, with what these lack."""
        return self._slopes(True)

    def rise(self, rounds: int) -> None:
        """Rounds in which shares fall where slopes exceed eps, and rise where there is room.

        With many nodes no side rises by more than those around it.  Where hardly a square was too
        steep and more are now, the last round is taken back, and none follows: nearly all of eps
        was used before, and what rises pushes over what is beside it.
        """
        before: tuple[BuiltLaw, EdgeShares, bool] | None = None
        last = 0.0
        for number in range(rounds):
            slopes = self._slopes(number % _HELD == 0)
            steep = _share_above(slopes, 1.0 + _NEARLY)
            if self._many and before is not None and last < min(steep, _HARDLY_ANY):
                self.built, self.shares, self._solved = before
                return
            before, last = (self.built, self.shares, self._solved), steep
            left = EdgeShares.left_by(point_grid(slopes) / (1.0 - _AIM)).damped(_DAMPED)
            self._take(left.smoothed() if self._many else left)

    def fall(
        self,
        solved: range,
        rounds: int = _ROUNDS,
        *,
        above: float = 0.0,
        least: float = 0.0,
        few: float = 0.0,
    ) -> None:
        """Rounds in which shares fall, until no slope at a point exceeds eps by a share `above`.

        In the first of them, `solved.start`, weights are solved again, then up to `solved.stop`
        while slopes exceed eps by much in many squares.  Then they are held: lowering much so would
        leave slopes of ln Z, and with them more to lower.  Shares fall beside slopes of more than
        `least`, with many nodes a quarter as much around.  That a share of squares is steeper may
        be `few` enough.
        """
        changed = None
        for number in range(rounds):
            slopes = self._slopes(number == 0, changed)
            if changed is not None and slopes.max() <= 1.0 + above:
                slopes = self._slopes(False)
            worst = float(slopes.max())
            if worst <= 1.0 + above or _share_above(slopes, 1.0 + above) < few:
                return
            # All that is within the aim falls, or else neighbours would push each other over in
            # turn; but not all over again where little is left, since every fall moves some paths.
            steep = np.where(slopes > least, slopes, 0.0)
            grid = point_grid(steep) / (1.0 - _FALL_AIM)
            left = EdgeShares.left_by(spread(grid) if self._many else grid).damped(0.0)
            solve = number < solved.start or (
                number < solved.stop and _share_above(slopes, _MUCH) > _IN_MANY
            )
            self._take(left if number < _LOCAL_ROUNDS else 1.0 / worst, solve=solve)
            # With weights held, slopes change where edges do.
            here = _around(_around(_around(steep.max(axis=(2, 3))))) > 1.0 - _FALL_AIM
            changed = None if solve or number >= _LOCAL_ROUNDS else here

    def learn(self, proven: SplineSlopes) -> None:
        """What points lack of slopes that were proven."""
        bar = proof_bar(self.built.used.size)
        points = self._slopes(True).max(axis=(2, 3)) - self._missing
        missing = np.where(proven.factors > bar, proven.factors - points, self._missing)
        missing += _SAFE * (proven.factors > 1.0)
        self._missing = np.minimum(missing, _MOST_MISSING)
        self._search.points.look_at(missing > _MUCH_MISSING)

    def correct(self, proven: FloatArray) -> None:
        """What points lack where a proof has failed by more than a scaling should pay for."""
        points = self._slopes(True).max(axis=(2, 3)) - self._missing
        missing = np.minimum(proven - points + _SAFE, _MOST_MISSING)
        self._missing = np.where(proven > 1.0 + _NEARLY, missing, self._missing)
        self._search.points.look_at(proven > 1.0 + _NEARLY)

    def _slopes(self, whole: bool, changed: NDArray[np.bool_] | None = None) -> FloatArray:
        """Slopes with what points lack, at all of these or those that matter.

        If only those in some squares have changed, the others are as they were.
        """
        points, known = self._search.points, self._known
        if known is not None and known[0] is self.built and known[1]:
            found = known[2]
        elif whole:
            found = points.everywhere(self.built)
        else:
            found = points.chosen(self.built, changed, carried=self._solved)
            if changed is not None:
                found = np.where(changed[:, :, None, None], found, self._last)
        self._known = self.built, changed is None, found
        self._last = found
        slopes = found + self._missing[:, :, None, None]
        if self._search.progress is not None:
            self._search.progress(self.built.law.rounds, float(slopes.max()))
        return np.asarray(slopes)

    def _take(self, left: EdgeShares | float, *, solve: bool = True) -> None:
        """Go on with what is left of the shares, with weights that are solved for or held."""
        # A share above what an edge may have would fall without it.
        self.shares = self.shares.times(left).at_most(self._search.most)
        self._solved = solve
        self.built = self._search.at(self.shares, self.built, solve)


def _share_above(slopes: FloatArray, level: float) -> float:
    """The share of squares that are steeper somewhere."""
    return float((slopes.max(axis=(2, 3)) > level).mean())


def _around(values: FloatArray) -> FloatArray:
    """The largest of each square and the eight around it."""
    wide = np.pad(values, 1)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(wide, (3, 3)).max(axis=(2, 3)))


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
        shares = shares.times(max((1.0 - _MARGIN / 4) / max(worst, SHARP_BAR), _FALL))
        built, found = search.proof(search.at(shares, built, False))
    if certified is None:
        raise SolverError("lowering the privacy map for places between cells did not settle")
    return certified
