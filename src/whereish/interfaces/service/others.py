"""Routes that tell somebody else a report: a source of places nearby, a recorder of OwnTracks.

What a source gives is filtered by the true place, so it is as secret as that: it goes to who asked
and nowhere else.  The ledger keeps the report alone; a repeated key asks the source again with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from whereish.errors import WhereishError
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.owntracks.message import private_location, read_location
from whereish.interfaces.service import messages
from whereish.interfaces.service.layers import TOKEN, Handed, read_body
from whereish.interfaces.service.offered import Offered
from whereish.interfaces.service.tokens import Token
from whereish.lbs.nearby import Question
from whereish.units import Length

if TYPE_CHECKING:
    from whereish.interfaces.service.routes import Service

__all__ = ["Forward", "forward_to", "nearby", "owntracks"]

Forward: TypeAlias = Callable[[bytes, str], Awaitable[None]]
"""Passes a private message on, for a user."""

_AROUND: Final = msgspec.json.Decoder(messages.Around)
_PLACE: Final = msgspec.json.Decoder(messages.Place)
_CONFIDENCE: Final = 0.95


async def nearby(service: Service, request: Request) -> Response:
    """Everything within a radius of a place, from a source that is told a report only."""
    started = time.perf_counter()
    token: Token = request.scope[TOKEN]
    if not token.allows("nearby"):
        raise Problem("forbidden")
    body = await read_body(request.scope, request.receive, service.config.limits)
    key = service.key_of(request)
    asked: messages.Around = messages.decoded(_AROUND, body)
    offered = service.offer(token, asked.mechanism)
    if service.source is None or offered.accuracy_m is None:
        raise Problem("not-found", "no source of places, or a mechanism of unknown distances")
    kept, release = await _charged(service, token, offered, asked, key, started)
    report = (kept.lon, kept.lat)
    # rad_I + C^-1(0.95), which depends on neither the place nor the draw.
    interest, around = Length(asked.radius_m), Length(asked.radius_m + offered.accuracy_m)
    try:
        question = Question((asked.lon, asked.lat), report, interest, around, _CONFIDENCE)
        found = await asyncio.to_thread(question.ask, service.source)
    except WhereishError:
        raise Problem("upstream", "the report stays charged; the same key asks again") from None
    answer = messages.AroundAnswer(
        found.results,
        kept,
        around.m,
        _CONFIDENCE,
        found.fetched,
        found.exact,
        offered.accuracy_m,
    )
    till = service.till
    after = None if till is None or release is None else partial(till.answered, release)
    return Handed(msgspec.json.encode(answer), after)


async def owntracks(service: Service, request: Request) -> Response:
    """A phone's location, passed on as a report; the phone is answered with nothing to do."""
    started = time.perf_counter()
    token: Token = request.scope[TOKEN]
    body = await read_body(request.scope, request.receive, service.config.limits)
    offered = service.offer(token, None)
    if service.forward is None:
        raise Problem("not-found", "the service forwards to no recorder")
    location = read_location(body)
    if location is None:
        return Handed(b"[]", None)  # dropped: phones send other messages too
    kept, release = await _charged(service, token, offered, location, None, started)
    message = private_location(location, (kept.lon, kept.lat), offered.accuracy_m, None)
    try:
        await service.forward(message, service.subject(token, None))
    except Exception:
        raise Problem("upstream", "the report stays charged; it may have arrived") from None
    till = service.till
    return Handed(
        b"[]", None if till is None or release is None else partial(till.answered, release)
    )


async def _charged(
    service: Service, token: Token, offered: Offered, asked: Any, key: str | None, started: float
) -> tuple[messages.Place, str | None]:
    """A report that is paid for: drawn now, or the one that this key was charged for."""
    subject = service.subject(token, getattr(asked, "subject", None))
    (drawn,) = offered.report([(asked.lon, asked.lat)])
    if not offered.steady:
        await service.pad(started)
    kept = messages.Place(*drawn)
    if service.till is None:
        if key is not None:
            raise Problem("bad-request", "idempotency keys need a service with a ledger")
        return kept, None
    settled = await service.till.charge(
        subject,
        offered.epsilon,
        1,
        release=service.names.release(token.id, key),
        fingerprint=service.names.fingerprint("/v1/nearby", msgspec.json.encode(asked)),
        answer="" if key is None else msgspec.json.encode(kept).decode(),
    )
    return (_PLACE.decode(settled.answer) if settled.repeated else kept), settled.release


def forward_to(url: str) -> Forward:
    """Post messages to a recorder, as a phone in HTTP mode would."""
    import httpx

    client = httpx.AsyncClient(timeout=10, trust_env=False, follow_redirects=False)

    async def forward(message: bytes, user: str) -> None:
        headers = {"Content-Type": "application/json", "X-Limit-U": user, "X-Limit-D": "phone"}
        answer = await client.post(url, content=message, headers=headers)
        answer.raise_for_status()

    return forward
