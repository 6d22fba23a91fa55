"""View 2, a privacy map: levels, zones, a certified mechanism, and its reports from any place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.data.geotiff import write_geotiff
from whereish.errors import InvalidInput, WhereishError
from whereish.interfaces.cli.map_sources import Asked, sourced_map
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.posts import JobAsked, posts
from whereish.interfaces.workbench.specs import Place, Spec, built, secrets_of, spread
from whereish.interfaces.workbench.views.drawing import canvas_of
from whereish.interfaces.workbench.wire import Message, answer, attachment, binary, read
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.units import Epsilon

__all__ = ["routes"]

KIND = "map"
MOST_CELLS = 10_000


class Zone(Message, frozen=True):
    """A disk with a level of its own."""

    lon: float
    lat: float
    radius_m: float
    per_km: float


class Source(Message, frozen=True):
    """Philadelphia, or a file with densities, tracts or zones."""

    cells: int = 40
    upload: str = ""
    slope: float = 1e-4
    offset: float = 0.4
    high: float | None = None
    unit: str = ""
    cell: str = ""
    default: str = ""
    column: str = ""


class MapAsked(Message, frozen=True):
    """A map with zones on top."""

    source: Source
    zones: tuple[Zone, ...] = ()
    places: Literal["cells", "continuous"] = "cells"


class AtAsked(JobAsked, frozen=True):
    """The reports of a place."""

    place: Place


class FileAsked(JobAsked, frozen=True):
    """A finished build as a file."""

    kind: Literal["npz", "tif"]


def routes(bench: Bench) -> list[Route]:
    """The routes of this view."""

    async def preview(request: Request) -> Response:
        asked = await read(request, MapAsked)
        return await run_in_threadpool(_preview, asked, bench)

    async def build(request: Request) -> Response:
        asked = await read(request, MapAsked)
        made, _ = await run_in_threadpool(privacy_map, asked, bench)
        rows, columns = made.shape
        title = f"privacy map, {rows} x {columns} cells"
        job = await run_in_threadpool(
            bench.jobs.start,
            KIND,
            title,
            build_map,
            made,
            asked.places,
            finish=lambda job: _shelve(bench, job.id, title, job.result),
        )
        return answer(job.status())

    async def result(request: Request) -> Response:
        asked = await read(request, JobAsked)
        return await run_in_threadpool(_result, bench.jobs.result(asked.job, KIND))

    async def at(request: Request) -> Response:
        asked = await read(request, AtAsked)
        mechanism, _ = bench.jobs.result(asked.job, KIND)
        return await run_in_threadpool(_at, mechanism, asked.place, bench)

    async def file(request: Request) -> Response:
        asked = await read(request, FileAsked)
        mechanism, _ = bench.jobs.result(asked.job, KIND)
        return await run_in_threadpool(_file, mechanism, asked.kind, bench)

    return posts("/api/map", preview, build, result, at, file)


def _shelve(bench: Bench, name: str, title: str, result: tuple[EikonalMechanism, float]) -> None:
    bench.put(KIND, title, result[0], name)


def privacy_map(asked: MapAsked, bench: Bench) -> tuple[PrivacyMap, str]:
    """The map that is asked for, and a sentence about what was read."""
    source = asked.source
    path, shown = "philadelphia", ""
    if source.upload:
        upload = bench.scratch.get(source.upload)
        path, shown = str(upload.path), upload.shown
    if not 10 <= source.cells <= 100:
        raise InvalidInput("the example has between 10 and 100 cells to a side")
    try:
        made, said = sourced_map(path, _options(source, path))
    except WhereishError as error:
        told = str(error)
        raise InvalidInput(told.replace(Path(path).name, shown) if shown else told) from None
    if not 4 <= made.values.size <= MOST_CELLS:
        rows, columns = made.shape
        raise InvalidInput(
            f"the workbench builds maps of up to {MOST_CELLS:,} cells, and this one has"
            f" {rows} x {columns}: give a larger cell; `whereish build map` takes larger maps"
        )
    values = made.values
    for zone in asked.zones:
        values = _zoned(made, values, zone)
    made = PrivacyMap(values, made.cell, made.origin, made.plane)
    return made, said.replace(Path(path).name, shown) if shown else said


def _options(source: Source, path: str) -> Asked:
    example = not source.upload
    zones = Path(path).suffix in (".geojson", ".json") and not source.column
    return Asked(
        slope=source.slope,
        offset=source.offset,
        per=None if example else "km",  # that of the paper, for its own patch
        high=source.high,
        density_unit=source.unit or Asked.density_unit,
        column=source.column or None,
        default=Epsilon.of(source.default) if source.default else None,
        region=_around_zones(Path(path)) if zones else None,
        cell=source.cell or None,
        nodata="nearest",
        cells=source.cells,
    )


def _around_zones(path: Path) -> Box:
    """The extent of a file's zones, and half of it around: zones are public, secrets unknown."""
    try:
        features = json.loads(path.read_text("utf-8"))["features"]
        corners = np.concatenate(
            [
                np.asarray(ring, dtype=float)[:, :2]
                for feature in features
                for rings in _polygons(feature["geometry"])
                for ring in rings
            ]
        )
        (west, south), (east, north) = corners.min(axis=0), corners.max(axis=0)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise InvalidInput(f"{path.name} must be GeoJSON with polygons as zones") from None
    wide, high = (east - west) / 4, (north - south) / 4
    return Box(west - wide, max(south - high, -85.0), east + wide, min(north + high, 85.0))


