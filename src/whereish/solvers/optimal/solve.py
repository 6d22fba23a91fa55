"""The optimal channel of a finite metric: one entry point to the solvers.

Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014, section 4): given prior
pi, loss l and metric d, find K that minimises sum_xz pi_x K_xz l(x, z) subject to
K_xz <= e^{d(x,x')} K_x'z for all x, x', z and sum_z K_xz = 1.

Every result carries a lower bound that no d-private channel can beat, so its gap
is certified whatever happened on the way.

* at once: the best of a few simple channels (`start.channels`), the first of an anytime answer, and
  the bound of the places of positive prior alone, where those are few;
* up to a few hundred places: `output_generation`, exact to any gap;
* beyond, or when a rough gap is enough: `large_scale`; a few of its sweeps come first in any
  case, so that a useful bound is there whenever time runs out;
* where columns fall fast, so that few places are near an output: `local`, before the sweeps;
* outputs that another one beats at every place are left out (`start.undominated`);
* places far nearer to each other than the gap matters are made one (`start.merging`), and where
  that leaves much fewer, a few of them far apart are solved first (`start.coarse`);
* extreme metrics, where all rows coincide or never touch, have closed answers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.solvers.optimal.large_scale import solve_large
from whereish.solvers.optimal.local.solve import Neighbourhoods, solve_local
from whereish.solvers.optimal.output_generation import (
    solve_by_output_generation,
    starting_outputs,
)
from whereish.solvers.optimal.polish import Polish
from whereish.solvers.optimal.programme import (
    ChannelProgramme,
    LpResult,
    ProgressCallback,
    SolveProgress,
    Terms,
)
from whereish.solvers.optimal.spanner import shortest_path_closure
from whereish.solvers.optimal.start.channels import simple_solution
from whereish.solvers.optimal.start.coarse import coarsen, spread_places
from whereish.solvers.optimal.start.early import (
    ENOUGH,
    FEW_SWEEPS,
    USEFUL,
    bound_of_few,
    early_bracket,
    from_below,
)
from whereish.solvers.optimal.start.merging import Merged, merge
from whereish.solvers.optimal.start.undominated import undominated
from whereish.threads import one_blas_thread, workers

__all__ = ["solve_optimal"]


LARGEST_EXACT = 600
"""Beyond, the interior point's factors would need more than a few gigabytes."""
ROUGH_GAP = 5e-3
"""A gap that the first-order method reaches faster from `SMALLEST_ROUGH` places on."""
SMALLEST_ROUGH = 250
LEAST_SWEPT = 40
"""For a first bound from so many places on, where the interior point is to follow."""
FEW_OUTPUTS = 0.2
"""Of the places: with fewer outputs in use the interior point is worth it even at a rough gap."""
LEAST_SWEPT_GAP = 1e-3
"""Sweeps do not bring much less."""
MOST_LIKELY, LIKELY_GAP = 150, 1e-2
"""Places of positive prior that are solved alone, and how well, for a bound that comes early."""
AT_ONCE = 60
"""Places that are solved in a fraction of a second, whatever the time limit is."""
MERGED_SHARE = 0.02
"""Of the gap: places within this many nats of each other share a row."""
WIDER_SHARE = 0.3
"""The same where that solve came to the end of its arithmetic, for a channel alone."""
LEAST_LEFT = 20.0
"""Seconds: with less time left, sweeps give the better bound than interior points on cores."""
COARSE = ((4.0, 1.0), (0.7, 0.5), (0.3, 0.3))
"""Radii around the places kept, in nats over the root of the gap, with what is asked of the gap."""
FIRST_LOOKS, LOOK_SWEEPS = ((0.8, 0.05), (0.4, 0.05)), 1000
"""Radii in nats and gaps that come before these where there are many places, by sweeps alone."""
WORTH_COARSE = 0.75
"""Of the places: with more kept, a solve of all is as good."""
LET_GO = 0.1
"""Of the gap: what outputs that are left out may lose."""
BELOW = 0.75
"""Of the gap: how well the programme below is solved; the rest is for lifting its channel."""
NEGLIGIBLE = 1e-12
"""A loss below this part of the uninformed loss is not worth a solver."""
LONGEST = 700.0
"""Distances are cut here: e^700 is beyond the ratio of any two weights."""


