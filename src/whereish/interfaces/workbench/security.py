"""Who may ask: this machine's own page, in the session that the terminal opened.

- *DNS rebinding.*  The Host header must name loopback: a name of somebody else's that resolves to
  127.0.0.1 is refused, whatever page sent it.
- *Cross-site requests.*  An Origin other than our own, or a browser's word that the request comes
  from another site, is refused; so is a POST without the header ``x-whereish``, which no other
  site's page may add without asking first, and that question is refused, too.
- *Others on this machine.*  The address that the terminal prints carries a secret behind ``#``,
  where no server and no log sees it; the page exchanges it for a cookie that scripts cannot read.
- *Scripts in data.*  The content security policy lets the page run its own files only.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from whereish.interfaces.http.fence import Fenced
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.http.requests import is_loopback, named_host

__all__ = ["CSP", "HEADERS", "SessionKey", "Guard"]

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ADDED: Final = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
OPEN: Final = "/api/session"

access = logging.getLogger("whereish.access")
errors = logging.getLogger("whereish.workbench")


@dataclass(frozen=True)
class SessionKey:
    """The secret of the printed address, and the cookie that it is exchanged for."""

    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    name: str = field(default_factory=lambda: f"whereish-{secrets.token_hex(4)}")

    def opens(self, given: str) -> bool:
        """Whether this is the secret."""
        return hmac.compare_digest(given.encode(), self.secret.encode())

    def set_cookie(self) -> str:
        """The header that gives the cookie to the page."""
        return f"{self.name}={self.cookie}; Path=/; HttpOnly; SameSite=Strict"

    def holds(self, header: str) -> bool:
        """Whether a Cookie header has the cookie; other programs' cookies may be malformed."""
        pairs = (part.strip().partition("=") for part in header.split(";"))
        return any(
            name == self.name and hmac.compare_digest(value.encode(), self.cookie.encode())
            for name, _, value in pairs
        )


@dataclass
class Guard:
    """The outermost layer: every refusal, every header, and one line of log without a place."""

    app: ASGIApp
    routes: Callable[[Scope], str]
    key: SessionKey

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, fenced = time.perf_counter(), Fenced(send, _ADDED)
        try:
            await fenced.run(self._admitted, scope, receive, log=errors, route=self.routes)
        finally:
            if access.isEnabledFor(logging.INFO):
                spent = 1e3 * (time.perf_counter() - started)
                access.info("%s %d %.1fms", self.routes(scope), fenced.status, spent)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._admit(scope)
        await self.app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not is_loopback(named_host(hosts[0])):
            raise Problem("wrong-host")
        if scope["query_string"]:
            raise Problem("bad-request", "routes take no query: places belong in the body")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Problem("method-not-allowed")
        for origin in headers.get(b"origin", []):
            if origin != b"http://" + hosts[0]:
                raise Problem("forbidden", "another site's page may not ask")
        if not scope["path"].startswith("/api/"):
            return
        if headers.get(b"sec-fetch-site", [b"same-origin"]) != [b"same-origin"]:
            raise Problem("forbidden", "another site's page may not ask")
        if scope["method"] == "POST" and headers.get(b"x-whereish") != [b"workbench"]:
            raise Problem("forbidden", "the page's own header is missing")
        if scope["path"] != OPEN:
            given = b"; ".join(headers.get(b"cookie", [])).decode("latin-1")
            if not self.key.holds(given):
                raise Problem("unauthorized", "open the address that `whereish workbench` printed")
