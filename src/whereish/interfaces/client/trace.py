"""Trace sessions of a service: steps go by number, so that none is taken twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from whereish.interfaces.client.calls import Call, Reported
from whereish.results import JsonResult

__all__ = ["AsyncTrace", "Step", "Trace", "begin_call"]


@dataclass(frozen=True, kw_only=True)
class Step(Reported):
    """A report of a trace: fresh noise, or what was predicted from earlier reports.

    `accuracy_m` is over fresh and predicted reports together.
    """

    step: int
    fresh: bool
    spent_per_m: float

    def __repr__(self) -> str:
        return f"Step({self.step}, {'fresh' if self.fresh else 'predicted'})"


@dataclass(frozen=True)
class Begun(JsonResult):
    """A session's name and total."""

    session: str
    trace: str
    total_per_m: float


def begin_call(trace: str | None, subject: str | None) -> Call[Begun]:
    """Ask for a session."""
    given = {"trace": trace, "subject": subject}
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", "/v1/traces", body, lambda said: Begun(**said), charges=True)


class _Session:
    def __init__(self, begun: Begun) -> None:
        self.session, self.total_per_m = begun.session, begun.total_per_m
        self._next = 0

    def _step(self, lon: float, lat: float, time_s: float | None) -> Call[Step]:
        body: dict[str, Any] = {"step": self._next, "lon": float(lon), "lat": float(lat)}
        if time_s is not None:
            body["time_s"] = float(time_s)
        # The number is the key: sent again, it gives the same report.
        return Call("POST", f"/v1/traces/{self.session}/steps", body, lambda said: Step(**said))

    def _close(self) -> Call[float]:
        path = f"/v1/traces/{self.session}"
        return Call("DELETE", path, None, lambda said: float(said["spent_per_m"]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._next} steps)"


class Trace(_Session):
    """A session; each step reports the next place."""

    def __init__(self, ask: Callable[[Call[Any]], Any], begun: Begun) -> None:
        super().__init__(begun)
        self._ask = ask

    def step(self, lon: float, lat: float, *, time_s: float | None = None) -> Step:
        """Report the next place."""
        taken: Step = self._ask(self._step(lon, lat, time_s))
        self._next += 1
        return taken

    def close(self) -> float:
        """End the session; returns what its steps spent, per metre."""
        return float(self._ask(self._close()))


class AsyncTrace(_Session):
    """The same, to be awaited."""

    def __init__(self, ask: Callable[[Call[Any]], Awaitable[Any]], begun: Begun) -> None:
        super().__init__(begun)
        self._ask = ask

    async def step(self, lon: float, lat: float, *, time_s: float | None = None) -> Step:
        """Report the next place."""
        taken: Step = await self._ask(self._step(lon, lat, time_s))
        self._next += 1
        return taken

    async def close(self) -> float:
        """End the session; returns what its steps spent, per metre."""
        return float(await self._ask(self._close()))
