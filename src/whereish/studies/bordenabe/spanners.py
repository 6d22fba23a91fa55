"""Spanners (chapter 6): fewer constraints for a little more quality loss.

A programme on n regions with e edges has 2 e n inequalities and n equalities: 100 e + 50 on 50
regions.  The published 87,250 is that of 872 edges; the published 25,551 at dilation 1.05 is of no
whole number of edges.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.utility import quality_loss
from whereish.data.user_priors import ALL_DAY, UserPriors
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.privacy.norms import Euclidean
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.space.raster import Raster
from whereish.studies.bordenabe.glpk import glpk_is_here, glpk_value
from whereish.studies.bordenabe.people import made_up_users
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study

__all__ = ["STUDY", "constraints"]

_EPSILON = "1.07/km"
_DILATIONS = (1.05, 1.1, 1.2, 1.3, 1.4, 1.45, 1.5, 1.6, 1.8, 2.0)
_PUBLISHED = {1.05: "median-1.05", 1.1: "median-1.1", 1.2: "median-1.2"}


def constraints(edges: int, regions: int) -> int:
    """Inequalities of both directions of every edge and output, and one equality per row."""
    return 2 * edges * regions + regions


def _grid_spanner(run: Run) -> None:
    """Figure 6.1: the greedy spanner of a grid of 7 x 5, dilation 1.08."""
    grid = Raster(5, 7)
    distances = Euclidean().matrix(grid.centres())
    spanner = greedy_spanner(distances, 1.083)
    run.compare("grid-dilation", spanner.dilation)
    axes = panels(1, width=5.6, height=4.2)[0]
    for first, other in grid.centres()[spanner.edges]:
        axes.plot(*zip(first, other, strict=True), color="#0072b2", linestyle="-", linewidth=1)
    axes.plot(*grid.centres().T, "o", color="#d55e00", markersize=5)
    axes.set(aspect="equal", xlabel="x (cells)", ylabel="y (cells)")
    axes.set_title(f"{len(spanner.edges)} edges, dilation {spanner.dilation:.4f}")
    run.draw("grid", axes, "Figure 6.1: the greedy spanner of a 7 x 5 grid.")


def _edges_of_50(run: Run, known: UserPriors) -> FloatArray:
    """Constraints on the 50 regions, and whether the published numbers are of the formula."""
    distances = Euclidean().matrix(known.sites.coordinates)
    regions = len(distances)
    full = len(greedy_spanner(distances, 1.0).edges)
    run.compare("constraints-872", constraints(872, 50))
    other = "the regions are others: made-up users stand in for GeoLife's"
    run.compare(
        "edges",
        full,
        reason=f"{other}; on these {regions} regions {full} of {regions * (regions - 1) // 2} pairs"
        " have no third region between them",
    )
    thin = len(greedy_spanner(distances, 1.05).edges)
    printed = run.published_value("constraints-1.05")
    whole = round((printed - 50) / 100)
    run.compare(
        "constraints-1.05",
        constraints(thin, regions),
        reason=f"{other}; besides, {printed:.0f} is of {(printed - 50) / 100:.2f} edges, and"
        f" {constraints(whole, 50)} of the nearest whole number",
    )
    return distances


def _by_dilation(run: Run, known: UserPriors, distances: FloatArray) -> None:
    dilations = (1.05, 1.1, 1.2, 1.4, 1.45, 2.0) if run.quick else _DILATIONS
    rows = []
    prior = known.everyone[ALL_DAY]
    for dilation in run.steps(dilations, "dilations"):
        channel = optimal_channel(known.sites, prior, _EPSILON, dilation=dilation, gap=1e-3)
        losses = [quality_loss(channel, own) / 1000 for own in known.priors[ALL_DAY]]
        count = constraints(len(greedy_spanner(distances, dilation).edges), len(distances))
        rows.append((dilation, float(np.median(losses)), channel.loss / 1000, count))
    medians = {row[0]: row[1] for row in rows}
    for dilation, name in _PUBLISHED.items():
        run.compare(
            name,
            medians[dilation],
            reason="the users are others (GeoLife is not here); relative to dilation 1.05 the"
            f" median is {medians[dilation] / medians[1.05]:.3f}",
        )
    head = ("dilation", "median quality loss (km)", "for everybody (km)", "constraints")
    run.table("Quality loss and constraints by dilation, made-up users", head, rows)
    dip = medians[1.45] - medians[1.4]
    run.note(
        "The thesis sees the quality loss dip between dilations 1.4 and 1.45; here it"
        f" {'dips' if dip < 0 else 'rises'} by {abs(dip):.4f} km: a spanner with fewer edges may"
        " have shorter graph distances relative to its dilation."
    )
    left, right = panels(2, width=4.8)
    x = [row[0] for row in rows]
    left.plot(x, [row[1] for row in rows], marker="o", label="median over users")
    left.plot(x, [row[2] for row in rows], marker="s", label="everybody's prior")
    left.set(xlabel="dilation", ylabel="quality loss (km)", ylim=(0, None))
    left.legend(loc="lower right")
    right.plot(x, [row[3] for row in rows], marker="o")
    right.set(xlabel="dilation", ylabel="constraints", ylim=(0, None))
    run.draw("dilation", left, "Quality loss and constraints against the dilation.")


def _solvers() -> dict[str, Callable[[Raster, FloatArray, ChannelProgramme], float]]:
    """The optimum's value by several codes; GLPK, the thesis's, where it is installed."""

    def reference(solver: str) -> Callable[[Raster, FloatArray, ChannelProgramme], float]:
        return lambda _, __, programme: programme.value(solve_reference(programme, solver=solver))

    found: dict[str, Callable[[Raster, FloatArray, ChannelProgramme], float]] = {
        "whereish": lambda grid, prior, _: optimal_channel(grid, prior, _EPSILON, gap=1e-6).loss,
        "PIQP": reference("piqp"),
        "HiGHS ipx": reference("ipx"),
        "HiGHS simplex": reference("simplex"),
    }
    if glpk_is_here():
        found["GLPK"] = lambda _, __, programme: glpk_value(programme)
    return found


def _times(run: Run) -> None:
    """CPU seconds by size, each on the whole programme."""
    sizes = ((4, 4), (5, 5)) if run.quick else ((5, 5), (6, 6), (5, 10))
    rows = []
    for shape in run.steps(sizes, "solvers' times"):
        grid = Raster(*shape, (658.0, 712.0))
        prior = run.public.dirichlet(np.full(len(grid), 0.5))
        distances = Euclidean().matrix(grid.centres())
        programme = ChannelProgramme(
            np.ascontiguousarray((prior[:, None] * distances).T), 1.07e-3 * distances
        )
        seconds, values = [], []
        for solve in _solvers().values():
            began = time.process_time()
            values.append(solve(grid, prior, programme))
            seconds.append(time.process_time() - began)
        spread = (max(values) - min(values)) / min(values)
        rows.append((len(grid), *(f"{each:.2f}" for each in seconds), f"{spread:.1e}"))
    head = ("regions", *(f"{name} (s)" for name in _solvers()), "spread of the optima")
    run.table("CPU seconds by size, dilation 1 (Table 6.1's cells are not in the text)", head, rows)
    if not glpk_is_here():
        run.note("GLPK is not installed: pip install 'whereish[bench]'.")


def _run(run: Run) -> None:
    _grid_spanner(run)
    known = made_up_users(40 if run.quick else 86, run.public)
    distances = _edges_of_50(run, known)
    _by_dilation(run, known, distances)
    _times(run)


STUDY = Study("b-spanners", "Spanners: Figure 6.1, dilations, Table 6.1", "B", 61, _run)
