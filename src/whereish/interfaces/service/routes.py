"""The routes: each reads its body, draws, is charged, and answers."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.interfaces.http.problems import Problem
from whereish.interfaces.service import messages
from whereish.interfaces.service.config import NAME, Config
from whereish.interfaces.service.layers import TOKEN, Endpoint, Handed, read_body
from whereish.interfaces.service.messages import decoded
from whereish.interfaces.service.metrics import Metrics
from whereish.interfaces.service.offered import VERSION, Offered, OfferedTrace
from whereish.interfaces.service.others import Forward, nearby, owntracks
from whereish.interfaces.service.sessions import Sessions
from whereish.interfaces.service.till import Names, Till
from whereish.interfaces.service.tokens import Token
from whereish.lbs.sources.source import Source

__all__ = ["Service", "routes"]

_ONE: Final = msgspec.json.Decoder(messages.One)
_BATCH: Final = msgspec.json.Decoder(messages.Batch)
_SESSION: Final = msgspec.json.Decoder(messages.Session)
_STEP: Final = msgspec.json.Decoder(messages.Step)
_encode = msgspec.json.Encoder().encode
_LONGEST_KEY: Final = 200
_NAME: Final = re.compile(NAME)


@dataclass
class Service:
    """What one worker has: its mechanisms, its till, its counters."""

    config: Config
    offered: dict[str, Offered]
    traces: dict[str, OfferedTrace]
    names: Names
    metrics: Metrics
    till: Till | None = None
    sessions: Sessions | None = None
    document: bytes = b""
    page: bytes = b""
    source: Source | None = None
    forward: Forward | None = None
    _choices: dict[tuple[str, str | None], tuple[Token, Offered]] = field(default_factory=dict)

    async def report(self, request: Request) -> Response:
        """One place or a batch: drawn, charged, then answered."""
        started = time.perf_counter()
        scope = request.scope
        token: Token = scope[TOKEN]
        body = await read_body(scope, request.receive, self.config.limits)
        key = idempotency_key(request)
        try:
            asked: messages.One = decoded(_ONE, body)
        except Problem:  # a batch is no single place, and is looked for only then
            if b'"places"' not in body:
                raise
            return await self._reports(token, body, key, started)
        offered = self.offer(token, asked.mechanism)
        subject = self.subject(token, asked.subject)
        draw = offered.one
        if draw is not None:
            lon, lat = draw(asked.lon, asked.lat)
        else:
            ((lon, lat),) = offered.report([(asked.lon, asked.lat)])
        if not offered.steady:
            await self.pad(started)
        charged, level = self.till is not None, offered.epsilon.per_m
        answer = messages.OneAnswer(lon, lat, offered.id, level, charged, offered.accuracy_m)
        if not charged:
            return self._uncharged(1, key, _encode(answer))
        return await self.answer(token, subject, offered, 1, key, asked, _encode(answer))

    async def _reports(
        self, token: Token, body: bytes, key: str | None, started: float
    ) -> Response:
        """Several places, charged together."""
        asked: messages.Batch = decoded(_BATCH, body)
        offered = self.offer(token, asked.mechanism)
        if len(asked.places) > self.config.limits.batch:
            raise Problem("too-large", f"at most {self.config.limits.batch} places")
        subject = self.subject(token, asked.subject)
        drawn = offered.report([(place.lon, place.lat) for place in asked.places])
        if not offered.steady:
            await self.pad(started)
        charged, level = self.till is not None, offered.epsilon.per_m
        reports = [messages.Place(*report) for report in drawn]
        answer = messages.BatchAnswer(reports, offered.id, level, charged, offered.accuracy_m)
        times = len(reports)
        return await self.answer(token, subject, offered, times, key, asked, _encode(answer))

    @staticmethod
    def key_of(request: Request) -> str | None:
        """The idempotency key of a request."""
        return idempotency_key(request)

    async def answer(
        self,
        token: Token,
        subject: str,
        offered: Offered,
        times: int,
        key: str | None,
        asked: msgspec.Struct,
        answer: bytes,
    ) -> Response:
        """Charge for an answer that was drawn; it leaves when the charge is durable."""
        if self.till is None:
            return self._uncharged(times, key, answer)
        settled = await self.till.charge(
            subject,
            offered.epsilon,
            times,
            release=self.names.release(token.id, key),
            fingerprint="" if key is None else self.names.fingerprint("/v1/report", _encode(asked)),
            answer="" if key is None else answer.decode(),
        )
        if settled.repeated:
            self.metrics.repeated.inc()
            answer = settled.answer.encode()
        else:
            self.metrics.count_reports(times)
        return Handed(answer, partial(self.till.answered, settled.release))

    def _uncharged(self, times: int, key: str | None, answer: bytes) -> Response:
        if key is not None:
            raise Problem("bad-request", "idempotency keys need a service with a ledger")
        self.metrics.count_reports(times)
        return Handed(answer, None)

    async def begin(self, request: Request) -> Response:
        """A new trace session, whose total is charged now."""
        token: Token = request.scope[TOKEN]
        body = await read_body(request.scope, request.receive, self.config.limits)
        key = idempotency_key(request)
        asked: messages.Session = decoded(_SESSION, body)
        allowed = [t for t in self.traces.values() if token.allows("traces", t.id)]
        trace = _chosen(asked.trace, {t.id: t for t in allowed})
        sessions, till = self._traced()
        subject = self.subject(token, asked.subject)
        settled, session = await sessions.begin(token.id, trace, subject, key, _encode(asked))
        answer = messages.SessionAnswer(session, trace.id, trace.total.per_m)
        return Handed(_encode(answer), partial(till.answered, settled.release), 201)

    async def step(self, request: Request) -> Response:
        """The next place of a trace."""
        token = self._allowed(request, "traces")
        body = await read_body(request.scope, request.receive, self.config.limits)
        asked: messages.Step = decoded(_STEP, body)
        sessions, till = self._traced()
        name = _session_name(request)
        release, answer = await sessions.step(token.id, name, asked, _encode(asked))
        return Handed(_encode(answer), partial(till.answered, release))

    async def close(self, request: Request) -> Response:
        """No further steps."""
        token = self._allowed(request, "traces")
        sessions, _ = self._traced()
        steps, spent = await sessions.close(token.id, _session_name(request))
        return Handed(_encode(messages.Closed(steps, spent)), None)

    async def mechanisms(self, request: Request) -> Response:
        """What this token may use."""
        token: Token = request.scope[TOKEN]
        found = [_described(o) for o in self.offered.values() if token.allows("report", o.id)]
        traces = [t.id for t in self.traces.values() if token.allows("traces", t.id)]
        return _json(messages.Mechanisms(found, traces))

    async def mechanism(self, request: Request) -> Response:
        """One of them."""
        return _json(_described(self._named(request)))

    async def certificate(self, request: Request) -> Response:
        """Its guarantee in full, as verified when the service started."""
        one = self._named(request)
        return _json(
            messages.Certificate(one.id, one.to_json(), one.verified_at, VERSION, one.sha256)
        )

    async def budget(self, request: Request) -> Response:
        """What a subject has spent, and has left."""
        token = self._allowed(request, "budget")
        subject: str = request.path_params["subject"]
        if _NAME.fullmatch(subject) is None:
            raise Problem("not-found", "no subject has such a name")
        if token.subject is not None and subject != token.subject:
            raise Problem("forbidden", "the token is for one subject")
        if self.till is None:
            raise Problem("not-found", "the service has no ledger")
        found = await asyncio.to_thread(self.till.ledger.statement, subject)
        cap = found.budget
        return _json(
            messages.BudgetAnswer(cap.cap.per_m, found.spent_per_m, found.left_per_m, cap.window_s)
        )

    async def healthz(self, request: Request) -> Response:
        """The process answers."""
        return _json(messages.Health("ok"))

    async def readyz(self, request: Request) -> Response:
        """Mechanisms are verified and the ledger can be read."""
        if self.till is not None:
            try:
                await asyncio.to_thread(self.till.ledger.state, "")
            except Exception:
                raise Problem("unavailable", retry_after_s=1) from None
        return _json(messages.Health("ready"))

    async def scrape(self, request: Request) -> Response:
        """Counts and times."""
        self._allowed(request, "metrics")
        text = await asyncio.to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI document."""
        return Response(self.document, media_type="application/json")

    async def docs(self, request: Request) -> Response:
        """The same as a page."""
        headers = {"content-security-policy": "default-src 'none'"}
        return Response(self.page, headers=headers, media_type="text/html")

    def subject(self, token: Token, asked: str | None) -> str:
        """Who is charged: the token's own subject, or the one that is named."""
        if token.subject is not None:
            if asked not in (None, token.subject):
                raise Problem("forbidden", "the token is for one subject")
            return token.subject
        return asked if asked is not None else token.name

    def offer(self, token: Token, asked: str | None) -> Offered:
        """The mechanism that was asked for, if the token allows it."""
        known = self._choices.get((token.id, asked))
        if known is not None and known[0] is token:
            return known[1]
        allowed = {o.id: o for o in self.offered.values() if token.allows("report", o.id)}
        chosen: Offered = _chosen(asked, allowed)
        self._choices[token.id, asked] = token, chosen
        return chosen

    def _named(self, request: Request) -> Offered:
        token: Token = request.scope[TOKEN]
        return self.offer(token, request.path_params["id"])

    def _traced(self) -> tuple[Sessions, Till]:
        if self.sessions is None or self.till is None:
            raise Problem("not-found", "the service offers no traces")
        return self.sessions, self.till

    @staticmethod
    def _allowed(request: Request, scope: str) -> Token:
        token: Token = request.scope[TOKEN]
        if not any(s.partition(":")[0] == scope for s in token.scopes):
            raise Problem("forbidden")
        return token

    async def pad(self, started: float) -> None:
        """Wait for the next multiple of a fixed time: how long the draw took does not show."""
        pad = self.config.pad_ms / 1e3
        spent = time.perf_counter() - started
        await asyncio.sleep(pad - spent % pad)


