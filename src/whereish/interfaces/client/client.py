"""Clients of the HTTP service: one for threads, one for tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from whereish.errors import InvalidInput, MissingExtra, ServiceError
from whereish.interfaces.client.calls import (
    Around,
    Budget,
    Call,
    Offer,
    Report,
    again_after,
    budget_call,
    certificate_call,
    checked_url,
    headers_of,
    nearby_call,
    new_key,
    offers_call,
    report_call,
    reports_call,
    verdict,
)
from whereish.interfaces.client.trace import AsyncTrace, Trace, begin_call
from whereish.units import Length

__all__ = ["AsyncClient", "Client"]

Answer = TypeVar("Answer")


class _Settings:
    """What both clients are told."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retries: int = 3,
        timeout_s: float = 30.0,
        insecure: bool = False,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("httpx", "client") from None
        if not isinstance(retries, int) or retries < 0:
            raise InvalidInput(f"retries must be a whole number >= 0; got {retries!r}")
        self._httpx = httpx
        self.url = checked_url(url, insecure=insecure)
        self.retries = retries
        # Neither proxies nor passwords of the environment: a place goes to the named service only.
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "headers": headers_of(token),
            "timeout": timeout_s,
            "trust_env": False,
            "follow_redirects": False,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        """The same request for every attempt: what is drawn for its key is drawn once."""
        made: dict[str, Any] = {"method": call.method, "url": call.path}
        if call.body is not None:
            made["json"] = call.body
        if call.charges and self.retries:
            made["headers"] = {"Idempotency-Key": new_key()}
        return made

    def _wait(self, answer: Any, attempt: int) -> float | None:
        """Seconds until the request is sent again; None where this answer, or error, stands."""
        if attempt == self.retries:
            return None
        if isinstance(answer, Exception):
            return float(0.1 * 2**attempt)
        return again_after(answer.status_code, answer.headers.get("retry-after"), attempt)


class Client(_Settings):
    """Reports from a service, which draws and charges them.

    A person's own device comes first: the library, or a service on the same machine.  A trusted
    proxy comes second; it sees the true place.

    Parameters
    ----------
    url
        "https://HOST", or "http://127.0.0.1:8790" on this machine.
    token
        A bearer token; by default the environment's ``WHEREISH_TOKEN``.
    retries
        How often the same request is sent again after a lost connection, 429 or 503.  Its
        idempotency key makes that one report and one charge; without retries no key is sent.
    insecure
        Allow http to other machines.

    Raises
    ------
    InvalidInput
        If places would be sent in the clear; from calls, if the service refuses what is asked.
    ServiceError
        From calls, if the service cannot be reached or refuses the token.

    Examples
    --------
    >>> import whereish as wh
    >>> with wh.Client("http://127.0.0.1:8790", token="wh_...") as client:
    ...     client
    Client('http://127.0.0.1:8790')
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._http = self._httpx.Client(**self._options)

    def report(
        self, lon: float, lat: float, *, mechanism: str | None = None, subject: str | None = None
    ) -> Report:
        """One report of a place."""
        return self._ask(report_call(lon, lat, mechanism, subject))

    def reports(
        self,
        places: Sequence[tuple[float, float]],
        *,
        mechanism: str | None = None,
        subject: str | None = None,
    ) -> list[Report]:
        """A report of each (lon, lat), charged together."""
        return self._ask(reports_call(places, mechanism, subject))

    def nearby(
        self,
        lon: float,
        lat: float,
        radius: Length | str = "300 m",
        *,
        mechanism: str | None = None,
        subject: str | None = None,
    ) -> Around:
        """What is within a radius of a place, from the service's source of places."""
        return self._ask(nearby_call(lon, lat, radius, mechanism, subject))

    def mechanisms(self) -> list[Offer]:
        """What the token may use."""
        return self._ask(offers_call())

    def certificate(self, mechanism: str) -> dict[str, Any]:
        """A mechanism's guarantee in full, as the service verified it when it started."""
        return self._ask(certificate_call(mechanism))

    def budget(self, subject: str) -> Budget:
        """What a subject has spent and has left."""
        return self._ask(budget_call(subject))

    def trace(self, *, trace: str | None = None, subject: str | None = None) -> Trace:
        """A trace session, whose total is charged now."""
        return Trace(self._ask, self._ask(begin_call(trace, subject)))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, call: Call[Answer]) -> Answer:
        request, attempt = self._request(call), 0
        while True:
            try:
                answer = self._http.request(**request)
            except self._httpx.TransportError as error:
                answer = error
            wait = self._wait(answer, attempt)
            if wait is None:
                return _verdict(call, answer)
            time.sleep(wait)
            attempt += 1


class AsyncClient(_Settings):
    """The same as :class:`Client`, to be awaited.

    Raises
    ------
    InvalidInput, ServiceError
        As :class:`Client`.

    Examples
    --------
    >>> import asyncio
    >>> import whereish as wh
    >>> async def main():
    ...     async with wh.AsyncClient("http://127.0.0.1:8790", token="wh_...") as client:
    ...         return repr(client)
    >>> asyncio.run(main())
    "AsyncClient('http://127.0.0.1:8790')"
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._http = self._httpx.AsyncClient(**self._options)

    async def report(
        self, lon: float, lat: float, *, mechanism: str | None = None, subject: str | None = None
    ) -> Report:
        """One report of a place."""
        return await self._ask(report_call(lon, lat, mechanism, subject))

    async def reports(
        self,
        places: Sequence[tuple[float, float]],
        *,
        mechanism: str | None = None,
        subject: str | None = None,
    ) -> list[Report]:
        """A report of each (lon, lat), charged together."""
        return await self._ask(reports_call(places, mechanism, subject))

    async def nearby(
        self,
        lon: float,
        lat: float,
        radius: Length | str = "300 m",
        *,
        mechanism: str | None = None,
        subject: str | None = None,
    ) -> Around:
        """What is within a radius of a place, from the service's source of places."""
        return await self._ask(nearby_call(lon, lat, radius, mechanism, subject))

    async def mechanisms(self) -> list[Offer]:
        """What the token may use."""
        return await self._ask(offers_call())

    async def certificate(self, mechanism: str) -> dict[str, Any]:
        """A mechanism's guarantee in full, as the service verified it when it started."""
        return await self._ask(certificate_call(mechanism))

    async def budget(self, subject: str) -> Budget:
        """What a subject has spent and has left."""
        return await self._ask(budget_call(subject))

    async def trace(self, *, trace: str | None = None, subject: str | None = None) -> AsyncTrace:
        """A trace session, whose total is charged now."""
        return AsyncTrace(self._ask, await self._ask(begin_call(trace, subject)))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, call: Call[Answer]) -> Answer:
        request, attempt = self._request(call), 0
        while True:
            try:
                answer = await self._http.request(**request)
            except self._httpx.TransportError as error:
                answer = error
            wait = self._wait(answer, attempt)
            if wait is None:
                return _verdict(call, answer)
            await asyncio.sleep(wait)
            attempt += 1


def _verdict(call: Call[Answer], answer: Any) -> Answer:
    """What the last answer means; an error of the connection is one of ours."""
    if isinstance(answer, Exception):
        raise _unreachable(answer) from None
    return verdict(call, answer.status_code, answer.json)


def _unreachable(error: Exception) -> ServiceError:
    return ServiceError(f"the service cannot be reached ({type(error).__name__})")
