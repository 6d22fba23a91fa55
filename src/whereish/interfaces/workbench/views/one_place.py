"""View 1, one place: the cloud of its reports, what an attacker learns, and what is near."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.errors import InvalidInput
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.posts import posts
from whereish.interfaces.workbench.specs import Place, Spec, built, drawn, spread
from whereish.interfaces.workbench.views.attack import PriorName, beliefs, grid_around, prior_on
from whereish.interfaces.workbench.views.example_places import ExamplePlaces
from whereish.interfaces.workbench.wire import Message, answer, binary, read
from whereish.lbs.areas import bandwidth_overhead
from whereish.lbs.nearby import nearby
from whereish.lbs.sources.memory import MemorySource
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.units import Length

__all__ = ["routes"]

_MOST_REPORTS = 5000
_GRID = 96
_NEAR_M = 100.0


class CloudAsked(Message, frozen=True):
    """Reports of a place."""

    place: Place
    spec: Spec
    count: int = 2000


class AttackAsked(Message, frozen=True):
    """Posteriors after one and after `count` reports."""

    place: Place
    spec: Spec
    prior: PriorName = "even"
    count: int = 10


class NearbyAsked(Message, frozen=True):
    """Places around a place, asked for around one report."""

    place: Place
    spec: Spec
    radius_m: float = 300.0
    confidence: float = 0.95
    upload: str = ""


class SearchAsked(Message, frozen=True):
    """A town by the beginning of its name."""

    text: str


def routes(bench: Bench) -> list[Route]:
    """The routes of this view."""

    async def cloud(request: Request) -> Response:
        asked = await read(request, CloudAsked)
        if not 1 <= asked.count <= _MOST_REPORTS:
            raise InvalidInput(f"count must be between 1 and {_MOST_REPORTS}")
        if asked.spec.kind == "laplace":  # a millisecond: sooner done than handed over
            return _cloud(asked, bench)
        return await run_in_threadpool(_cloud, asked, bench)

    async def attack(request: Request) -> Response:
        asked = await read(request, AttackAsked)
        if not 1 <= asked.count <= 100:
            raise InvalidInput("count must be between 1 and 100")
        return await run_in_threadpool(_attack, asked, bench)

    async def nearby(request: Request) -> Response:
        asked = await read(request, NearbyAsked)
        return await run_in_threadpool(_nearby, asked, bench)

    async def search(request: Request) -> Response:
        asked = await read(request, SearchAsked)
        return answer(_search(asked.text))

    async def shelf(request: Request) -> Response:
        await read(request, Message)
        return answer(bench.listed())

    return [*posts("/api/place", cloud, attack, nearby, search), *posts("/api", shelf)]


def _cloud(asked: CloudAsked, bench: Bench) -> Response:
    mechanism = built(asked.spec, asked.place, bench)
    reports = drawn(mechanism, asked.place, asked.count)
    away = spread(mechanism, asked.place)
    head = {
        "mean_m": away.mean_m,
        "half_m": away.half_m,
        "most_m": away.most_m,
        "guarantee": guarantee_of(mechanism),
        "note": _note(mechanism),
    }
    return binary(head, {"reports": reports})


def guarantee_of(mechanism: Any) -> dict[str, str]:
    """The guarantee in words."""
    promise = mechanism.guarantee
    return {
        "metric": promise.metric.description,
        "basis": promise.basis.name.lower(),
        "source": promise.source,
        "numerics": promise.numerics,
    }


def _note(mechanism: Any) -> str:
    if isinstance(mechanism, Channel):
        return "The pin is moved to its nearest site first: the promise is about sites."
    if isinstance(mechanism, EikonalMechanism):
        return "A pin outside the map is taken for the map's closest place."
    return ""


def _attack(asked: AttackAsked, bench: Bench) -> Response:
    mechanism = built(asked.spec, asked.place, bench)
    reports = drawn(mechanism, asked.place, asked.count)
    reach = 1.7 * spread(mechanism, asked.place).most_m
    grid = grid_around(reports[:1], reach, _GRID)
    prior = prior_on(grid, asked.prior)
    truth = (asked.place.lon, asked.place.lat)
    stages = beliefs(mechanism, grid, prior, reports, truth, (0, 1, asked.count), _NEAR_M)
    names = ("before", "one", "many")
    head = {
        "bounds": list(grid.box.bounds),
        "count": asked.count,
        "near_m": _NEAR_M,
        "stages": {name: stage.told() for name, stage in zip(names, stages, strict=True)},
    }
    side = (grid.side, grid.side)
    heat = {
        name: stage.chances.reshape(side).astype(np.float32)
        for name, stage in zip(names, stages, strict=True)
    }
    return binary(head, {**heat, "reports": reports})


def _nearby(asked: NearbyAsked, bench: Bench) -> Response:
    mechanism = built(asked.spec, asked.place, bench)
    source: Any = ExamplePlaces()
    if asked.upload:
        source = _uploaded(bench, asked.upload)
    found = nearby(
        asked.place.checked(),
        Length(asked.radius_m),
        source=source,
        mechanism=mechanism,
        confidence=asked.confidence,
    )
    seen = source.around(*found.report, found.radius.m)
    per_km2 = found.fetched / (np.pi * (found.radius.m / 1000) ** 2)
    more = bandwidth_overhead(
        found.radius, Length(asked.radius_m), per_km2=float(per_km2), bytes_each=200.0
    )
    head = {
        "report": found.report,
        "radius_m": found.radius.m,
        "fetched": found.fetched,
        "covered": found.covered,
        "per_km2": float(per_km2),
        "ratio": more.ratio,
        "more_results": more.results,
        "more_kb": more.bytes / 1000,
        "names": [str(one.get("name", "")) for one in found.results[:200]],
        "distances_m": [one["distance_m"] for one in found.results[:200]],
        "example": not asked.upload,
    }
    near = np.array([[one["lon"], one["lat"]] for one in found.results]).reshape(-1, 2)
    return binary(head, {"fetched": seen.coordinates[:20_000], "near": near[:20_000]})


def _uploaded(bench: Bench, name: str) -> MemorySource:
    upload = bench.scratch.get(name)
    return _source(str(upload.path))


@lru_cache(maxsize=4)
def _source(path: str) -> MemorySource:
    for lon, lat in (("lon", "lat"), ("longitude", "latitude"), ("lng", "lat"), ("x", "y")):
        try:
            return MemorySource(path, lon=lon, lat=lat)
        except InvalidInput as error:
            problem = error
    raise problem


def _search(text: str) -> list[dict[str, Any]]:
    wanted = text.strip().casefold()
    if len(wanted) < 2:
        return []
    towns = _towns()
    first = [town for town in towns if town[0].casefold().startswith(wanted)]
    return [
        {"name": name, "country": country, "lon": float(lon), "lat": float(lat)}
        for name, country, lon, lat in first[:8]
    ]


@lru_cache(maxsize=1)
def _towns() -> list[list[str]]:
    """Towns of the world, the largest first (GeoNames, CC BY 4.0)."""
    packed = (files("whereish.interfaces.workbench") / "page" / "towns.tsv.gz").read_bytes()
    return [line.split("\t") for line in gzip.decompress(packed).decode().splitlines()]
