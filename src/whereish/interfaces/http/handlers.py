"""How an application answers what it refuses: always as a problem, in our own words."""

from __future__ import annotations

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from whereish.interfaces.http.problems import Problem, problem

__all__ = ["HANDLERS"]


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem(error)


async def _routing(request: Request, error: Exception) -> Response:
    """No such path, or not this method: in our own words."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return problem(Problem("method-not-allowed"), allow=(error.headers or {}).get("Allow"))
    return problem(Problem("not-found" if error.status_code == 404 else "bad-request"))


HANDLERS: Final[dict[Any, Any]] = {HTTPException: _routing, Problem: _refused}
"""For Starlette's `exception_handlers`."""
