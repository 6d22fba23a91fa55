"""The service with one more route, which answers a constant: what its stack alone costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from whereish.interfaces.service.app import worker as service_worker
from whereish.interfaces.service.config import Limits, load_config
from whereish.interfaces.service.layers import Handed, read_body
from whereish.interfaces.service.server import first_token, serve

ANSWER = (
    b'{"lon":2.35059,"lat":48.85225,"mechanism":"street","epsilon_per_m":0.006931471805599453,'
    b'"charged":true,"accuracy_m":692.2}'
)


async def constant(request: Request) -> Response:
    await read_body(request.scope, request.receive, Limits())
    return Handed(ANSWER, None)


def worker() -> ASGIApp:
    guard: Any = service_worker()
    guard.app.router.routes.insert(0, Route("/constant", constant, methods=["POST"]))
    return guard


if __name__ == "__main__":
    path = Path(sys.argv[1])
    config = load_config(path)
    token = first_token(config)
    if token is not None:
        print(f"first token, shown this once: {token}", file=sys.stderr, flush=True)
    serve(config, path.parent, application="benchmarks.service_app:worker")