@one_blas_thread()
def solve_optimal(
    cost: FloatArray,
    metric: FloatArray,
    *,
    closed: bool = False,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    start: FloatArray | None = None,
) -> LpResult:
    """Solve the optimal-channel programme.

    Parameters
    ----------
    cost
        (outputs, n): prior_x * loss(x, z), finite and nonnegative.
    metric
        (n, n): symmetric distances in nats, zero exactly where rows must coincide.  The
        triangle inequality need not hold: privacy chains along shortest paths.
    closed
        Whether `metric` is its shortest-path closure already.
    gap
        Relative gap to stop at.
    time_limit
        Seconds after which the best channel so far is returned with its honest gap.  The least
        that is always done gives a bound, too: some 25 sweeps over all places and outputs.
    start
        A channel to begin from, (n, any reports), private up to what `repair` mends.
    """
    cost, metric = _checked(cost, metric)
    metric = np.minimum(metric if closed else shortest_path_closure(metric), LONGEST)
    classes, first = _coinciding(metric)
    merged = np.zeros((len(cost), first.size))
    np.add.at(merged.T, classes, cost.T)
    kept = undominated(merged)
    programme = ChannelProgramme(
        np.ascontiguousarray(merged[kept]), np.ascontiguousarray(metric[np.ix_(first, first)])
    )
    terms = Terms(gap, time_limit, progress)
    with workers():  # for all that follows
        result = _bracketed(programme, terms, None if start is None else start[first])
    matrix = np.zeros((metric.shape[0], len(cost)))
    matrix[:, kept] = result.matrix[classes]
    return replace(result, matrix=matrix)


def _bracketed(
    programme: ChannelProgramme, terms: Terms, start: FloatArray | None = None
) -> LpResult:
    """Solve with the nearest places made one: once for the channel, once for the bound."""
    merged = merge(programme, MERGED_SHARE * terms.gap)
    if merged is None:
        return _solve(programme, terms, start)
    begun = None if start is None else start[merged.first]
    half = None if terms.limit_s is None else 0.5 * (terms.seconds + terms.limit_s)

    def from_above(at: SolveProgress) -> None:
        terms.tell(at.upper, 0.0, at.stage)

    best = replace(simple_solution(merged.above, begun), lower=0.0, status="stalled")
    terms.take(best.upper, 0.0)
    best = _between_coarse(programme, merged, terms, best, half)
    if best.gap > terms.gap and not (terms.over and best.lower > 0):
        below = _solve(merged.below, Terms(BELOW * terms.gap, half, from_below(terms), terms.start))
        lifted = best.matrix
        if not terms.over:
            lifted = Polish(merged.above, terms.gap).channel(below.matrix, best.matrix)
        upper = merged.above.value(lifted)
        best = _better(best, replace(below, matrix=lifted, upper=upper))
    if best.gap > terms.gap and not terms.over:
        within = Terms(0.5 * terms.gap, terms.limit_s, from_above, terms.start)
        above = _solve(merged.above, within, best.matrix)
        best = _better(best, replace(above, lower=0.0))
    best = replace(best, matrix=merged.lift(best.matrix))
    wider = merge(programme, WIDER_SHARE * terms.gap)
    if best.gap > terms.gap and not terms.over and wider is not None:
        # Distances of a millionth of a nat exhaust the arithmetic: a wider group has none.
        within = Terms(0.5 * terms.gap, terms.limit_s, from_above, terms.start)
        above = _solve(wider.above, within, best.matrix[wider.first])
        best = _better(best, replace(above, matrix=wider.lift(above.matrix), lower=0.0))
    ended = terms.verdict(best.upper, best.lower, best.method)
    status = ended or ("stalled" if best.status == "optimal" else best.status)
    return replace(best, status=status)


def _between_coarse(
    programme: ChannelProgramme,
    merged: Merged,
    terms: Terms,
    best: LpResult,
    limit_s: float | None,
) -> LpResult:
    """Bounds of ever more of the places, far apart, and channels that their columns extend to.

    Of places over many decades that leaves those that matter, and distances that an interior point
    can bear.  `best` is a channel of the programme above.
    """
    if best.gap <= terms.gap:
        return best
    weight = programme.cost.mean(axis=0)
    polish = Polish(merged.above, terms.gap)
    stages = [(radius * math.sqrt(terms.gap), share * terms.gap) for radius, share in COARSE]
    if programme.n > SMALLEST_ROUGH and best.gap > USEFUL:
        if merged.below.n > SMALLEST_ROUGH:
            lower, _ = bound_of_few(merged.below, terms)
            best = replace(best, lower=min(lower, best.upper))
        if best.gap > ENOUGH:
            stages = [(nats, gap) for nats, gap in FIRST_LOOKS if gap > stages[0][1]] + stages
    for nats, gap in stages:
        kept = spread_places(programme.metric, int(weight.argmax()), radius=nats)
        if kept.size > WORTH_COARSE * programme.n:
            break
        tolerated = LET_GO * terms.gap * best.upper * weight[kept] / float(weight[kept].sum())
        coarse = coarsen(programme, kept, tolerated)
        tell = from_below(terms, coarse.let_go)
        within = Terms(gap, limit_s, tell, terms.start)
        if gap > terms.gap:
            start = simple_solution(coarse.below).matrix
            found = solve_large(coarse.below, within, start=start, most_sweeps=LOOK_SWEEPS)
        else:
            found = _solve(coarse.below, within, last_resort=False)
        lower = found.lower - coarse.let_go
        lifted = best.matrix
        if not terms.over:
            mean, *beside = (
                one[merged.first] for one in coarse.extensions(found.matrix, programme)
            )
            lifted = polish.channel(mean, best.matrix, beside=beside)
        upper = merged.above.value(lifted)
        best = _better(best, replace(found, matrix=lifted, upper=upper, lower=lower))
        if terms.verdict(best.upper, best.lower, best.method) is not None:
            break
    return best


