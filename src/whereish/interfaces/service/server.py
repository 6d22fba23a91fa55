"""``whereish serve``: uvicorn with one or several workers."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn

from whereish.errors import WhereishError
from whereish.interfaces.http.connection import BoundedHead
from whereish.interfaces.service.app import CANNOT_START, CONFIG, FOLDER, TOKENS
from whereish.interfaces.service.config import Config
from whereish.interfaces.service.tokens import SCOPES, TokenFile, secret_key

__all__ = ["first_token", "serve"]

_FINISH_S: Final = 30
APPLICATION: Final = "whereish.interfaces.service.app:worker"


def first_token(config: Config) -> str | None:
    """A token for everything, where a service has none yet."""
    tokens = TokenFile(config.folder / TOKENS)
    return tokens.add("first", SCOPES) if config.auth and not tokens.all() else None


def serve(config: Config, beside: Path, *, application: str = APPLICATION) -> None:
    """Run until a signal ends it; what was charged is answered first.

    Raises
    ------
    WhereishError
        If the application cannot be made: a mechanism does not keep what it states, or the ledger
        cannot be used even after a while.
    """
    secret_key(config.folder)
    said = {"config": msgspec.json.encode(config).decode(), "beside": str(beside)}
    os.environ[CONFIG] = msgspec.json.encode(said).decode()
    with contextlib.ExitStack() as after:
        if config.workers > 1:  # a single worker ends by its signal, and would not clean up
            folder = tempfile.TemporaryDirectory(prefix="whereish-metrics-")
            os.environ[FOLDER] = after.enter_context(folder)
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
        if config.workers > 1 and Path(os.environ[FOLDER], CANNOT_START).exists():
            raise WhereishError("the service could not start: its log says why")
