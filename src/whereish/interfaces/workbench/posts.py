"""How a view's routes are declared: all take POST only, and no place is in an address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.interfaces.workbench.wire import Message

__all__ = ["JobAsked", "posts"]

Endpoint = Callable[[Request], Awaitable[Response]]


class JobAsked(Message, frozen=True):
    """A job that was started here."""

    job: str


def posts(prefix: str, *endpoints: Endpoint) -> list[Route]:
    """A route for each endpoint, PREFIX/NAME after its name."""
    return [Route(f"{prefix}/{one.__name__}", one, methods=["POST"]) for one in endpoints]
