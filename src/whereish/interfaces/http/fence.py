"""The fence around an application: every request is answered, and no error's words get out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whereish.interfaces.http.problems import Problem, problem

__all__ = ["Fenced"]


class Fenced:
    """One request behind the fence: what `app` raises becomes a problem.

    `status` is what was answered, 500 until then; `headers` are added to every answer.
    """

    def __init__(self, send: Send, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._send, self._headers = send, headers
        self._begun = False
        self.status = 500

    async def run(
        self,
        app: ASGIApp,
        scope: Scope,
        receive: Receive,
        *,
        log: logging.Logger,
        route: Callable[[Scope], str],
    ) -> None:
        """Answer with `app`; errors are logged by their type and their route."""
        try:
            await app(scope, receive, self._note)
        except Problem as refused:
            await self._refuse(refused, scope, receive)
        except Exception as error:
            # Its words may quote a place: only its type is told, and only to the log.
            log.error("%s in %s", type(error).__name__, route(scope))
            await self._refuse(Problem("internal"), scope, receive)

    async def _refuse(self, why: Problem, scope: Scope, receive: Receive) -> None:
        if not self._begun:
            await problem(why)(scope, receive, self._note)

    async def _note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._begun = message["status"], True
            if self._headers:
                message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
        await self._send(message)
