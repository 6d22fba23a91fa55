"""``whereish serve``: uvicorn with one or several workers."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from whereish.interfaces.service.app import CONFIG, TOKENS
from whereish.interfaces.service.config import Config
from whereish.interfaces.service.tokens import SCOPES, TokenFile, secret_key

__all__ = ["BoundedHead", "first_token", "serve"]

_HEAD_BYTES: Final = 32_768
_HEAD_S: Final = 15.0
_FINISH_S: Final = 30
APPLICATION: Final = "whereish.interfaces.service.app:worker"


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


def first_token(config: Config) -> str | None:
    """A token for everything, where a service has none yet."""
    tokens = TokenFile(config.folder / TOKENS)
    return tokens.add("first", SCOPES) if config.auth and not tokens.all() else None


def serve(config: Config, beside: Path, *, application: str = APPLICATION) -> None:
    """Run until a signal ends it; what was charged is answered first."""
    secret_key(config.folder)
    said = {"config": msgspec.json.encode(config).decode(), "beside": str(beside)}
    os.environ[CONFIG] = msgspec.json.encode(said).decode()
    with tempfile.TemporaryDirectory(prefix="whereish-metrics-") as counters:
        if config.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = counters
        options: dict[str, Any] = {
            "factory": True,
            "host": config.host,
            "port": config.port,
            "workers": config.workers,
            "http": BoundedHead,
            "ws": "none",
            "access_log": False,
            "server_header": False,
            "date_header": True,
            "proxy_headers": False,
            "log_level": config.log_level,
            "timeout_graceful_shutdown": _FINISH_S,
            "ssl_certfile": config.tls_certificate,
            "ssl_keyfile": config.tls_key,
            "backlog": 2048,
        }
        uvicorn.run(application, **options)
