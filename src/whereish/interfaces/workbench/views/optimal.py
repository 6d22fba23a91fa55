"""View 3, the optimal mechanism: sites and a prior, bounds that close in, and what was gained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.arrays import FloatArray
from whereish.audit.adversary import best_attack, identification, posterior
from whereish.audit.utility import error_per_place, quality_loss
from whereish.errors import InvalidInput, NotPrivate, WhereishError
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.posts import JobAsked, posts
from whereish.interfaces.workbench.specs import Place
from whereish.interfaces.workbench.views.attack import PriorName, prior_at
from whereish.interfaces.workbench.views.columns import Columns, columns_of, read_rows
from whereish.interfaces.workbench.wire import Message, answer, attachment, binary, read
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.exponential import exponential_channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import OptimalChannel, optimal_channel
from whereish.mechanisms.channels.remap import BayesianRemap
from whereish.mechanisms.channels.tight import tight_channel
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.units import Epsilon

__all__ = ["routes"]

KIND = "optimal"
MOST_SITES = 225


class SitesAsked(Message, frozen=True):
    """Sites: a grid around a public centre, places drawn on the map, or those of a file."""

    source: Literal["grid", "drawn", "upload"] = "grid"
    centre: Place = Place(-75.1635, 39.9526)
    side: int = 7
    cell_m: float = 1000.0
    drawn: tuple[Place, ...] = ()
    upload: str = ""
    prior: PriorName = "even"


class SolveAsked(Message, frozen=True):
    """A problem."""

    sites: SitesAsked
    per_m: float
    loss: Literal["euclidean", "squared"] = "euclidean"
    gap: float = 1e-4
    seconds: float = 60.0


class AtAsked(JobAsked, frozen=True):
    """The reports of one site."""

    site: int


def routes(bench: Bench) -> list[Route]:
    """The routes of this view."""

    async def sites(request: Request) -> Response:
        asked = await read(request, SitesAsked)
        places, prior = await run_in_threadpool(problem_sites, asked, bench)
        return binary({"count": len(places)}, {"sites": _degrees(places), "prior": prior})

    async def solve(request: Request) -> Response:
        asked = await read(request, SolveAsked)
        places, prior = await run_in_threadpool(problem_sites, asked.sites, bench)
        if not (1e-6 <= asked.gap < 1 and 1 <= asked.seconds <= 600):
            raise InvalidInput("the gap must be in [1e-6, 1) and the time 1 to 600 seconds")
        title = f"optimal channel, {len(places)} sites"
        level, limits = Epsilon(asked.per_m), (asked.gap, asked.seconds)
        job = await run_in_threadpool(
            bench.jobs.start,
            KIND,
            title,
            solve_channel,
            (places, prior, level, asked.loss, limits),
            finish=lambda job: _shelve(bench, job.id, title, job.result),
        )
        return answer(job.status())

    async def result(request: Request) -> Response:
        made = bench.jobs.result((await read(request, JobAsked)).job, KIND)
        return binary(made["head"], made["arrays"])

    async def at(request: Request) -> Response:
        asked = await read(request, AtAsked)
        made = bench.jobs.result(asked.job, KIND)
        return _at(made, asked.site)

    async def file(request: Request) -> Response:
        made = bench.jobs.result((await read(request, JobAsked)).job, KIND)
        return await run_in_threadpool(_file, made["channel"], bench)

    return posts("/api/optimal", sites, solve, result, at, file)


def _shelve(bench: Bench, name: str, title: str, result: dict[str, Any]) -> None:
    bench.put(KIND, title, result["channel"], name)


def problem_sites(asked: SitesAsked, bench: Bench) -> tuple[Sites, FloatArray]:
    """The sites on a plane of their own, and the prior on them."""
    if asked.source == "upload":
        degrees, weights = _uploaded(asked, bench)
    elif asked.source == "drawn":
        degrees = np.array([place.checked() for place in asked.drawn]).reshape(-1, 2)
        weights = None
    else:
        return _grid(asked)
    degrees, index = np.unique(degrees.round(6), axis=0, return_inverse=True)
    if not 2 <= len(degrees) <= MOST_SITES:
        raise InvalidInput(
            f"the workbench solves for 2 to {MOST_SITES} different sites; these are {len(degrees)}"
        )
    low, high = degrees.min(axis=0) - 0.02, degrees.max(axis=0) + 0.02
    plane = Plane.over(Box(*low, *high))
    sites = Sites(plane.from_degrees(*degrees.T))
    if weights is not None:
        summed = np.bincount(index.ravel(), weights, len(degrees))
        return sites, summed / summed.sum()
    return sites, prior_at(degrees, asked.prior)


def _grid(asked: SitesAsked, counts: FloatArray | None = None) -> tuple[Sites, FloatArray]:
    """A grid of cells around the centre; `counts` are degrees of check-ins to be counted."""
    if not (2 <= asked.side <= 15 and 10 <= asked.cell_m <= 100_000):
        raise InvalidInput("a grid has 2 to 15 cells to a side, each of 10 m to 100 km")
    lon, lat = asked.centre.checked()
    reach = asked.side * asked.cell_m
    plane = Plane.around(lon, lat, f"{reach} m")
    corner = -reach / 2
    raster = Raster(asked.side, asked.side, (asked.cell_m, asked.cell_m), (corner, corner), plane)
    sites = raster.sites()
    if counts is None:
        return sites, prior_at(_degrees(sites), asked.prior)
    region = plane.region
    assert region is not None
    inside = counts[region.contains(counts)]
    on_plane = plane.from_degrees(*inside.T).coordinates
    held = on_plane[raster.box.contains(on_plane)]
    if len(held) == 0:
        raise InvalidInput("no check-in is on the grid: move the map there, and take its centre")
    found = np.bincount(raster.locate(held), minlength=len(raster)).astype(float)
    return sites, found / found.sum()


def _uploaded(asked: SitesAsked, bench: Bench) -> tuple[FloatArray, FloatArray | None]:
    """The places of a file: sites if they are few, and check-ins to be counted otherwise."""
    upload = bench.scratch.get(asked.upload)
    try:
        told = columns_of(upload.path).told()
        guess = told["guess"]
        degrees, _ = read_rows(
            upload.path, Columns(guess["lon"], guess["lat"], told["geometry"], "")
        )
    except WhereishError as error:
        raise InvalidInput(str(error).replace(upload.path.name, upload.shown)) from None
    if len(np.unique(degrees.round(6), axis=0)) <= MOST_SITES:
        return degrees, np.ones(len(degrees))
    sites, prior = _grid(asked, degrees)
    used = prior > 0
    return _degrees(sites)[used], prior[used]


def _degrees(sites: Sites) -> FloatArray:
    space: Any = sites.points.space
    return np.column_stack(space.to_degrees(sites.points))


def solve_channel(
    progress: Callable[[dict[str, Any]], None], problem: tuple[Any, ...]
) -> dict[str, Any]:
    """The optimum, its rivals, and what an adversary makes of each, in a process of its own."""
    sites, prior, level, loss, (gap, seconds) = problem
    channel = optimal_channel(
        sites,
        prior,
        level,
        loss=loss,
        gap=gap,
        time_limit=seconds,
        progress=lambda told: progress(
            {"upper": float(told.upper), "lower": float(told.lower), "seconds": told.seconds}
        ),
    )
    rivals: list[tuple[str, Channel]] = [("optimal", channel)]
    for name, make in (
        ("tight", tight_channel),
        ("planar Laplace", laplace_channel),
        ("exponential", exponential_channel),
    ):
        try:
            made = make(sites, level)
        except (InvalidInput, NotPrivate):  # not every set of sites allows it
            continue
        rivals += [(name, made), (f"{name}, remapped", made >> BayesianRemap(prior, loss))]
    table = [
        {
            "name": name,
            "loss": quality_loss(one, prior, loss),
            "adversary_m": best_attack(one, prior).error,
            "identified": identification(one, prior).after,
        }
        for name, one in rivals
    ]
    attack = best_attack(channel, prior)
    promise = channel.guarantee
    head = {
        "sites": len(sites),
        "reports": len(channel.reports),
        "loss": channel.loss,
        "lower": channel.lower_bound,
        "gap": channel.gap,
        "status": channel.status,
        "kind": loss,
        "table": table,
        "metric": promise.metric.description,
        "basis": promise.basis.name.lower(),
        "source": promise.source,
        "identified_before": float(prior.max()),
    }
    arrays = {
        "sites": _degrees(channel.secrets),
        "prior": prior,
        "reports": _degrees(channel.reports),
        "chances": np.asarray(prior @ channel.matrix),
        "guesses": _degrees(channel.secrets)[attack.guesses],
        "errors": np.asarray(error_per_place(channel, loss)),
    }
    return {"channel": channel, "prior": prior, "head": head, "arrays": arrays}


def _at(made: dict[str, Any], site: int) -> Response:
    channel: OptimalChannel = made["channel"]
    if not 0 <= site < len(channel.secrets):
        raise InvalidInput("this is no site of the channel")
    likeliest = int(np.argmax(channel.matrix[site]))
    believed = posterior(channel, made["prior"])[:, likeliest]
    head = {"site": site, "report": likeliest, "chance": float(channel.matrix[site, likeliest])}
    return binary(head, {"row": channel.matrix[site], "posterior": believed})


def _file(channel: OptimalChannel, bench: Bench) -> Response:
    path = bench.scratch.new(".npz")
    try:
        channel.save(path)
        return attachment(Path(path).read_bytes(), "channel.npz")
    finally:
        path.unlink(missing_ok=True)
