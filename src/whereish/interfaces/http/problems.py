"""Errors as RFC 9457 problem details, in our own words: no value of a request is ever in one."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from starlette.responses import Response

__all__ = ["KINDS", "Problem", "ProblemDetails", "problem"]

KINDS: Final[dict[str, tuple[int, str]]] = {
    "bad-request": (400, "the request cannot be read"),
    "unauthorized": (401, "a bearer token is needed"),
    "forbidden": (403, "the token does not allow this"),
    "not-found": (404, "there is nothing of this name"),
    "method-not-allowed": (405, "the route does not take this method"),
    "timeout": (408, "the body did not arrive in time"),
    "budget-exceeded": (409, "the subject has too little budget left"),
    "session-ended": (409, "the session takes no such step"),
    "too-large": (413, "the request is larger than the limit"),
    "media-type": (415, "the body must be application/json"),
    "wrong-host": (421, "this service answers to its own names only"),
    "invalid": (422, "the body is not what the route takes"),
    "outside": (422, "a place is none that the mechanism takes"),
    "key-reused": (422, "the idempotency key was used for something else"),
    "too-many-requests": (429, "more requests than the limit"),
    "internal": (500, "the service failed; nothing was released"),
    "unavailable": (503, "the ledger cannot be used; nothing was released"),
    "upstream": (502, "the source of places cannot be used"),
}
"""Every kind of problem, with its status and its title."""


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a problem says (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = ""
    field: str = ""


class Problem(Exception):
    """A request that is refused, with the kind of its problem."""

    def __init__(
        self, kind: str, detail: str = "", *, field: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(kind)
        self.kind, self.detail, self.field = kind, detail, field
        self.retry_after_s = retry_after_s


def problem(error: Problem, *, allow: str | None = None) -> Response:
    """The response to a refused request."""
    status, title = KINDS[error.kind]
    told = ProblemDetails(
        f"urn:whereish:problem:{error.kind}", title, status, error.detail, error.field
    )
    headers = {"cache-control": "no-store"}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after_s + 0.5)))
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if allow is not None:
        headers["allow"] = allow
    if status in (408, 413):
        headers["connection"] = "close"  # what is left of the body is not read
    return Response(
        msgspec.json.encode(told), status, headers, media_type="application/problem+json"
    )


_FIELD = re.compile(r"`\$((?:\.[a-z_]+|\[\.\.\.\])*)`$")


def refused_field(error: msgspec.ValidationError, names: frozenset[str]) -> str:
    """The field that was refused, if it is one of our own names."""
    found = _FIELD.search(str(error))
    parts = [] if found is None else [p for p in re.split(r"\.|\[\.\.\.\]", found[1]) if p]
    return ".".join(parts) if parts and all(part in names for part in parts) else ""
