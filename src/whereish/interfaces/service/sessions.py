"""Trace sessions: the predictive mechanism step by step, on any worker, across restarts.

A session's total is charged when it begins, before its first report.  Each step is an order of
its own in the ledger, named by its number: the first report that is drawn for a step and
committed is the one, whoever asks again and whichever worker answers.  What is kept is the public
transcript; it says all that the next step needs.
"""

from __future__ import annotations

import asyncio
import collections
import math
import secrets
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from whereish.errors import BudgetExceeded, InvalidInput
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.service.messages import Step, StepAnswer
from whereish.interfaces.service.offered import OfferedTrace
from whereish.interfaces.service.till import Names, Till
from whereish.lbs.sessions import session_radius
from whereish.mechanisms.traces.predictive import TraceSession
from whereish.mechanisms.traces.transcript import Plan, Reported, Transcript
from whereish.publish.ledger.group import Order, Settled, kept_answers
from whereish.publish.ledger.ledger import Charge
from whereish.randomness import secure
from whereish.units import Epsilon, Length

__all__ = ["Sessions"]

_REMEMBERED: Final = 10_000  # sessions of which a worker knows the steps by heart
_READ: Final = 64  # steps read at once
_ACCURACY: Final = 0.95


class _Begun(msgspec.Struct, frozen=True):
    """What the ledger keeps of a session."""

    trace: str


class _Taken(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the ledger keeps of a step; of the last one, that it is the end."""

    lon: float = 0.0
    lat: float = 0.0
    fresh: bool = False
    time_s: float | None = None
    test: float | None = None
    threshold_m: float | None = None
    noise: float | None = None
    end: bool = False

    def reported(self) -> Reported:
        """The same as an entry of a transcript."""
        plan = Plan(
            None if self.test is None else Epsilon(self.test),
            None if self.threshold_m is None else Length(self.threshold_m),
            None if self.noise is None else Epsilon(self.noise),
        )
        return Reported(np.array([self.lon, self.lat]), self.time_s, self.fresh, plan)


@dataclass
class _Known:
    """A session as far as this worker knows it."""

    trace: OfferedTrace
    steps: list[_Taken] = field(default_factory=list)


_TAKEN = msgspec.json.Decoder(_Taken)
_BEGUN = msgspec.json.Decoder(_Begun)


class Sessions:
    """All sessions of a service, through its ledger."""

    def __init__(self, till: Till, names: Names, offered: dict[str, OfferedTrace]) -> None:
        self._till, self._names, self._offered = till, names, offered
        self._known: collections.OrderedDict[str, _Known] = collections.OrderedDict()

    async def begin(
        self, token: str, trace: OfferedTrace, subject: str, key: str | None, body: bytes
    ) -> tuple[Settled, str]:
        """Charge the total; a session's name follows from its idempotency key, if it has one."""
        release = self._names.release(token, key)
        session = release.partition(":")[2][:32] if key is not None else secrets.token_hex(16)
        kept = msgspec.json.encode(_Begun(trace.id)).decode()
        settled = await self._till.settle(
            Order(
                (Charge(subject, trace.total),),
                _name(token, session),
                self._names.fingerprint("/v1/traces", body),
                kept,
            )
        )
        return settled, session

    async def step(
        self, token: str, session: str, asked: Step, body: bytes
    ) -> tuple[str, StepAnswer]:
        """The report of a step: drawn now, or the one that was drawn for it before."""
        known = await self._find(token, session)
        if asked.step > len(known.steps):
            await self._read_on(token, session, known)
        if asked.step > len(known.steps) or any(taken.end for taken in known.steps):
            raise Problem("session-ended", "steps come in order, until the session is closed")
        fingerprint = self._names.fingerprint(f"/v1/traces/{session}", body)
        taken = (
            self._draw(known, asked) if asked.step == len(known.steps) else known.steps[asked.step]
        )
        settled = await self._take(token, session, asked.step, taken, fingerprint)
        taken = _TAKEN.decode(settled.answer)
        if asked.step == len(known.steps):
            known.steps.append(taken)
        if taken.end:
            raise Problem("session-ended", "it was closed")
        transcript = _transcript(known.steps[: asked.step + 1])
        session_so_far = TraceSession(known.trace.mechanism, secure(), transcript)
        return settled.release, StepAnswer(
            taken.lon,
            taken.lat,
            asked.step,
            taken.fresh,
            float(transcript.spent),
            math.ceil(10 * session_radius(session_so_far, _ACCURACY).m) / 10,
        )

    async def close(self, token: str, session: str) -> tuple[int, float]:
        """Let no further step be taken; returns the number of steps and what they spent."""
        known = await self._find(token, session)
        while not any(taken.end for taken in known.steps):
            await self._read_on(token, session, known)
            if any(taken.end for taken in known.steps):
                break
            number = len(known.steps)
            try:
                settled = await self._take(token, session, number, _Taken(end=True), "end")
            except Problem as problem:
                if problem.kind != "key-reused":
                    raise
                continue  # a step was faster
            known.steps.append(_TAKEN.decode(settled.answer))
        steps = [taken for taken in known.steps if not taken.end]
        return len(steps), float(_transcript(steps).spent)

    async def _find(self, token: str, session: str) -> _Known:
        name = _name(token, session)
        known = self._known.get(name)
        if known is None:
            kept = await asyncio.to_thread(kept_answers, self._till.ledger, [name])
            begun = _BEGUN.decode(kept[name]) if name in kept else None
            trace = None if begun is None else self._offered.get(begun.trace)
            if trace is None:
                raise Problem("not-found", "no such session of this token, or it is too old")
            known = self._known.setdefault(name, _Known(trace))
            await self._read_on(token, session, known)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    async def _read_on(self, token: str, session: str, known: _Known) -> None:
        """The steps that other workers, or this one before a restart, have taken."""
        while True:
            first = len(known.steps)
            names = [_name(token, session, first + i) for i in range(_READ)]
            kept = await asyncio.to_thread(kept_answers, self._till.ledger, names)
            if first != len(known.steps):
                continue  # another request of this worker was faster
            for name in names:
                if name not in kept:
                    return
                known.steps.append(_TAKEN.decode(kept[name]))

    def _draw(self, known: _Known, asked: Step) -> _Taken:
        session = TraceSession(known.trace.mechanism, secure(), _transcript(known.steps))
        try:
            session.report([[asked.lon, asked.lat]], asked.time_s)
        except BudgetExceeded:
            raise Problem("budget-exceeded", "the session's total is spent") from None
        except InvalidInput:
            raise Problem("invalid", "times must not go back", field="time_s") from None
        made = session.transcript.reports[-1]
        lon, lat = made.place.tolist()
        plan = made.plan
        return _Taken(
            lon,
            lat,
            made.hard,
            made.time_s,
            None if plan.test is None else plan.test.per_m,
            None if plan.threshold is None else plan.threshold.m,
            None if plan.noise is None else plan.noise.per_m,
        )

    async def _take(
        self, token: str, session: str, number: int, taken: _Taken, fingerprint: str
    ) -> Settled:
        answer = msgspec.json.encode(taken).decode()
        return await self._till.settle(
            Order((), _name(token, session, number), fingerprint, answer)
        )


def _name(token: str, session: str, step: int | None = None) -> str:
    return f"trace:{token}:{session}" + ("" if step is None else f":{step}")


def _transcript(steps: list[_Taken]) -> Transcript:
    transcript = Transcript()
    for taken in steps:
        transcript.append(taken.reported())
    return transcript
