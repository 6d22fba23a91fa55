"""Requests to a foreign service: the same one again or none, and nothing that tells who asks.

- No cookies are kept or sent, no referrer, no redirects to elsewhere, no proxy or credentials from
  the environment; the user agent is one constant word.
- A request that fails is sent again as it was: the bytes were made once, from one report.
- Answers are cached by question, so that asking twice tells nothing new.
- Messages name the host and the status, never the question or the answer.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from whereish.errors import InvalidInput, ServiceUnavailable, import_extra
from whereish.lbs.sources.source import Places

if TYPE_CHECKING:
    import httpx

__all__ = ["Exchange", "Reply", "asked_radius"]

_AGAIN = frozenset({429, 500, 502, 503, 504})
_CACHED = 256
_LARGEST_BYTES = 64 << 20
_LONGEST_WAIT_S = 30.0

ANOTHER_EARTH = 1.0101
"""A service may measure on a sphere or ellipsoid of its own.  No radius in use is longer than a²/b,
(a/b)³ times b²/a, on whose sphere no distance is longer than the true one."""


def asked_radius(radius_m: float) -> float:
    """What to ask a service for, so that its circle holds the true one."""
    return radius_m * ANOTHER_EARTH


@dataclass(frozen=True)
class Reply:
    """A JSON answer, and its size."""

    value: Any = field(repr=False)
    bytes: int


class Exchange:
    """Speaks to one service.

    Parameters
    ----------
    url
        Its address; requests go to that origin alone.
    timeout_s
        How long to wait for a connection and for each part of an answer.
    attempts
        How often the same request is sent before giving up.
    headers
        What the service needs (a key): it tells the service who asks.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 10.0,
        attempts: int = 3,
        headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInput("a service's address must be a plain http or https URL")
        if not (isinstance(attempts, int) and attempts >= 1 and timeout_s > 0):
            raise InvalidInput("attempts must be a whole number >= 1, and timeout_s > 0")
        self.url, self._attempts, self._sleep = url, attempts, sleep
        self._origin = (parts.scheme, parts.netloc)
        self.host = parts.hostname
        self._cache: OrderedDict[Hashable, Places] = OrderedDict()
        self._lock = threading.Lock()
        library = import_extra("httpx", "lbs")
        self._client: httpx.Client = library.Client(
            timeout=timeout_s,
            headers={"User-Agent": "whereish", "Accept": "application/json", **(headers or {})},
            follow_redirects=False,
            trust_env=False,
            cookies=None,
        )

    def __repr__(self) -> str:
        return f"Exchange({self.host})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def cached(self, question: Hashable, ask: Callable[[], Places]) -> Places:
        """The answer to a question, asked once; incomplete ones are asked again."""
        with self._lock:
            if question in self._cache:
                self._cache.move_to_end(question)
                return self._cache[question]
        found = ask()
        if found.complete:
            with self._lock:
                self._cache[question] = found
                while len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)
        return found

    def same_origin(self, link: str) -> str:
        """A link of the service's own, made absolute; any other is refused."""
        absolute = urljoin(self.url, link)
        parts = urlsplit(absolute)
        if (parts.scheme, parts.netloc) != self._origin:
            raise ServiceUnavailable(
                f"{self.host} refers to another server for more; that one is not asked"
            )
        return absolute

    def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        form: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request, sent again as it was where that may help.

        Raises
        ------
        ServiceUnavailable
            If no attempt brought an answer in JSON.
        """
        import httpx

        request = self._client.build_request(
            method, url, params=params, json=body, data=None if form is None else dict(form)
        )
        reason = "no answer"
        for attempt in range(self._attempts):
            wait = 0.5 * 2.0**attempt
            try:
                response = self._client.send(request, stream=True)
                try:
                    if response.status_code == 200:
                        return _json(response, self.host)
                    reason = f"status {response.status_code}"
                    if response.status_code not in _AGAIN:
                        break
                    wait = _retry_after(response.headers.get("Retry-After"), wait)
                finally:
                    response.close()
                    self._client.cookies.clear()
            except httpx.TimeoutException:
                reason = "no answer in time"
            except httpx.HTTPError as error:
                reason = f"no connection ({type(error).__name__})"
            if attempt + 1 < self._attempts:
                self._sleep(wait)
        raise ServiceUnavailable(f"{self.host} gave no usable answer: {reason}") from None


def _json(response: httpx.Response, host: str) -> Reply:
    parts, size = [], 0
    for part in response.iter_bytes():
        size += len(part)
        if size > _LARGEST_BYTES:
            raise ServiceUnavailable(f"{host} sent more than {_LARGEST_BYTES >> 20} MB")
        parts.append(part)
    try:
        return Reply(json.loads(b"".join(parts)), size)
    except ValueError:
        raise ServiceUnavailable(f"{host} gave no usable answer: it is not JSON") from None


def _retry_after(header: str | None, usual: float) -> float:
    try:
        return min(max(float(header or usual), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        return usual
