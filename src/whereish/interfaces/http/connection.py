"""A connection of uvicorn whose head is bounded."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedHead"]

_HEAD_BYTES: Final = 32_768
_HEAD_S: Final = 15.0


class BoundedHead(HttpToolsProtocol):
    """A connection whose request line and headers may be neither long nor slow.

    uvicorn bounds neither with httptools; before the headers are complete nobody has shown a
    token, so nobody may fill the memory.
    """

    _head: int | None = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(_HEAD_S, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self._head == 0 and self._late is None:
            self._late = self.loop.call_later(_HEAD_S, self._too_slow)
        unfinished, self._head = self._head, None if self._head is None else self._head + len(data)
        super().data_received(data)
        if unfinished is not None and self._head is not None and self._head > _HEAD_BYTES:
            self.send_400_response("Request head too large.")

    def on_headers_complete(self) -> None:
        self._head = None
        self._on_time()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = 0

    def _on_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_time()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        if self._head is not None and not self.transport.is_closing():
            self.transport.close()
