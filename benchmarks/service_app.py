"""The service with two more routes, which answer a constant: what its stack alone costs.

``/constant`` reads the message and writes its answer by their schemas, as frameworks do for every
route; ``/bytes`` does neither.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from whereish.interfaces.service import messages
from whereish.interfaces.service.app import worker as service_worker
from whereish.interfaces.service.config import Limits, load_config
from whereish.interfaces.service.layers import Handed, read_body
from whereish.interfaces.service.server import first_token, serve

_READ, _WRITE = msgspec.json.Decoder(messages.One), msgspec.json.Encoder()
_LIMITS = Limits()


def _answer() -> messages.OneAnswer:
    return messages.OneAnswer(2.35059, 48.85225, "street", 0.006931471805599453, False, 692.2)


ANSWER = _WRITE.encode(_answer())


async def constant(request: Request) -> Response:
    body = await read_body(request.scope, request.receive, _LIMITS)
    messages.decoded(_READ, body)
    return Handed(_WRITE.encode(_answer()), None)


async def plain_bytes(request: Request) -> Response:
    await read_body(request.scope, request.receive, _LIMITS)
    return Handed(ANSWER, None)


def worker() -> ASGIApp:
    guard: Any = service_worker()
    routes = guard.app.router.routes
    routes.insert(0, Route("/constant", constant, methods=["POST"]))
    routes.insert(1, Route("/bytes", plain_bytes, methods=["POST"]))
    return guard


if __name__ == "__main__":
    path = Path(sys.argv[1])
    config = load_config(path)
    token = first_token(config)
    if token is not None:
        print(f"first token, shown this once: {token}", file=sys.stderr, flush=True)
    serve(config, path.parent, application="benchmarks.service_app:worker")
