"""View 5, an audit: the factor of a matrix or a saved mechanism, and of samplers by their reports.

A sampler is a Python function of (n, 2) metres that the terminal named (``--sampler``): no request
names code to be run.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.arrays import FloatArray
from whereish.audit.exact import exact
from whereish.audit.statistical import statistical
from whereish.errors import InvalidInput, WhereishError
from whereish.interfaces.workbench.bench import Bench, degrees_space
from whereish.interfaces.workbench.posts import JobAsked, posts
from whereish.interfaces.workbench.wire import Message, answer, read
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.saved import load
from whereish.privacy.norms import Euclidean, Geodesic
from whereish.space.points import Points
from whereish.space.sphere import Sphere
from whereish.units import Epsilon

__all__ = ["load_sampler", "routes"]

KIND = "audit"
_AT = (-75.1635, 39.9526)
_MOST_ENTRIES = 1_000_000
_SHORT = 0.9
"""The example that must be refuted has so much of the noise that its claim asks for."""


class MatrixAsked(Message, frozen=True):
    """A matrix of probabilities, a row for each secret, and where the secrets are."""

    matrix: str
    per_m: float
    places: str = ""
    spacing_m: float = 100.0
    columns: int = 0


class SavedAsked(Message, frozen=True):
    """A mechanism in a file, or one that was built here."""

    upload: str = ""
    built: str = ""


class SamplerAsked(Message, frozen=True):
    """Reports of a sampler against a claim."""

    sampler: str
    per_m: float
    samples: int = 200_000
    confidence: float = 0.9999


def routes(bench: Bench) -> list[Route]:
    """The routes of this view."""

    async def matrix(request: Request) -> Response:
        asked = await read(request, MatrixAsked)
        job = await run_in_threadpool(
            bench.jobs.start, KIND, "audit of a matrix", audit_matrix, asked
        )
        return answer(job.status())

    async def saved(request: Request) -> Response:
        asked = await read(request, SavedAsked)
        if asked.built:
            shelved = bench.take(asked.built)
            job = await run_in_threadpool(
                bench.jobs.start, KIND, shelved.title, audit_mechanism, shelved.mechanism
            )
        else:
            upload = bench.scratch.get(asked.upload)
            job = await run_in_threadpool(
                bench.jobs.start,
                KIND,
                f"audit of {upload.shown}",
                audit_file,
                str(upload.path),
                upload.shown,
            )
        return answer(job.status())

    async def sampler(request: Request) -> Response:
        asked = await read(request, SamplerAsked)
        known = {"laplace", "short", *bench.samplers}
        if asked.sampler not in known and asked.sampler not in bench.shelf:
            raise InvalidInput("there is no such sampler: name one with --sampler FILE.py:NAME")
        if not 1000 <= asked.samples <= 20_000_000:
            raise InvalidInput("samples must be between 1,000 and 20,000,000")
        shelved = bench.shelf.get(asked.sampler)
        mechanism = None if shelved is None else shelved.mechanism
        path = bench.samplers.get(asked.sampler, "")
        job = await run_in_threadpool(
            bench.jobs.start, KIND, "statistical audit", audit_sampler, asked, mechanism, path
        )
        return answer(job.status())

    async def offered(request: Request) -> Response:
        await read(request, Message)
        return answer({"samplers": sorted(bench.samplers), "built": bench.listed()})

    async def result(request: Request) -> Response:
        return answer(bench.jobs.result((await read(request, JobAsked)).job, KIND))

    return posts("/api/audit", matrix, saved, sampler, offered, result)


Progress = Callable[[dict[str, Any]], None]


def _numbers(text: str, what: str, columns: int | None = None) -> FloatArray:
    """Rows of numbers between commas, semicolons, tabs or spaces."""
    rows = []
    for line in text.replace(";", ",").replace("\t", ",").splitlines():
        parts = [part for part in line.replace(",", " ").split() if part]
        if parts:
            rows.append(parts)
    if not rows:
        raise InvalidInput(f"{what} is empty: paste a row of numbers for each secret")
    if len({len(row) for row in rows}) != 1 or (columns and len(rows[0]) != columns):
        raise InvalidInput(f"{what} must have the same number of columns in every row")
    if len(rows) * len(rows[0]) > _MOST_ENTRIES:
        raise InvalidInput(f"{what} must have at most {_MOST_ENTRIES:,} entries")
    try:
        found = np.array([[float(part) for part in row] for row in rows])
    except ValueError:
        raise InvalidInput(f"{what} must have numbers only, without a head line") from None
    if not np.isfinite(found).all():
        raise InvalidInput(f"{what} must have finite numbers only")
    return found


def audit_matrix(progress: Progress, asked: MatrixAsked) -> dict[str, Any]:
    """The least factor for which a pasted matrix keeps its claim, from all triples."""
    k = _numbers(asked.matrix, "the matrix")
    sums = k.sum(axis=1)
    if (k < 0).any() or not np.allclose(sums, 1.0, atol=1e-6, rtol=0):
        raise InvalidInput("every row of the matrix must be probabilities that sum to 1")
    k = k / sums[:, None]
    level = Epsilon(asked.per_m)
    degrees = None
    if asked.places.strip():
        given = _numbers(asked.places, "the places", 2)
        if len(given) != len(k):
            raise InvalidInput(
                f"give a place for each of {len(k)} rows; there are {len(given)} places"
            )
        degrees = given[:, ::-1]
        if not ((np.abs(degrees[:, 1]) <= 90) & (np.abs(degrees[:, 0]) <= 180)).all():
            raise InvalidInput("places must be latitude, longitude in degrees")
        metric = level.per_m * Geodesic()
        found = exact(k, metric, sites=degrees)
    else:
        if not asked.spacing_m > 0:
            raise InvalidInput("the spacing of sites must be a number > 0, in metres")
        wide = asked.columns if asked.columns > 0 else len(k)
        index = np.arange(len(k))
        sites = np.column_stack([index % wide, index // wide]) * asked.spacing_m
        found = exact(k, level.per_m * Euclidean(), sites=sites)
    return _exact_told(found, k, degrees, "pasted matrix", "the claim times the distance")


def _exact_told(
    found: Any, k: FloatArray, degrees: FloatArray | None, title: str, metric: str
) -> dict[str, Any]:
    worst = found.worst
    told: dict[str, Any] = {
        "title": title,
        "way": "exact",
        "factor": _finite(found.factor),
        "factor_lower": _finite(found.factor_lower),
        "holds": found.holds,
        "refuted": found.refuted,
        "secrets": k.shape[0],
        "reports": k.shape[1],
        "metric": metric,
    }
    if worst is not None:
        x, y, z = worst
        told |= {"worst": [int(x), int(y), int(z)], "chances": [float(k[x, z]), float(k[y, z])]}
        if degrees is not None:
            told["pair"] = [degrees[x].tolist(), degrees[y].tolist()]
    if degrees is not None:
        told["sites"] = degrees[:2000].tolist()
    return told


def _finite(value: float) -> float | None:
    """JSON knows no infinity."""
    return float(value) if np.isfinite(value) else None


def audit_file(progress: Progress, path: str, shown: str) -> dict[str, Any]:
    """Read a saved mechanism, which verifies it from its numbers, and audit it."""
    try:
        return audit_mechanism(progress, load(path))
    except WhereishError as error:
        told = str(error).replace(path, shown).replace(Path(path).name, shown)
        raise InvalidInput(told) from None


def audit_mechanism(progress: Progress, mechanism: Any) -> dict[str, Any]:
    """The factor of a channel or a map, and its worst pair."""
    promise = mechanism.guarantee
    if isinstance(mechanism, Channel):
        space: Any = mechanism.space
        degrees = None
        if getattr(space, "crs", "sphere") is not None:
            degrees = np.column_stack(space.to_degrees(mechanism.secrets.points))
        found = exact(mechanism.weights, promise.metric, sites=mechanism.secrets)
        told = _exact_told(found, mechanism.matrix, degrees, "channel", promise.metric.description)
    elif isinstance(mechanism, EikonalMechanism):
        law = mechanism.built.in_use
        told = {
            "title": "privacy map",
            "way": "exact",
            "factor": mechanism.factor,
            "factor_lower": mechanism.factor,
            "holds": mechanism.factor <= 1,
            "refuted": False,
            "secrets": len(mechanism.map.raster),
            "reports": int((law.weights > 0).sum()),
            "metric": promise.metric.description,
        }
        worst = [int(one) for one in law.worst]
        if len(worst) >= 2 and mechanism.map.plane.crs is not None:
            centres = Points(mechanism.reports.centres()[worst[:2]], mechanism.map.plane)
            pair = np.column_stack(mechanism.map.plane.to_degrees(centres))
            told |= {"pair": pair.tolist(), "worst": worst}
    else:
        raise InvalidInput("the audit here is of channels and of mechanisms of privacy maps")
    return {
        **told,
        "basis": promise.basis.name.lower(),
        "source": promise.source,
        "numerics": promise.numerics,
    }


def load_sampler(text: str) -> Callable[[FloatArray], Any]:
    """The function that ``FILE.py:NAME`` names."""
    path, _, name = text.rpartition(":")
    file = Path(path)
    if file.suffix != ".py" or not file.is_file() or not name.isidentifier():
        raise InvalidInput("a sampler must be given as FILE.py:NAME, of a file that exists")
    spec = importlib.util.spec_from_file_location(f"whereish_sampler_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: Callable[[FloatArray], Any] | None = getattr(module, name, None)
    if not callable(found):
        raise InvalidInput(f"{file.name} has no function {name}")
    return found


def audit_sampler(
    progress: Progress, asked: SamplerAsked, mechanism: Any, path: str
) -> dict[str, Any]:
    """A lower bound on what reports tell, with the confidence that was asked for."""
    level = Epsilon(asked.per_m)
    source: Any
    title, metric, at, claim = "", None, np.array([_AT]), level.per_m
    space: Any = Sphere()
    if mechanism is not None:
        space = degrees_space(mechanism)
        source, title, metric, claim = mechanism, "built here", mechanism.guarantee.metric, 1.0
        if isinstance(mechanism, Channel):
            at = mechanism.secrets.coordinates[: min(len(mechanism.secrets), 12)]
        else:
            box = mechanism.map.raster.box
            at = np.array([[box.x_low + box.width / 2, box.y_low + box.height / 2]])
    elif path:
        source, title, metric = load_sampler(path), "your function", Euclidean()
        at, space = np.zeros((1, 2)), None
    else:
        short = asked.sampler == "short"
        source = GlobeLaplace(Epsilon(level.per_m / _SHORT) if short else level)
        title = "Laplace noise, a tenth too little" if short else "Laplace noise"
        metric = Geodesic()
    drawn = 0

    def counted(secrets: FloatArray) -> Any:
        nonlocal drawn
        drawn += len(secrets)
        progress({"reports": drawn})
        if isinstance(source, Mechanism):
            return source.report(secrets).coordinates
        return source(secrets)

    found = statistical(
        counted,
        metric=metric,
        epsilon=claim,
        at=at,
        samples=asked.samples,
        confidence=asked.confidence,
    )
    told: dict[str, Any] = {
        "title": title,
        "way": "statistical",
        "lower": found.epsilon_lower,
        "claim": claim,
        "factor_lower": found.epsilon_lower / claim,
        "refuted": found.refuted,
        "event": found.event,
        "hits": list(found.hits),
        "samples": found.samples,
        "confidence": found.confidence,
        "distance": found.distance,
        "excess": None if found.smallest_excess is None else _finite(found.smallest_excess),
        "reports_drawn": drawn,
    }
    if found.secrets is not None and space is not None:
        pair = space.to_degrees(Points(np.stack(found.secrets), space))
        told["pair"] = np.column_stack(pair).tolist()
    return told
