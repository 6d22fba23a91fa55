"""Requests and what their answers mean, without a connection: both clients share them.

A request that charges carries an idempotency key, so that it may be sent again after a lost
connection: the service answers with the same report, and charges once.
"""

from __future__ import annotations

import ipaddress
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit

from whereish.errors import BudgetExceeded, InvalidInput, ServiceError
from whereish.results import JsonResult
from whereish.units import Epsilon, Length

__all__ = [
    "Around",
    "Budget",
    "Call",
    "Offer",
    "Report",
    "Reported",
    "again_after",
    "budget_call",
    "certificate_call",
    "checked_url",
    "headers_of",
    "nearby_call",
    "offers_call",
    "report_call",
    "reports_call",
    "verdict",
]

Answer = TypeVar("Answer")
_AGAIN: Final = (429, 502, 503, 504)
_LONGEST_S: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class Reported(JsonResult):
    """A place that a service drew; `accuracy_m` holds it with probability 0.95."""

    lon: float = field(repr=False)
    lat: float = field(repr=False)
    accuracy_m: float | None = None


@dataclass(frozen=True, kw_only=True)
class Report(Reported):
    """A report that a service drew and charged."""

    mechanism: str
    epsilon: Epsilon
    charged: bool

    def __repr__(self) -> str:
        return f"Report(by {self.mechanism!r} at {self.epsilon}, within {self.accuracy_m} m)"


@dataclass(frozen=True, kw_only=True)
class Around(Reported):
    """What is near a place, nearest first; the results are as secret as the place.

    `complete` says that they are all within the radius that was asked for.  The service's source
    was asked within `retrieval_radius_m` of the report.
    """

    _NOT_TOLD = ("results",)  # as secret as the place

    results: list[dict[str, Any]] = field(repr=False)
    retrieval_radius_m: float
    confidence: float
    fetched: int
    complete: bool

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True)
class Offer(JsonResult):
    """A mechanism that the token may use."""

    id: str
    statement: str
    basis: str
    epsilon_per_m: float
    accuracy_m: float | None = None


@dataclass(frozen=True)
class Budget(JsonResult):
    """What a subject has spent and has left, per metre."""

    cap_per_m: float
    spent_per_m: float
    left_per_m: float
    window_s: float | None = None


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """One request, and how its answer is read."""

    method: str
    path: str
    body: dict[str, Any] | None
    read: Callable[[Any], Answer]
    charges: bool = False


def checked_url(url: str, *, insecure: bool) -> str:
    """The address, if a true place may be sent there: encrypted, or not beyond this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.username:
        raise InvalidInput("a service's address must be https://HOST[:PORT], without a query")
    if parts.scheme == "http" and not local and not insecure:
        raise InvalidInput(
            "true places would be sent in the clear: use https, a service on this machine, or say"
            " insecure=True"
        )
    return url.rstrip("/")


def headers_of(token: str | None) -> dict[str, str]:
    """Headers of every request; the token may be in the environment."""
    given = token if token is not None else os.environ.get("WHEREISH_TOKEN", "")
    return {"Authorization": f"Bearer {given}"} if given else {}


def new_key() -> str:
    """A key that nobody else uses."""
    return uuid.uuid4().hex


def report_call(lon: float, lat: float, mechanism: str | None, subject: str | None) -> Call[Report]:
    """Ask for one report."""
    body = {"lon": float(lon), "lat": float(lat), **_named(mechanism, subject)}
    return Call("POST", "/v1/report", body, _report, charges=True)


def reports_call(
    places: Sequence[tuple[float, float]], mechanism: str | None, subject: str | None
) -> Call[list[Report]]:
    """Ask for a report of each (lon, lat)."""
    asked = [{"lon": float(lon), "lat": float(lat)} for lon, lat in places]
    body = {"places": asked, **_named(mechanism, subject)}
    return Call(
        "POST", "/v1/report", body, lambda said: _reports(said, said["reports"]), charges=True
    )


def nearby_call(
    lon: float, lat: float, radius: Length | str, mechanism: str | None, subject: str | None
) -> Call[Around]:
    """Ask what is within a radius of a place."""
    asked = {"radius_m": Length.positive(radius, name="radius").m}
    body = {"lon": float(lon), "lat": float(lat), **asked, **_named(mechanism, subject)}
    return Call("POST", "/v1/nearby", body, _around, charges=True)


def _around(said: Any) -> Around:
    rest = {name: value for name, value in said.items() if name != "report"}
    return Around(lon=said["report"]["lon"], lat=said["report"]["lat"], **rest)


def certificate_call(mechanism: str) -> Call[dict[str, Any]]:
    """Ask for a mechanism's guarantee in full."""
    path = f"/v1/mechanisms/{quote(mechanism, safe='')}/certificate"
    return Call("GET", path, None, dict)


def offers_call() -> Call[list[Offer]]:
    """Ask what the token may use."""
    return Call(
        "GET", "/v1/mechanisms", None, lambda said: [Offer(**one) for one in said["mechanisms"]]
    )


def budget_call(subject: str) -> Call[Budget]:
    """Ask what a subject has left."""
    path = f"/v1/budget/{quote(subject, safe='')}"
    return Call("GET", path, None, lambda said: Budget(**said))


def _named(mechanism: str | None, subject: str | None) -> dict[str, str]:
    given = {"mechanism": mechanism, "subject": subject}
    return {name: value for name, value in given.items() if value is not None}


def _report(said: Any) -> Report:
    return _reports(said, [{"lon": said["lon"], "lat": said["lat"]}])[0]


def _reports(said: Any, places: Any) -> list[Report]:
    return [
        Report(
            **place,
            mechanism=said["mechanism"],
            epsilon=Epsilon.per_metre(said["epsilon_per_m"]),
            charged=said["charged"],
            accuracy_m=said.get("accuracy_m"),
        )
        for place in places
    ]


def again_after(status: int, retry_after: str | None, attempt: int) -> float | None:
    """Seconds to wait before the same request is sent again; None if it is not worth it."""
    if status not in _AGAIN:
        return None
    asked = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
    return float(min(max(asked, 0.1 * 2**attempt), _LONGEST_S))


def verdict(call: Call[Answer], status: int, read: Callable[[], Any]) -> Answer:
    """What an answer means; problems become errors in the service's own words."""
    try:
        said = read()
        if 200 <= status < 300:
            return call.read(said)
    except (ValueError, KeyError, TypeError):
        said = {}
        if 200 <= status < 300:
            raise ServiceError("the answer is not one of whereish's", status=status) from None
    known = said if isinstance(said, dict) else {}
    kind = str(known.get("type", "")).removeprefix("urn:whereish:problem:")
    words = ": ".join(str(known[name]) for name in ("title", "detail", "field") if known.get(name))
    message = words or f"the service answered {status}"
    if kind == "budget-exceeded":
        raise BudgetExceeded(message)
    if kind in ("invalid", "outside"):
        raise InvalidInput(message)
    raise ServiceError(message, kind=kind or "unknown", status=status)