def routes(service: Service) -> list[Route]:
    """The paths of the service."""
    posted: dict[str, Endpoint] = {
        "/v1/report": service.report,
        "/v1/nearby": partial(nearby, service),
        "/v1/owntracks": partial(owntracks, service),
        "/v1/traces": service.begin,
        "/v1/traces/{session}/steps": service.step,
    }
    got: dict[str, Endpoint] = {
        "/v1/mechanisms": service.mechanisms,
        "/v1/mechanisms/{id}": service.mechanism,
        "/v1/mechanisms/{id}/certificate": service.certificate,
        "/v1/budget/{subject}": service.budget,
        "/healthz": service.healthz,
        "/readyz": service.readyz,
        "/metrics": service.scrape,
        "/openapi.json": service.openapi,
        "/docs": service.docs,
    }
    return [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posted.items()),
        Route("/v1/traces/{session}", service.close, methods=["DELETE"]),
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in got.items()),
    ]


def _chosen(asked: str | None, allowed: dict[str, Any]) -> Any:
    """The one that was asked for, or the first that is allowed."""
    if not allowed:
        raise Problem("forbidden")
    if asked is None:
        return next(iter(allowed.values()))
    if asked not in allowed:
        raise Problem("not-found", "the token allows no such mechanism; see /v1/mechanisms")
    return allowed[asked]


def _described(offered: Offered) -> messages.Mechanism:
    said = offered.to_json()
    return messages.Mechanism(
        offered.id, said["statement"], said["basis"], offered.epsilon.per_m, offered.accuracy_m
    )


def idempotency_key(request: Request) -> str | None:
    """The key that a request carries, if it does."""
    given: bytes | None = None
    several = False
    for name, value in request.scope["headers"]:
        if name == b"idempotency-key":
            several, given = given is not None, value
    if given is None:
        return None
    key = given.decode("latin-1")
    fine = not several and 1 <= len(key) <= _LONGEST_KEY
    if not (fine and key.isascii() and key.isprintable()):
        raise Problem("bad-request", "an idempotency key has 1 to 200 printable ASCII characters")
    return key


def _session_name(request: Request) -> str:
    name: str = request.path_params["session"]
    if len(name) != 32 or not set(name) <= set("0123456789abcdef"):
        raise Problem("not-found", "no such session")
    return name


def _json(answer: msgspec.Struct) -> Response:
    return Handed(_encode(answer), None)
