"""The application: the page, the session, uploads, jobs, and the routes of every view."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from whereish import __version__
from whereish.errors import WhereishError
from whereish.interfaces.http.handlers import HANDLERS
from whereish.interfaces.http.problems import Problem, problem
from whereish.interfaces.workbench import base_map
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.posts import posts
from whereish.interfaces.workbench.security import Guard, SessionKey
from whereish.interfaces.workbench.views import audit, data_set, one_place, optimal, privacy_map
from whereish.interfaces.workbench.wire import Message, answer, read, refused

__all__ = ["VIEWS", "build"]

VIEWS: Final[tuple[Callable[[Bench], list[Route]], ...]] = (
    one_place.routes,
    privacy_map.routes,
    optimal.routes,
    data_set.routes,
    audit.routes,
)
"""The routes of each view: to add one, add its module here and its file in page/src/views."""


class Opening(Message, frozen=True):
    """The secret of the address that the terminal printed."""

    secret: str = ""


class IdAsked(Message, frozen=True):
    """An upload or a job, and how many entries of its progress are known."""

    id: str
    since: int = 0


def build(bench: Bench, key: SessionKey) -> ASGIApp:
    """The application of one server."""

    async def session(request: Request) -> Response:
        asked = await read(request, Opening)
        held = key.holds(request.headers.get("cookie", ""))
        if not held and not key.opens(asked.secret):
            raise Problem("unauthorized", "open the address that `whereish workbench` printed")
        told = answer({"version": __version__, "city": bench.base_map is not None})
        told.headers["set-cookie"] = key.set_cookie()
        return told

    async def uploads(request: Request) -> Response:
        length = request.headers.get("content-length", "")
        if not length.isdigit():
            raise Problem("bad-request", "an upload must say its length")
        if int(length) > bench.scratch.most_bytes:
            raise Problem("too-large", f"at most {bench.scratch.most_bytes >> 20} MB")
        shown = unquote(request.headers.get("x-filename", ""))
        made = await bench.scratch.add(shown, request.stream())
        return answer({"id": made.id, "name": made.shown, "bytes": made.bytes})

    async def forget(request: Request) -> Response:
        bench.scratch.remove((await read(request, IdAsked)).id)
        return answer({})

    async def jobs(request: Request) -> Response:
        await read(request, Message)
        return answer([job.status(len(job.progress)) for job in bench.jobs.all()])

    async def job(request: Request) -> Response:
        asked = await read(request, IdAsked)
        return answer(bench.jobs.get(asked.id).status(max(asked.since, 0)))

    async def stop(request: Request) -> Response:
        bench.jobs.stop((await read(request, IdAsked)).id)
        return answer({})

    table = [
        *posts("/api", session, uploads, jobs, job),
        *posts("/api/uploads", forget),
        *posts("/api/job", stop),
        *(route for view in VIEWS for route in view(bench)),
        *base_map.routes(bench),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            bench.close()

    handlers: dict[Any, Any] = {**HANDLERS, WhereishError: _refused}
    app = Starlette(routes=table, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    known = {route.endpoint: route.path for route in table}

    def named(scope: Scope) -> str:
        endpoint = scope.get("endpoint")
        return known.get(endpoint, "(none)") if endpoint is not None else "(none)"

    return Guard(app, named, key)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, WhereishError)
    return problem(refused(error))