def _polygons(shape: dict[str, Any]) -> list[Any]:
    several = shape["type"] == "MultiPolygon"
    found: list[Any] = shape["coordinates"] if several else [shape["coordinates"]]
    return found


def _zoned(made: PrivacyMap, values: Any, zone: Zone) -> Any:
    """The levels with those of a zone: of the cells whose centres it holds, or of its own cell."""
    raster, plane = made.raster, made.plane
    if not (zone.radius_m > 0 and 1e-3 <= zone.per_km <= 1e3):
        raise InvalidInput("a zone must have a radius > 0 and a level of 0.001 to 1000 per km")
    try:
        centre = plane.from_degrees([zone.lon], [zone.lat]).coordinates[0]
    except WhereishError:
        raise InvalidInput("a zone is outside the map: draw it inside") from None
    inside = ((raster.centres() - centre) ** 2).sum(axis=1) <= zone.radius_m**2
    if not raster.box.contains(centre[None])[0] and not inside.any():
        raise InvalidInput("a zone is outside the map: draw it inside")
    inside[raster.locate(centre[None])] = True
    return np.where(inside.reshape(made.shape), zone.per_km / 1000, values)


def _preview(asked: MapAsked, bench: Bench) -> Response:
    made, said = privacy_map(asked, bench)
    canvas = canvas_of(made.raster)
    width, _ = made.raster.cell
    head = {
        "rows": made.shape[0],
        "columns": made.shape[1],
        "cell_m": width,
        "low_km": float(made.values.min()) * 1000,
        "high_km": float(made.values.max()) * 1000,
        "bounds": canvas.bounds,
        "said": said,
    }
    return binary(head, {"levels": canvas.paint(made.values * 1000)})


def build_map(
    progress: Callable[[dict[str, Any]], None], made: PrivacyMap, places: Any
) -> tuple[EikonalMechanism, float]:
    """The mechanism and the root of its mean squared error, in a process of its own."""
    mechanism = EikonalMechanism.build(
        made,
        places=places,
        progress=lambda step, factor: progress({"round": step, "factor": float(factor)}),
    )
    return mechanism, mechanism.mse() ** 0.5


def _result(result: tuple[EikonalMechanism, float]) -> Response:
    mechanism, rmse = result
    made = mechanism.map
    canvas = canvas_of(made.raster)
    lowered = np.minimum(mechanism.lowered, 1.0)
    least = float(made.values.min())
    promise = mechanism.guarantee
    head = {
        "bounds": canvas.bounds,
        "rows": made.shape[0],
        "columns": made.shape[1],
        "low_km": least * 1000,
        "high_km": float(made.values.max()) * 1000,
        "factor": mechanism.factor,
        "basis": promise.basis.name.lower(),
        "source": promise.source,
        "numerics": promise.numerics,
        "metric": promise.metric.description,
        "digest": made.digest(),
        "places": mechanism.places,
        "rmse_m": rmse,
        "laplace_rmse_m": 6**0.5 / least,
        "lowered_least": float(lowered.min()),
        "lowered_mean": float(lowered.mean()),
        "account": mechanism.account(),
    }
    return binary(
        head,
        {
            "levels": canvas.paint(made.values * 1000),
            "used": canvas.paint(made.values * lowered * 1000),
            "lowered": canvas.paint(1.0 - lowered),
        },
    )


def _at(mechanism: EikonalMechanism, place: Place, bench: Bench) -> Response:
    place.checked()
    secret = secrets_of(mechanism, place)
    if not mechanism.map.raster.box.contains(secret)[0]:
        raise InvalidInput("this place is outside the map: click inside it")
    chances = mechanism.distribution(secret)
    canvas = canvas_of(mechanism.reports)
    cell = int(mechanism.map.raster.locate(secret)[0])
    level = float(mechanism.map.values.ravel()[cell])
    here = spread(mechanism, place)
    width, height = mechanism.reports.cell
    head: dict[str, Any] = {
        "bounds": canvas.bounds,
        "per_km": level * 1000,
        "mean_m": here.mean_m,
        "half_m": here.half_m,
        "most_m": here.most_m,
        "cell_km2": width * height / 1e6,
        "largest": float(chances.max()),
    }
    for name, per_m in (("own", level), ("least", float(mechanism.map.values.min()))):
        noise = built(Spec("laplace", per_m), place, bench)
        away = spread(noise, place)
        head[name] = {"mean_m": away.mean_m, "half_m": away.half_m, "most_m": away.most_m}
    return binary(head, {"chances": canvas.paint(chances)})


def _file(mechanism: EikonalMechanism, kind: str, bench: Bench) -> Response:
    path = bench.scratch.new(f".{kind}")
    try:
        if kind == "npz":
            mechanism.save(path)
        else:
            levels = mechanism.map.values * 1000
            bands = {
                "level asked for, per km": levels,
                "level in use, per km": levels * mechanism.lowered,
            }
            tags = {"WHEREISH_MAP_SHA256": mechanism.map.digest()}
            write_geotiff(path, mechanism.map.raster, bands, tags=tags)
        return attachment(path.read_bytes(), f"map.{kind}")
    finally:
        path.unlink(missing_ok=True)
