"""What every request passes, as plain ASGI: the log, tokens, limits, and a fence for errors.

The log has method, route, status and time, and nothing else at any level: the route is the
pattern that matched, never the path that was asked for.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from whereish.interfaces.http.fence import Fenced
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.http.requests import gather, is_loopback, named_host
from whereish.interfaces.service.config import Limits
from whereish.interfaces.service.metrics import Metrics
from whereish.interfaces.service.tokens import EVERYBODY, Token, TokenFile

__all__ = ["TOKEN", "Endpoint", "Guard", "Handed", "Rates", "read_body"]

TOKEN: Final = "whereish.token"
OPEN: Final = "/healthz"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

access = logging.getLogger("whereish.access")
errors = logging.getLogger("whereish.service")


class Rates:
    """A bucket for each token: `burst` requests at once, `rate_per_s` after that.

    Buckets are a worker's own; several workers together let through so many times more.
    """

    def __init__(
        self, rate_per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate_per_s, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token: str) -> None:
        """Take one request, or say when there is one again."""
        now = self._clock()
        left, since = self._buckets.get(token, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            self._buckets[token] = left, now
            raise Problem("too-many-requests", retry_after_s=(1 - left) / self._rate)
        self._buckets[token] = left - 1, now


@dataclass
class Guard:
    """The outermost layer: whoever is let in has a token and is within the limits.

    `tokens` is None for a service without tokens, which answers to names of this machine only:
    no web page that a browser here shows can ask it in its own name.
    """

    app: ASGIApp
    routes: Callable[[Scope], str]
    tokens: TokenFile | None
    limits: Limits
    metrics: Metrics

    def __post_init__(self) -> None:
        self._rates = Rates(self.limits.rate_per_s, self.limits.burst)
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, fenced = time.perf_counter(), Fenced(send)
        self._under_way += 1
        self.metrics.in_flight.inc()
        try:
            await fenced.run(self._admitted, scope, receive, log=errors, route=self.routes)
        finally:
            self._under_way -= 1
            self.metrics.in_flight.dec()
            spent, route = time.perf_counter() - started, self.routes(scope)
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            self.metrics.observe(method, route, fenced.status, spent)
            if access.isEnabledFor(logging.INFO):
                access.info("%s %s %d %.1fms", method, route, fenced.status, 1e3 * spent)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._admit(scope)
        await self.app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        if scope["path"] == OPEN:
            scope[TOKEN] = None
            return
        token = self._identify(scope)
        scope[TOKEN] = token
        if self._under_way > self.limits.concurrency:
            raise Problem("too-many-requests", "too many are under way", retry_after_s=1)
        self._rates.take(token.id)
        if scope["query_string"]:
            raise Problem("bad-request", "routes take no query: places belong in the body")

    def _identify(self, scope: Scope) -> Token:
        if self.tokens is None:
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or not is_loopback(named_host(hosts[0])):
                raise Problem("wrong-host")
            return EVERYBODY
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        token = self.tokens.find(_secret(given[0])) if len(given) == 1 else None
        if token is None:
            raise Problem("unauthorized")
        return token


def _secret(header: bytes) -> bytes:
    """The token of an Authorization header; OwnTracks sends it as the password of a user."""
    kind, _, value = header.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return b""


async def read_body(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """The whole body, if it is JSON by its own words, not too large and not too slow."""
    kind = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind = value
        elif name == b"content-length" and (
            not value.isdigit() or len(value) > 15 or int(value) > limits.body_bytes
        ):
            raise Problem("too-large", f"at most {limits.body_bytes} bytes")
    if kind.partition(b";")[0].strip().lower() != b"application/json":
        raise Problem("media-type")
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            return await gather(receive, limits.body_bytes)
    except TimeoutError:
        raise Problem("timeout") from None


class Handed(Response):
    """A response that calls back when it was handed to the connection."""

    def __init__(self, content: bytes, after: Callable[[], None] | None, status: int = 200) -> None:
        super().__init__(content, status, {"cache-control": "no-store"}, "application/json")
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send, then call back."""
        await super().__call__(scope, receive, send)
        if self._after is not None:
            self._after()


Endpoint = Callable[[Any], Awaitable[Response]]
