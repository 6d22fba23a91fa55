"""View 4, a data set: choose columns, blur, look at before and after, keep the file.

The upload and the released file are in the bench's private folder.  Samples of true places go to
the page, which draws them from memory and keeps nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput, WhereishError
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.posts import JobAsked, posts
from whereish.interfaces.workbench.uploads import Upload
from whereish.interfaces.workbench.views.columns import Columns, columns_of, example_file, read_rows
from whereish.interfaces.workbench.views.one_place import guarantee_of
from whereish.interfaces.workbench.wire import Message, answer, attachment, binary, read
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.publish.exposure import Exposure
from whereish.publish.formats.registry import format_of
from whereish.publish.sanitize import sanitize
from whereish.space.sphere import great_circle_m
from whereish.units import Epsilon

__all__ = ["routes"]

KIND = "release"
_SHOWN = 3000
_BINS = 16


class LookAsked(Message, frozen=True):
    """The columns of an upload."""

    upload: str


class ReleaseAsked(Message, frozen=True):
    """What to blur, how, and what else to release."""

    upload: str
    per_m: float = 0.0
    built: str = ""
    lon: str = ""
    lat: str = ""
    geometry: str = ""
    keep: tuple[str, ...] = ()
    subject: str = ""
    output: str = ""


def routes(bench: Bench) -> list[Route]:
    """The routes of this view."""

    async def look(request: Request) -> Response:
        asked = await read(request, LookAsked)
        upload = bench.scratch.get(asked.upload)
        with _named(upload):
            found = await run_in_threadpool(columns_of, upload.path)
        return answer({"name": upload.shown, "bytes": upload.bytes, **found.told()})

    async def example(request: Request) -> Response:
        await read(request, Message)
        made = await bench.scratch.add("example-commuters.csv", example_file())
        return answer({"id": made.id, "name": made.shown, "bytes": made.bytes})

    async def release(request: Request) -> Response:
        asked = await read(request, ReleaseAsked)
        upload = bench.scratch.get(asked.upload)
        suffix = asked.output or upload.path.suffix
        output = bench.scratch.new(suffix if suffix.startswith(".") else f".{suffix}")
        format_of(output, "the output")
        mechanism = None
        if asked.built:
            mechanism = bench.take(asked.built).mechanism
            if not isinstance(mechanism, EikonalMechanism):
                raise InvalidInput("a data set is blurred by Laplace noise or by a privacy map")
        job = await run_in_threadpool(
            bench.jobs.start,
            KIND,
            f"release of {upload.shown}",
            release_file,
            (str(upload.path), upload.shown, str(output)),
            asked,
            mechanism,
        )
        return answer(job.status())

    async def result(request: Request) -> Response:
        made = bench.jobs.result((await read(request, JobAsked)).job, KIND)
        return binary(made["head"], made["arrays"])

    async def file(request: Request) -> Response:
        made = bench.jobs.result((await read(request, JobAsked)).job, KIND)
        path = Path(made["path"])
        if not path.is_file():
            raise InvalidInput("the released file is not here any more: release it again")
        return attachment(path.read_bytes(), f"released{path.suffix}")

    async def guarantee(request: Request) -> Response:
        made = bench.jobs.result((await read(request, JobAsked)).job, KIND)
        return attachment(json.dumps(made["statement"], indent=1).encode(), "guarantee.json")

    return posts("/api/data", look, example, release, result, file, guarantee)


@contextlib.contextmanager
def _named(upload: Upload) -> Any:
    """Errors name the file as people know it."""
    try:
        yield
    except WhereishError as error:
        raise InvalidInput(str(error).replace(upload.path.name, upload.shown)) from None


def release_file(
    progress: Callable[[dict[str, Any]], None],
    paths: tuple[str, str, str],
    asked: ReleaseAsked,
    mechanism: EikonalMechanism | None,
) -> dict[str, Any]:
    """Blur the file and compare, in a process of its own."""
    path, output = Path(paths[0]), Path(paths[2])
    with _named(Upload("", path, paths[1], 0)):
        columns = Columns(
            lon=asked.lon, lat=asked.lat, geometry=asked.geometry, subject=asked.subject
        )
        arguments: dict[str, Any] = (
            {"mechanism": mechanism} if mechanism is not None else {"epsilon": Epsilon(asked.per_m)}
        )
        if asked.geometry:
            arguments["geometry"] = asked.geometry
        elif asked.lon and asked.lat:
            arguments |= {"lon": asked.lon, "lat": asked.lat}
        released = sanitize(
            path,
            output,
            keep=asked.keep,
            progress=lambda done, of: progress({"rows": done, "of": of}),
            **arguments,
        )
        before, who = read_rows(path, columns)
        after, _ = read_rows(output, Columns(asked.lon, asked.lat, asked.geometry, ""))
    exposure = _exposure(released.exposure, who, asked.per_m if mechanism is None else None)
    statement = {**released.to_json(), "path": f"released{output.suffix}", "exposure": exposure}
    chosen = np.linspace(0, len(before) - 1, min(_SHOWN, len(before))).astype(int)
    scale = _scale(before)
    head = {
        "rows": released.rows,
        "sentence": released.in_words,
        "scope": released.scope,
        "exposure": exposure,
        "guarantee": guarantee_of(released),
        "suffix": output.suffix,
        "shown": len(chosen),
        "moved_m": float(great_circle_m(before, after).mean()),
        "steps": _histogram(_steps(before, who), _steps(after, who)),
        "crowds": _histogram(_crowds(before, scale), _crowds(after, scale)),
        "crowd_m": scale,
        "subjects": 0 if who is None else int(who.max()) + 1,
    }
    return {
        "head": head,
        "arrays": {"before": before[chosen], "after": after[chosen]},
        "path": str(output),
        "statement": statement,
    }


def _exposure(stated: Exposure | None, who: IntArray | None, per_m: float | None) -> str:
    """Of whom most is released: by the column of subjects, where there is one."""
    if who is None:
        return "" if stated is None else str(stated)
    worst = int(np.bincount(who).max())
    return str(Exposure(worst, worst * per_m if per_m is not None else float("inf"), named=True))


def _steps(places: FloatArray, who: IntArray | None) -> FloatArray:
    """Distances from each row to the next of the same subject, in metres."""
    order = np.arange(len(places)) if who is None else np.argsort(who, kind="stable")
    sorted_places = places[order]
    away = great_circle_m(sorted_places[1:], sorted_places[:-1])
    return np.asarray(away if who is None else away[np.diff(who[order]) == 0])


def _scale(places: FloatArray) -> float:
    """A round side of cells, about a fiftieth of what the middle of the data covers."""
    low, high = np.percentile(places, [10, 90], axis=0)
    extent = float(great_circle_m(low[None], high[None])[0])
    sides = np.array([100.0, 250, 500, 1000, 2500, 5000, 10_000, 50_000])
    return float(sides[np.argmin(np.abs(np.log(sides) - np.log(max(extent, 1.0) / 50)))])


def _crowds(places: FloatArray, side: float) -> FloatArray:
    """For each row, how many rows share its cell."""
    high = np.degrees(side / 6_371_000)
    wide = high / max(np.cos(np.radians(places[:, 1].mean())), 0.05)
    cells = np.floor(places / [wide, high]).astype(np.int64)
    _, index, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[index.ravel()], dtype=np.float64)


def _histogram(before: FloatArray, after: FloatArray) -> dict[str, Any] | None:
    """Shares in bins of equal ratio, over both."""
    both = np.concatenate([before, after])
    both = both[both > 0]
    if len(both) < 2:
        return None
    low, high = np.percentile(both, [1, 99])
    edges = np.geomspace(max(low, 1e-9), max(high, low * 1.01), _BINS + 1)
    shares = [
        np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(len(values), 1)
        for values in (before, after)
    ]
    return {
        "edges": edges.tolist(),
        "before": shares[0].tolist(),
        "after": shares[1].tolist(),
        "median_before": float(np.median(before)) if len(before) else 0.0,
        "median_after": float(np.median(after)) if len(after) else 0.0,
    }