def _solve(
    programme: ChannelProgramme,
    terms: Terms,
    start: FloatArray | None = None,
    *,
    last_resort: bool = True,
) -> LpResult:
    """`last_resort` allows thousands of sweeps where the interior point has come to its end."""
    simple = simple_solution(programme, start)
    uninformed = float(programme.cost.sum(axis=1).min())
    negligible = simple.upper <= NEGLIGIBLE * uninformed
    if simple.gap <= terms.gap or negligible or programme.n == 1:
        terms.tell(simple.upper, simple.lower, "closed form")
        return replace(simple, status="optimal")
    terms.take(simple.upper, simple.lower)  # told with the first bound that means something
    simple = replace(simple, lower=max(simple.lower, _bound_of_likely(programme, terms)))
    terms.take(simple.upper, simple.lower)
    exact = programme.n <= LARGEST_EXACT
    rough = programme.n > SMALLEST_ROUGH and terms.gap >= ROUGH_GAP
    if rough or not exact:
        simple = early_bracket(programme, terms, simple)
        if simple.gap <= terms.gap:
            return replace(simple, status="optimal")
        around = Neighbourhoods(programme)
        hurried = terms.limit_s is not None and terms.limit_s - terms.seconds < LEAST_LEFT
        if around.radius is not None and not hurried:
            half = None if terms.limit_s is None else 0.5 * (terms.seconds + terms.limit_s)

            def tell(at: SolveProgress) -> None:
                terms.tell(at.upper, at.lower, at.stage)

            within = Terms(terms.gap, half, tell, terms.start)
            within.take(simple.upper, simple.lower)
            simple = _better(simple, solve_local(programme, within, simple.matrix, around))
            if simple.gap <= terms.gap:
                return replace(simple, status="optimal")
        few = exact and starting_outputs(programme).size <= FEW_OUTPUTS * programme.n
        first = solve_large(programme, terms, start=simple.matrix, may_give_up=few)
        simple = _better(simple, first)
    elif programme.n >= LEAST_SWEPT or terms.limit_s is not None:
        first = solve_large(programme, terms, start=simple.matrix, most_sweeps=FEW_SWEEPS)
        simple = _better(simple, first)
    if simple.gap > terms.gap and exact and not terms.over:
        simple = _better(simple, solve_by_output_generation(programme, terms))
        worth = last_resort and not (rough or terms.over)
        if simple.gap > max(terms.gap, LEAST_SWEPT_GAP) and worth:
            # The arithmetic of distances over many decades was exhausted: sweeps have no such end.
            simple = _better(simple, solve_large(programme, terms, start=simple.matrix))
    return replace(simple, status="optimal") if simple.gap <= terms.gap else simple


def _bound_of_likely(programme: ChannelProgramme, terms: Terms) -> float:
    """The bound of the places that cost anything, where they are few: zero without them.

    A private channel is private on some of the secrets, too, so leaving out those of prior zero
    leaves its cost as it is and only takes constraints away.
    """
    likely = np.flatnonzero(programme.cost.any(axis=0))
    if not 0 < likely.size <= min(MOST_LIKELY, programme.n // 2):
        return 0.0
    cost, metric = programme.cost[:, likely], programme.metric[np.ix_(likely, likely)]
    alone = ChannelProgramme(np.ascontiguousarray(cost), np.ascontiguousarray(metric))
    limit = None if likely.size <= AT_ONCE else terms.limit_s
    return _solve(alone, Terms(LIKELY_GAP, limit, start=terms.start)).lower


def _better(first: LpResult, second: LpResult) -> LpResult:
    """The better channel with the better bound; the second says how it ended."""
    best = first if first.upper < second.upper else second
    lower = min(max(first.lower, second.lower), best.upper)
    return replace(second, matrix=best.matrix, upper=best.upper, lower=lower)


def _coinciding(metric: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Class of every secret by zero distance, and one representative per class."""
    representative = (metric == 0).argmax(axis=1)
    first, classes = np.unique(representative, return_inverse=True)
    return classes, first


def _checked(cost: FloatArray, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    metric = np.ascontiguousarray(metric, dtype=np.float64)
    if cost.ndim != 2 or metric.shape != (cost.shape[1], cost.shape[1]) or cost.size == 0:
        raise InvalidInput(
            "cost must be (outputs, n) and metric (n, n) with n >= 1;"
            f" got {cost.shape} and {metric.shape}"
        )
    if not np.isfinite(cost).all() or (cost < 0).any():
        raise InvalidInput("every prior times loss must be finite and >= 0")
    if np.isnan(metric).any() or (metric < 0).any() or (metric != metric.T).any():
        raise InvalidInput("metric must be symmetric with entries >= 0")
    if np.diagonal(metric).any():
        raise InvalidInput("metric must be zero on its diagonal")
    return cost, metric
